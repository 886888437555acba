import numpy as np
import pytest

from edgegym.traces import read_trace, trace_statistics
from tests.traces.sample import ROOTS, mooncake_lines, request, write_lines


def test_by_hand(tmp_path):
    lines = [
        request(0, 1024, 10, [1, 2]),  # nothing before it
        request(1000, 1300, 20, [1, 2, 3]),  # holds 1-2: 1024 tokens
        request(1000, 1024, 30, [1, 2]),  # holds 1-2: all but the last token, 1023
        request(4000, 600, 40, [4, 2]),  # 2 after another beginning is another block
    ]
    statistics = trace_statistics(read_trace(write_lines(tmp_path / "t", lines)), window_s=2.0)
    assert statistics.requests == 4
    assert statistics.duration_s == 4.0
    assert statistics.rate_per_s == 0.75
    # Gaps 1, 0, 3: mean 4/3, population variance 14/9.
    assert statistics.interarrival_scv == pytest.approx((14 / 9) / (16 / 9))
    # Complete windows [0, 2) and [2, 4) hold 3 and 0: mean 1.5, variance 2.25.
    assert statistics.dispersion_index == pytest.approx(1.5)
    assert statistics.distinct_arrival_times == 3
    assert statistics.input.mean == 987.0
    assert statistics.input.largest == 1300
    assert statistics.output.p50 == 25.0
    assert statistics.output.p90 == pytest.approx(37.0)
    reuse = statistics.reuse
    assert reuse.token_share == pytest.approx((1024 + 1023) / 3948)
    assert reuse.block_share == pytest.approx(4 / 9)
    # Block 1 after 1 s and 0 s, block 2 the same.
    assert reuse.interval_p50_s == pytest.approx(0.5)
    assert reuse.roots == 2
    (hottest,) = reuse.hottest
    # Of whole blocks before the last token only block 1 is common to all three.
    assert (hottest.root_block, hottest.depth_tokens, hottest.own_tokens) == (1, 512, 512)
    assert (hottest.requests, hottest.share) == (3, 0.75)


def test_nothing_is_defined_by_one_request(tmp_path):
    statistics = trace_statistics(
        read_trace(write_lines(tmp_path / "t", [request(5, 600, 1, [1, 2])]))
    )
    assert statistics.rate_per_s == 0.0
    assert statistics.interarrival_scv is None
    assert statistics.dispersion_index is None
    assert statistics.reuse.token_share == 0.0
    assert statistics.reuse.interval_p50_s is None
    assert statistics.reuse.hottest == ()


def test_poisson_arrivals_measure_as_such(tmp_path):
    times = np.cumsum(np.random.default_rng(1).exponential(100, 20_000)).tolist()
    lines = [request(time_ms, 1, 1, [0]) for time_ms in times]
    statistics = trace_statistics(read_trace(write_lines(tmp_path / "t", lines)), window_s=1.0)
    assert statistics.interarrival_scv == pytest.approx(1.0, abs=0.05)
    assert statistics.dispersion_index == pytest.approx(1.0, abs=0.1)


def test_system_prompts_are_the_hottest_prefixes(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(600)))
    reuse = trace_statistics(trace).reuse
    assert reuse.roots == 3
    roots = {prefix.depth_tokens // 512: prefix.share for prefix in reuse.hottest[:2]}
    assert roots == pytest.approx({blocks: ROOTS[blocks] for blocks in (12, 5)}, abs=0.05)


def test_reuse_is_what_a_cache_that_keeps_everything_would_hold(mooncake_file):
    trace = read_trace(mooncake_file)
    held, reusable = set(), 0
    for start, stop, length in zip(
        trace.block_start[:-1], trace.block_start[1:], trace.input_tokens, strict=True
    ):
        prompt = trace.block_ids[start:stop].tolist()
        new = [block not in held for block in prompt]
        blocks = new.index(True) if True in new else len(new)
        reusable += min(512 * blocks, int(length) - 1)
        held.update(prompt)
    expected = reusable / trace.input_tokens.sum()
    assert trace_statistics(trace).reuse.token_share == pytest.approx(expected)


def test_azure_has_no_reuse_to_measure(azure_file):
    statistics = trace_statistics(read_trace(azure_file))
    assert statistics.reuse is None
    assert statistics.input.p99 >= statistics.input.p90 >= statistics.input.p50 > 0


@pytest.mark.parametrize("window_s", [1e-300, 1e-9])
def test_too_many_windows(tmp_path, window_s):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines()))
    with pytest.raises(ValueError, match=r"window_s = .*: must be at least .* 10,000,000 windows"):
        trace_statistics(trace, window_s=window_s)


@pytest.mark.parametrize("window_s", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_window(tmp_path, window_s):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(5)))
    with pytest.raises(ValueError, match=r"window_s = .*: must be a positive number"):
        trace_statistics(trace, window_s=window_s)


def test_bad_number_of_prefixes(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(5)))
    with pytest.raises(ValueError, match="num_hottest = -1"):
        trace_statistics(trace, num_hottest=-1)
