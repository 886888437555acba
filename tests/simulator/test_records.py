"""Sinks: what goes in comes out, files are whole or absent."""

import builtins
import json
from pathlib import Path

import numpy as np
import pytest

from edgegym.simulator import record_files
from edgegym.simulator.full import log
from edgegym.simulator.record_files import NpzSink, ParquetSink, read_records, sink_to
from edgegym.simulator.records import NOBODY, ORIGIN, ArraySink, record_columns
from edgegym.world import preset

SCENARIO = preset("toy")
KINDS = ["npz", "parquet"]


def rows(count: int, first: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return log rows whose every value tells row and column."""
    index = np.arange(first, first + count)
    real = index[:, None] + np.arange(log.NUM_LOG_REALS) / 100
    num = np.repeat(index[:, None], log.NUM_LOG_NUMS, axis=1)
    num[:, log.LOG_TYPE] %= len(SCENARIO.type_names)
    num[:, log.LOG_OUTCOME] %= len(log.OUTCOMES)
    num[:, log.LOG_SOURCE] %= len(log.SOURCES)
    num[:, log.LOG_STATION] = index % (SCENARIO.max_nodes + 2) - 1  # nobody, nodes, the origin
    return real, num


def fill(sink, pieces=(5, 0, 3)) -> None:
    first = 0
    sink.begin(SCENARIO)
    for count in pieces:
        sink.write(2**64 - 1, *rows(count, first))
        first += count


def fill_and_raise(sink, error) -> None:
    with sink:
        fill(sink)
        raise error


def test_the_table_has_what_was_written():
    sink = ArraySink()
    fill(sink)
    table = sink.table()
    real, num = rows(8)
    assert table.num_rows == 8
    assert list(table) == [column.name for column in record_columns(SCENARIO)]
    assert (table["seed"] == 2**64 - 1).all()
    np.testing.assert_array_equal(table["request"], np.arange(8))
    np.testing.assert_array_equal(table["ttft_s"], real[:, log.LOG_TTFT_S])
    np.testing.assert_array_equal(table["fetched_bytes"], num[:, log.LOG_FETCHED_BYTES])
    types = num[:, log.LOG_TYPE]
    np.testing.assert_array_equal(table.words("type"), np.array(SCENARIO.type_names)[types])
    families = [SCENARIO.request_types[code].family for code in types]
    np.testing.assert_array_equal(table.words("family"), families)
    for column in record_columns(SCENARIO):
        assert table[column.name].dtype == np.dtype(column.kind)
        assert table.labels(column.name) == column.labels


def test_nobody_and_the_origin_have_numbers_of_their_own():
    sink = ArraySink()
    sink.begin(SCENARIO)
    real, num = rows(3)
    num[:, log.LOG_STATION] = [-1, 0, SCENARIO.max_nodes]
    sink.write(0, real, num)
    assert sink.table()["node"].tolist() == [NOBODY, 0, ORIGIN]


def test_rows_are_chosen_and_sorted():
    sink = ArraySink()
    sink.begin(SCENARIO)
    for seed, first in ((1, 4), (0, 2), (1, 0)):
        sink.write(seed, *rows(2, first))
    ordered = sink.table().by_request()
    assert ordered["seed"].tolist() == [0, 0, 1, 1, 1, 1]
    assert ordered["request"].tolist() == [2, 3, 0, 1, 4, 5]
    rejected = ordered.is_label("outcome", "rejected")
    assert (ordered.where(rejected).words("outcome") == "rejected").all()
    assert ordered.where(rejected).num_rows == 2


def test_wrong_names_are_refused():
    sink = ArraySink()
    with pytest.raises(ValueError, match="no fleet has written"):
        sink.table()
    fill(sink)
    table = sink.table()
    with pytest.raises(KeyError, match="column = 'ttft': must be one of seed, request"):
        table["ttft"]
    with pytest.raises(ValueError, match="column = 'ttft_s': holds numbers"):
        table.words("ttft_s")
    with pytest.raises(ValueError, match="label = 'lost': column 'outcome' has completed"):
        table.is_label("outcome", "lost")


@pytest.mark.parametrize("kind", KINDS)
def test_files_hold_the_same_as_memory(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "_ROWS_AT_ONCE", 4)
    path = tmp_path / "new" / f"out.{kind}"
    memory = ArraySink()
    with sink_to(path) as sink:
        for one in (memory, sink):
            fill(one, (3, 4, 2, 7))
        assert not path.exists()
    assert list(path.parent.iterdir()) == [path]
    found, expected = read_records(path), memory.table()
    assert list(found) == list(expected)
    for name in expected:
        assert found[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(found[name], expected[name])
        assert found.labels(name) == expected.labels(name)


def test_an_archive_is_read_by_numpy_alone(tmp_path):
    with NpzSink(tmp_path / "a.npz") as sink:
        fill(sink)
    with np.load(tmp_path / "a.npz") as archive:
        assert archive["labels/outcome"].tolist() == list(log.OUTCOMES)
        np.testing.assert_array_equal(archive["request"], np.arange(8))


def test_parquet_has_words_row_groups_and_notes(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(record_files, "_ROWS_AT_ONCE", 4)
    with ParquetSink(tmp_path / "a.parquet") as sink:
        fill(sink, (5, 5, 1))
    file = parquet.ParquetFile(tmp_path / "a.parquet")
    assert [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)] == [5, 5, 1]
    schema = file.schema_arrow
    document = json.loads(schema.metadata[b"scenario"])
    assert type(SCENARIO).from_document(document) == SCENARIO
    assert schema.field("radio_s").metadata[b"meaning"].startswith(b"until it landed")
    words = file.read(["outcome"])["outcome"].to_pylist()
    assert words[:4] == ["completed", "interrupted", "rejected", "completed"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_after_an_interrupt(kind, error, tmp_path, monkeypatch):
    monkeypatch.setattr(record_files, "_ROWS_AT_ONCE", 4)
    sink = sink_to(tmp_path / f"a.{kind}")
    with pytest.raises(error):
        fill_and_raise(sink, error)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_when_the_last_piece_fails(kind, tmp_path, monkeypatch):
    sink = sink_to(tmp_path / f"a.{kind}")
    fill(sink)

    def full_disk(_):
        raise OSError("no space left")

    monkeypatch.setattr(sink, "_write_piece", full_disk)
    with pytest.raises(OSError, match="no space"):
        sink.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_older_file_stays_until_the_new_one_is_whole(kind, tmp_path):
    path = tmp_path / f"a.{kind}"
    path.write_bytes(b"older")
    with pytest.raises(KeyboardInterrupt):
        fill_and_raise(sink_to(path), KeyboardInterrupt)
    assert path.read_bytes() == b"older"
    with sink_to(path) as sink:
        fill(sink)
    assert read_records(path).num_rows == 8


def test_a_sink_without_a_fleet_leaves_no_file(tmp_path):
    with sink_to(tmp_path / "a.npz"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_sink_is_for_one_scenario_and_one_life():
    sink = ArraySink()
    sink.begin(SCENARIO)
    sink.begin(preset("toy"))
    with pytest.raises(ValueError, match="'paper' is another one"):
        sink.begin(preset("paper"))
    sink.close()
    for use in (lambda: sink.begin(SCENARIO), lambda: sink.write(0, *rows(1))):
        with pytest.raises(ValueError, match="this sink is closed"):
            use()


def test_files_of_other_kinds_are_refused(tmp_path):
    for function in (sink_to, read_records):
        with pytest.raises(ValueError, match=r"must end in \.parquet or \.npz"):
            function(tmp_path / "a.csv")
    (tmp_path / "a.npz").mkdir()
    with pytest.raises(IsADirectoryError):
        sink_to(tmp_path / "a.npz")
    for kind in KINDS:
        path = tmp_path / f"b.{kind}"
        path.write_bytes(b"something else entirely")
        with pytest.raises(ValueError, match=r"b\.\w+': is no"):
            read_records(path)
        with pytest.raises(FileNotFoundError):
            read_records(tmp_path / f"none.{kind}")
    np.savez(tmp_path / "c.npz", a=np.zeros(3))
    with pytest.raises(ValueError, match="holds no records"):
        read_records(tmp_path / "c.npz")


def test_a_missing_extra_is_named(tmp_path, monkeypatch):
    usual = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == "pyarrow":
            raise ModuleNotFoundError(name)
        return usual(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "edgegym\[records\]"'):
        sink_to(tmp_path / "a.parquet")
    assert list(Path(tmp_path).iterdir()) == []
