"""The request log and the window counters of the full loop, as plain arrays."""

import numpy as np
import pytest

from edgegym.jit import kernel
from edgegym.simulator import columns, histogram
from edgegym.simulator.full import columns as task
from edgegym.simulator.full import counts, log
from edgegym.simulator.state import TICKS_PER_S
from edgegym.simulator.window import WindowStats

pytestmark = pytest.mark.twin

ORIGIN = 7
PARTS = ("RADIO", "WAIT", "STALL", "RESTORE", "SERVER_WAIT", "PREFILL")


@kernel
def serve(book, time, info, real, num, record, outcome, end_s, origin):
    log.log_served(book, time, info, real, num, record, outcome, end_s, origin)


@kernel
def reject(book, time, info, real, num, record):
    log.log_rejected(book, time, info, real, num, record)


@kernel
def room(book, ending):
    return log.has_log_room(book, ending)


@kernel
def count_all(window, family, ttft_s, hit_tokens, at_origin):
    vertices = 0 if hit_tokens == 0 else 3
    counts.count_first(window, family, ttft_s, 1000, hit_tokens, vertices, 0.25, 0.5, at_origin)
    counts.count_completed(window, family, 2.0 * ttft_s, 10)
    counts.count(window, counts.REDIRECTED, 2)


@kernel
def clear(window):
    counts.open_counts(window)


def request():
    """Return record and task arrays with a request in row 3: 0.25 + 0.5 + 1 + 2 + 4 + 8 s."""
    time = np.zeros((5, columns.NUM_RECORD_TIMES))
    info = np.zeros((5, columns.NUM_RECORD_INDICES), dtype=np.int64)
    real = np.zeros((5, task.NUM_TASK_REALS))
    num = np.zeros((5, task.NUM_TASK_NUMS), dtype=np.int64)
    time[3, :4] = 100.0, 100.25, 100.75, 115.75
    info[3, columns.TYPE], info[3, columns.NODE] = 2, 4
    for column, value in {
        task.X_KM: 1.5,
        task.Y_KM: 2.5,
        task.STALL_S: 1.0,
        task.RESTORE_S: 2.0,
        task.SERVER_WAIT_S: 4.0,
        task.PREFILL_S: 8.0,
        task.PREDICTED_S: 12.0,
        task.RUNNER_UP_S: 13.0,
        task.TRANSFER_WAIT_S: 0.125,
    }.items():
        real[3, column] = value
    for column, value in {
        task.INPUT_TOKENS: 1000,
        task.OUTPUT_TOKENS: 20,
        task.REQUEST: 77,
        task.HIT_TOKENS: 600,
        task.LOCAL_HIT_TOKENS: 200,
        task.FETCHED_BYTES: 10**9,
        task.NEAREST: 1,
        task.RUNNER_UP: 5,
        task.REDISPATCHES: 2,
    }.items():
        num[3, column] = value
    return time, info, real, num


def test_a_served_request_is_one_row():
    state = log.allocate_log(1)
    serve(log.log_lane(state, 0), *request(), 3, log.COMPLETED, 120.0, ORIGIN)
    real, num = log.take_rows(state, 0)
    assert real.shape == (1, log.NUM_LOG_REALS)
    assert num.tolist() == [[77, 2, 4, 1, 5, log.COMPLETED, log.FETCHED, 1000, 20, 600, 10**9, 2]]
    expected = [100, 1.5, 2.5, 0.25, 0.5, 1, 2, 4, 8, 15.75, 20, 0.125, 12, 13]
    np.testing.assert_array_equal(real[0], expected)
    parts = [real[0, getattr(log, f"LOG_{name}_S")] for name in PARTS]
    assert sum(parts) == real[0, log.LOG_TTFT_S]
    assert len(log.take_rows(state, 0)[0]) == 0


def test_a_rejected_request_has_no_times_of_service():
    state = log.allocate_log(1)
    reject(log.log_lane(state, 0), *request(), 3)
    real, num = log.take_rows(state, 0)
    assert num[0, [log.LOG_REQUEST, log.LOG_STATION, log.LOG_OUTCOME]].tolist() == [77, -1, 2]
    assert num[0, [log.LOG_SOURCE, log.LOG_HIT_TOKENS]].tolist() == [log.NO_STATE, 0]
    known = [log.LOG_ARRIVAL_S, log.LOG_X_KM, log.LOG_Y_KM, log.LOG_PREDICTED_S]
    assert real[0, known].tolist() == [100.0, 1.5, 2.5, 12.0]
    assert np.isnan(real[0, log.LOG_RADIO_S : log.LOG_TRANSFER_WAIT_S + 1]).all()


@pytest.mark.parametrize(
    ("station", "hit", "local", "source"),
    [(4, 600, 600, "local"), (4, 600, 0, "fetched"), (4, 0, 0, "none"), (7, 600, 600, "origin")],
)
def test_where_the_state_came_from(station, hit, local, source):
    state = log.allocate_log(1)
    time, info, real, num = request()
    info[3, columns.NODE] = station
    num[3, [task.HIT_TOKENS, task.LOCAL_HIT_TOKENS]] = hit, local
    serve(log.log_lane(state, 0), time, info, real, num, 3, log.INTERRUPTED, 120.0, ORIGIN)
    row = log.take_rows(state, 0)[1][0]
    assert log.SOURCES[row[log.LOG_SOURCE]] == source
    assert log.OUTCOMES[row[log.LOG_OUTCOME]] == "interrupted"


def test_room_for_all_that_one_event_can_end():
    state = log.allocate_log(10000, batch=2)
    book = log.log_lane(state, 1)
    assert book.rows == 20000
    assert room(book, 20000)
    assert not room(book, 20001)
    serve(book, *request(), 3, log.COMPLETED, 120.0, ORIGIN)
    assert not room(book, 20000)
    assert state.used.tolist() == [[0], [1]]


def test_a_log_of_no_rows_takes_everything_and_keeps_nothing():
    state = log.allocate_log(0)
    book = log.log_lane(state, 0)
    assert room(book, 10**6)
    serve(book, *request(), 3, log.COMPLETED, 120.0, ORIGIN)
    reject(book, *request(), 3)
    assert state.used[0, 0] == 0
    assert log.take_rows(state, 0)[0].shape == (0, log.NUM_LOG_REALS)


def test_windows_of_the_full_loop_add_up():
    state = counts.allocate_counts(num_families=2, longest_path=3, batch=2)
    window = counts.Counts._make(array[1] for array in state)
    for hit in (0, 0, 40, 900):
        count_all(window, 1, 0.75, hit, hit == 0)
    assert state.extra[0].sum() == 0
    plain = np.zeros(0, dtype=np.int64)
    counters = np.zeros(columns.NUM_COUNTERS, dtype=np.int64)
    counters[[columns.FIRST_TOKENS, columns.HIT_TOKENS]] = 4, 940
    families = np.zeros((3, 2), dtype=np.int64)
    ttft = state.ttft[1].sum(axis=0)
    rest = (ttft, plain, plain, plain, plain)
    extras = [array[1].copy() for array in state]
    one = WindowStats(int(TICKS_PER_S), counters, families, *rest, *extras)
    both = one + one
    assert (both.redirected, both.origin_first_tokens) == (16, 4)
    assert (both.stall_sum_s, both.restore_sum_s) == (2.0, 4.0)
    assert both.ttft_sum_s == 6.0
    assert both.hit_token_share == 940 / 4000
    assert both.output_tokens_sum == 80
    assert both.family_counts.tolist() == [[0] * 7, [8, 8000, 1880, 4, 0, 0, 0]]
    assert both.hit_vertices.tolist() == [4, 0, 0, 4]
    for quantile in (0.1, 0.5, 1.0):
        assert both.ttft_quantile_s(quantile, 1) == pytest.approx(0.75, rel=1 / 64)
        assert both.end_to_end_quantile_s(quantile) == pytest.approx(1.5, rel=1 / 64)
        assert np.isnan(both.end_to_end_quantile_s(quantile, 0))
    depths = [both.hit_depth_quantile_tokens(quantile) for quantile in (0.5, 0.75, 1.0)]
    assert depths[:2] == [0.0, 40.0]
    assert depths[2] == pytest.approx(900, rel=1 / 64)
    clear(window)
    assert not any(array[1].any() for array in state)
    fast = WindowStats(1, counters, families, *rest)
    assert fast + fast == WindowStats(2, 2 * counters, families, 2 * ttft, *rest[1:])
    assert (fast.spilled, fast.fetched_bytes, fast.interrupted) == (0, 0, 0)
    for ask in (
        lambda: fast.end_to_end_quantile_s(0.5),
        lambda: fast.ttft_quantile_s(0.5, 1),
        lambda: fast.hit_depth_quantile_tokens(0.5),
        lambda: fast.hit_token_share,
    ):
        with pytest.raises(ValueError, match="the fast event loop does not keep them"):
            ask()


@kernel
def token_bins(tokens, bins):
    for index in range(len(tokens)):
        bins[histogram.tokens_bin(tokens[index])] += 1


@pytest.mark.parametrize("quantile", [0.0, 0.01, 0.3, 0.5, 0.9, 0.99, 1.0])
def test_quantiles_of_tokens_are_within_their_bin(quantile):
    tokens = np.sort(np.random.default_rng(3).integers(0, 200_000, 500))
    tokens[:50] = np.arange(50)
    bins = np.zeros(histogram.HISTOGRAM_BINS, dtype=np.int64)
    token_bins(tokens, bins)
    exact = tokens[max(int(np.ceil(quantile * len(tokens))) - 1, 0)]
    found = histogram.histogram_quantile_tokens(bins, quantile)
    if exact <= 64:
        assert found == exact
    assert found <= exact <= found * (1 + histogram.RELATIVE_ERROR) + 1e-9


def test_the_least_of_many_tokens():
    bins = np.zeros(histogram.HISTOGRAM_BINS, dtype=np.int64)
    token_bins(np.array([48, 52]), bins)
    assert histogram.histogram_quantile_tokens(bins, 0.0) == 48.0
