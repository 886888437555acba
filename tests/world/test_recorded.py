"""Files of recorded requests: what is read, what is found in the times, what is refused."""

import gzip

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.world.recorded import read_replay, recorded_step, write_replay

HEADER = "arrival_s,type,input_tokens,output_tokens"


def written(folder, *lines, header=HEADER):
    path = folder / "requests.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return str(path)


@pytest.mark.parametrize("name", ["requests.csv", "requests.csv.gz"])
def test_what_is_written_is_read(tmp_path, name):
    path = tmp_path / name
    rng = np.random.default_rng(0)
    columns = {
        "arrival_s": np.sort(rng.random(50)) * 1000.0,
        "type_index": np.append([1, 0], rng.integers(0, 3, 48)),
        "input_tokens": rng.integers(1, 10**6, 50),
        "output_tokens": rng.integers(0, 3, 50),
    }
    write_replay(path, type_names=("a", 'b, "c"', "ü"), **columns)
    read = read_replay(str(path))
    names = np.array(("a", 'b, "c"', "ü"))
    assert read.type_names[:2] == ('b, "c"', "a")
    np.testing.assert_array_equal(
        np.array(read.type_names)[read.type], names[columns["type_index"]]
    )
    np.testing.assert_array_equal(read.arrival_s, columns["arrival_s"] - columns["arrival_s"][0])
    np.testing.assert_array_equal(read.input_tokens, columns["input_tokens"])
    np.testing.assert_array_equal(read.output_tokens, np.maximum(columns["output_tokens"], 1))
    before = path.read_bytes()
    write_replay(path, type_names=("a", 'b, "c"', "ü"), **columns)
    assert path.read_bytes() == before
    assert [item.name for item in tmp_path.iterdir()] == [name]


def test_a_file_is_read_again_when_it_has_changed(tmp_path):
    path = written(tmp_path, "0,a,1,1")
    first = read_replay(path)
    assert read_replay(path) is first
    written(tmp_path, "0,a,1,1", "1,a,1,1")
    assert len(read_replay(path).type) == 2


REFUSED = [
    ([], r"line 1: no request after the header"),
    (["0,a,1"], r"line 2: 3 columns; a request has 4"),
    (["0,a,1,1", "x,a,1,1"], r"line 3: arrival_s = 'x': must be seconds"),
    (["nan,a,1,1"], r"line 2: arrival_s = 'nan': must be seconds"),
    (["-1,a,1,1"], r"line 2: arrival_s = '-1': must be seconds"),
    (["2,a,1,1", "1,a,1,1"], r"line 3: arrival_s = 1: earlier than the request before it \(2\)"),
    (["0,a,0,1"], r"line 2: input_tokens = '0': must be a whole number, 1 to 1,000,000,000"),
    (["0,a,1,1.5"], r"line 2: output_tokens = '1\.5': must be a whole number"),
    (["0,a,99999999999999999999999,1"], r"line 2: input_tokens = '9+': must be a whole number"),
    (["0,a,1,²"], r"line 2: output_tokens = '²': must be a whole number"),
]


@pytest.mark.parametrize(("lines", "message"), REFUSED)
def test_bad_lines_are_named(tmp_path, lines, message):
    with pytest.raises(ValueError, match=r"^replay file .*requests\.csv, " + message):
        read_replay(written(tmp_path, *lines))


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="line 1: header 'a,b': must be arrival_s,type,"):
        read_replay(written(tmp_path, header="a,b"))
    with pytest.raises(ValueError, match=r"absent: can't be read: No such file"):
        read_replay(str(tmp_path / "absent"))
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(HEADER.encode())[:-4])
    with pytest.raises(ValueError, match="damaged gzip stream"):
        read_replay(str(broken))
    broken.write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="not UTF-8 text"):
        read_replay(str(broken))
    with pytest.raises(ValueError, match="can't be read: "):
        read_replay(str(tmp_path))


@given(
    step_us=st.integers(1, 10**7),
    numbers=st.lists(st.integers(0, 10**6), min_size=2, max_size=30),
)
def test_the_step_is_the_common_divisor_of_the_times(step_us, numbers):
    times = np.unique(numbers) * step_us / 1e6
    times -= times[0]
    expected = np.gcd.reduce(np.unique(numbers) - min(numbers)) * step_us / 1e6
    assert recorded_step(times) == pytest.approx(expected, rel=1e-12)


def test_the_step_of_a_recorder_that_keeps_its_pace_only_roughly():
    batches = np.array([0.0, 3.0, 5.999, 9.0, 12.001, 15.0, 18.0, 20.999])
    assert recorded_step(np.repeat(batches, 10)) == pytest.approx(3.0, abs=1e-3)
    # Few requests share their time: nothing says that these are batches.
    assert recorded_step(batches) == 0.001
    # Batches at uneven times are batches of the traffic.
    uneven = np.array([0.0, 1.0, 4.0, 4.5, 9.0, 20.0])
    assert recorded_step(np.repeat(uneven, 10)) == 0.5
    assert recorded_step(np.array([0.0, 1.0 / 3.0])) == 0.0


def test_cycle_and_spread(tmp_path):
    path = written(tmp_path, "5,a,1,1", "5,b,1,1", "7,a,1,1", "11,a,1,1")
    read = read_replay(path)
    timed = read.timed(None, None)
    assert timed.quantum_s == 2.0
    assert timed.cycle_s == 8.0  # the last at 6, and the mean gap of 2
    np.testing.assert_array_equal(timed.spread_s, [2, 2, 2, 2])
    np.testing.assert_array_equal(read.timed(10.0, None).spread_s, [2, 2, 4, 10])
    np.testing.assert_array_equal(read.timed(10.0, 7.0).spread_s, [2, 2, 4, 1])
    assert read.timed(0.0, None).spread_s.max() == 0.0
    assert timed.rate_per_s == 0.5
    with pytest.raises(ValueError, match=r"cycle_s = 6: must be longer than the 6 s"):
        read.timed(None, 6.0)
    instant = read_replay(written(tmp_path, "5,a,1,1", "5,b,1,1"))
    with pytest.raises(ValueError, match="all requests came at one instant"):
        instant.timed(None, None)
    assert instant.timed(None, 4.0).rate_per_s == 0.5
    assert instant.timed(1.0, None).cycle_s == 1.0
