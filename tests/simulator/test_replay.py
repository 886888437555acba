"""Replayed traces: the file's order and lengths, at the demand's rate."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from edgegym.simulator.replay import Replay
from edgegym.simulator.stream import RequestStream
from edgegym.traces import build_from_trace, read_trace
from tests.simulator.fleets import scenario
from tests.simulator.replays import replay_modulation, write_requests
from tests.simulator.requests import requests_and_lengths
from tests.traces.sample import REAL_MOONCAKE

EVEN_CYCLE_S = 50.0
"""Of `replay_modulation`: 200 requests, one each 0.25 s."""


def world(modulation, *others, rate_per_node=1.0):
    demand = {"rate_per_node": rate_per_node, "modulations": [modulation, *others]}
    return scenario(demand=demand).compile()


def whole(world, seed=0, seconds=200.0):
    """Return time, type, input and output tokens of the first requests, ``[4, n]``."""
    blocks = int(np.ceil(seconds / RequestStream(world, seed).block_s))
    drawn, lengths = requests_and_lengths(world, seed, blocks)
    return np.concatenate((drawn[[0, 4]], lengths))[:, drawn[0] < seconds]


def test_every_request_comes_in_order_with_its_lengths(tmp_path):
    """At 5 requests/s of 4 recorded ones, the file passes in 40 s instead of 50."""
    times, kind, inputs, outputs = whole(world(replay_modulation(tmp_path, quantum_s=0.0)))
    assert len(times) == 1000
    number = np.arange(1000) % 200
    np.testing.assert_array_equal(kind, number % 2)
    np.testing.assert_array_equal(inputs, 1000 + 2 * number)
    np.testing.assert_array_equal(outputs, 1 + number % 50)
    np.testing.assert_allclose(times, 0.2 * np.arange(1000), atol=1e-9)


def test_the_demand_sets_the_pace(tmp_path):
    fast = whole(world(replay_modulation(tmp_path), rate_per_node=10.0), seconds=8.0)
    assert fast.shape[1] == pytest.approx(400, abs=1)


def test_without_repeating_nothing_follows(tmp_path):
    times, *_ = whole(world(replay_modulation(tmp_path, repeat=False)), seconds=2000.0)
    assert len(times) == 200
    assert times.max() < 40.0


def test_what_is_kept_is_drawn_for_each_episode_and_cycle(tmp_path):
    """A share of 0.3 at the same mean rate: the file passes 0.3 times as slowly."""
    modulation = replay_modulation(tmp_path, keep=0.3)
    compiled = world(modulation)
    stream = RequestStream(compiled, 1)
    assert stream.replay is not None
    assert stream.replay.stretch == pytest.approx(0.3 * 0.8)
    chosen = [Replay(compiled, seed, 5.0).over(0.0, 0.24 * 500.0)[1] for seed in (1, 2)]
    assert chosen[0].tolist() != chosen[1].tolist()
    for index in chosen:
        assert stats.binomtest(len(index), 2000, 0.3).pvalue > 1e-3
        cycles = np.split(index, np.flatnonzero(np.diff(index) < 0) + 1)
        assert len(cycles) == 10
        assert len({tuple(cycle) for cycle in cycles}) == 10
        assert all((np.diff(cycle) > 0).all() for cycle in cycles)


def test_a_random_start_is_uniform_over_the_cycle_and_wraps(tmp_path):
    compiled = world(replay_modulation(tmp_path, random_start=True, quantum_s=0.0))
    starts = []
    for seed in range(300):
        replay = Replay(compiled, seed, 4.0)
        times, index = replay.over(0.0, EVEN_CYCLE_S)
        assert sorted(index) == list(range(200))
        np.testing.assert_array_equal(np.diff(index) % 200, 1)
        assert times[0] <= 0.25
        starts.append(replay.begin_s / EVEN_CYCLE_S)
    assert stats.kstest(starts, "uniform").pvalue > 1e-3


def test_equal_times_are_spread_over_their_step_in_order(tmp_path):
    """100 batches of 20 requests, 3 s apart give or take a millisecond."""
    rng = np.random.default_rng(0)
    batches = np.round(3.0 * np.arange(100) + 1e-3 * rng.integers(-1, 2, 100), 3).clip(0.0)
    rows = [
        (time, ("chat", "code")[k % 2], 1000 + k, 1 + b)
        for b, time in enumerate(batches.tolist())
        for k in range(20)
    ]
    path = write_requests(tmp_path / "batches.csv", rows)
    compiled = world({"kind": "trace", "path": str(path)})
    assert compiled.replay.spread_s.max() == pytest.approx(3.0, abs=1.1e-3)
    cycle_s = compiled.replay.cycle_s
    times, index = Replay(compiled, 5, len(rows) / cycle_s).over(0.0, cycle_s)
    recorded = compiled.replay.begin_s[index]
    later = times - recorded
    np.testing.assert_array_equal(index, np.arange(2000))
    assert (np.diff(times) >= 0.0).all()
    assert (later >= -1e-9).all()
    assert (later <= 3.002).all()
    assert stats.kstest(later / compiled.replay.spread_s[index], "uniform").pvalue > 1e-3


@st.composite
def files(draw):
    """Return requests with equal times, times apart, and bursts."""
    gaps = draw(st.lists(st.sampled_from([0.0, 0.0, 0.001, 0.5, 3.0]), min_size=3, max_size=40))
    times = np.cumsum([0.0, *gaps[: len(gaps) // 2 * 2], 1.0])
    return [(float(t), ("chat", "code")[k % 2], 1000 + k, 5) for k, t in enumerate(times)]


@settings(max_examples=60, deadline=None)
@given(
    rows=files(),
    quantum_s=st.sampled_from([None, 0.0, 0.4, 3.0]),
    keep=st.sampled_from([1.0, 0.5]),
    repeat=st.booleans(),
    seed=st.integers(0, 100),
    cuts=st.lists(st.floats(0.0, 400.0), max_size=8),
)
def test_spans_join_without_loss_or_repetition(
    tmp_path_factory, rows, quantum_s, keep, repeat, seed, cuts
):
    path = write_requests(tmp_path_factory.mktemp("replay") / "requests.csv", rows)
    modulation = {"kind": "trace", "path": str(path), "keep": keep, "repeat": repeat}
    if quantum_s is not None:
        modulation["quantum_s"] = quantum_s
    compiled = world(modulation | ({"random_start": True} if repeat else {}))
    replay = Replay(compiled, seed, 1.7)
    times, index = replay.over(0.0, 400.0)
    assert (np.diff(times) >= 0.0).all()
    edges = np.unique([0.0, *cuts, 400.0])
    parts = [replay.over(a, b) for a, b in pairwise(edges)]
    np.testing.assert_array_equal(times, np.concatenate([part[0] for part in parts]))
    np.testing.assert_array_equal(index, np.concatenate([part[1] for part in parts]))
    if keep == 1.0 and len(index):
        steps = np.diff(index) % len(rows)
        assert (steps == 1 % len(rows)).all()
        if repeat:
            cycles = 400.0 / (replay.stretch * compiled.replay.cycle_s)
            # All of a burst or none of it may lie at either end.
            assert abs(len(index) - cycles * len(rows)) <= 2 * len(rows)
        else:
            assert len(index) <= len(rows)


def test_swings_and_drifts_thin_the_file_at_the_same_mean(tmp_path):
    """Four times as many requests pass as are kept; what is kept stays in order."""
    swing = {"kind": "diurnal", "amplitude": 1.0, "period_s": 40.0, "phase": 0.0}
    bursts = {"kind": "mmpp", "burst_level": 2.0, "burst_s": 5.0, "calm_s": 5.0}
    compiled = world(replay_modulation(tmp_path), swing, bursts)
    times, kind, inputs, _ = whole(compiled, seconds=20_000.0)
    assert len(times) == pytest.approx(100_000, rel=0.05)
    stream = RequestStream(compiled, 0)
    assert stream.replay is not None
    assert stream.replay.stretch == pytest.approx(0.8 / 4.0)
    number = (inputs - 1000) / 2
    np.testing.assert_array_equal(kind, number % 2)
    # Two kept requests are apart by what passed of the file between them.
    passed = np.diff(times) / (0.25 * 0.8 / 4.0)
    steps = np.diff(number)
    np.testing.assert_allclose(200 * np.round((passed - steps) / 200), passed - steps, atol=1.01)
    # Between bursts the level is 0.
    levels = stream.bursts.over(0.0, 20_000.0)
    at = np.searchsorted(levels.start_s, times, side="right") - 1
    assert (levels.level[at, kind.astype(int)] == 2.0).all()
    day = np.histogram(times % 40.0, bins=4, range=(0.0, 40.0))[0] / len(times)
    expected = 0.25 + np.array([1, 1, -1, -1]) / (2 * np.pi)
    np.testing.assert_allclose(day, expected, atol=0.02)


def test_lengths_stay_with_their_requests_when_places_thin_them(tmp_path):
    """A day that depends on the place, a crowd on top, and a file whose lengths tell its types."""
    swing = {"kind": "diurnal", "amplitude": 1.0, "period_s": 40.0, "phase_turns_per_km": 0.1}
    crowd = {
        "kind": "flash_crowd",
        "families": ["chat"],
        "interval_s": 50.0,
        "duration_s": 20.0,
        "magnitude": 1.0,
        "sigma_km": 0.5,
    }
    compiled = world(replay_modulation(tmp_path), swing, crowd)
    times, kind, inputs, outputs = whole(compiled, seconds=4000.0)
    number = (inputs - 1000) / 2
    # A prompt of 1000 tokens and an output of 10 is one of the crowd: none in the file is like it.
    crowded = (inputs == 1000) & (outputs == 10)
    np.testing.assert_array_equal(kind[~crowded], number[~crowded] % 2)
    np.testing.assert_array_equal(outputs[~crowded], 1 + number[~crowded] % 50)
    assert (kind[crowded] == 0).all()
    assert abs(crowded.sum() - 8000) < 4 * np.sqrt(8000)
    assert (~crowded).sum() == pytest.approx(20_000, rel=0.05)
    passed = np.diff(times[~crowded]) / (0.25 * 0.8 / 2.0)
    steps = np.diff(number[~crowded])
    np.testing.assert_allclose(200 * np.round((passed - steps) / 200), passed - steps, atol=1.01)


def test_drifts_change_the_mix_of_the_file(tmp_path):
    drift = {"kind": "drift", "zipf_exponent": 2.0, "period_s": 100.0}
    compiled = world(replay_modulation(tmp_path), drift)
    demand = RequestStream(compiled, 0).demand
    times, kind, *_ = whole(compiled, seconds=10_000.0)
    assert len(times) == pytest.approx(50_000, rel=0.03)
    # Linear between shares of 0.8 and 0.2, twice in a period.
    rank = (demand.drift_rank[1] + 2 * (times / 100.0 + demand.drift_phase)) % 2
    share = np.interp(rank, [0, 1, 2], [0.8, 0.2, 0.8])
    low, high = kind[share < 0.35], kind[share > 0.65]
    assert low.mean() == pytest.approx(0.275, abs=0.02)
    assert high.mean() == pytest.approx(0.725, abs=0.02)


def test_crowds_come_on_top_with_the_lengths_of_their_types(tmp_path):
    crowd = {
        "kind": "flash_crowd",
        "families": ["code"],
        "interval_s": 100.0,
        "duration_s": 50.0,
        "magnitude": 2.0,
        "sigma_km": 0.5,
    }
    _, kind, inputs, outputs = whole(world(replay_modulation(tmp_path), crowd), seconds=4000.0)
    in_crowd = inputs == 600
    assert (outputs[in_crowd] == 20).all()
    assert (kind[in_crowd] == 1).all()
    # 5 requests/s from the file, and as many from the crowds: twice the rate half of the time.
    assert (~in_crowd).sum() == pytest.approx(20_000, abs=2)
    assert abs(in_crowd.sum() - 20_000) < 4 * np.sqrt(20_000)
    number = (inputs[~in_crowd] - 1000) / 2
    np.testing.assert_array_equal(np.diff(number) % 200, 1)


@pytest.mark.skipif(not REAL_MOONCAKE, reason="needs the Mooncake traces in ../shared/data")
@pytest.mark.parametrize("path", REAL_MOONCAKE, ids=lambda path: path.name)
def test_mooncake_replays_are_the_trace(path, tmp_path):
    trace = read_trace(path)
    build = build_from_trace(trace)
    build.requests.write(tmp_path / "requests.csv.gz")
    chosen, _ = build.replaying(tmp_path / "requests.csv.gz")
    compiled = chosen.compile()
    times, _, inputs, outputs = whole(compiled, seconds=1.2 * compiled.replay.cycle_s)
    size = trace.num_requests
    assert len(times) > 1.1 * size
    again = np.arange(len(times)) % size
    np.testing.assert_array_equal(inputs, trace.input_tokens[again])
    np.testing.assert_array_equal(outputs, trace.output_tokens[again])
    assert (np.diff(times) >= 0.0).all()
    # At the recorded rate, each within one step of the recorder.
    later = times[:size] - trace.arrival_s
    assert later.min() >= -1e-6
    assert later.max() <= compiled.replay.spread_s.max() + 1e-6
