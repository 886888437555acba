"""Bursts: an exact two-state Markov chain that any span can be made of by itself."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgegym.simulator.bursts import BurstStream, Chain, peak_bursts
from edgegym.simulator.generators import NumberedStream
from edgegym.simulator.stream import RequestStream
from edgegym.world.demand import Mmpp
from tests.simulator.fleets import scenario
from tests.simulator.requests import requests

CALM_S, BURST_S, LEVEL = 6.0, 2.0, 3.0
BURSTS = {"kind": "mmpp", "burst_level": LEVEL, "burst_s": BURST_S, "calm_s": CALM_S}


def chain(seed=0, span_s=10.0, calm_s=CALM_S, burst_s=BURST_S):
    return Chain(calm_s, burst_s, span_s, NumberedStream(seed, "mmpp-0"))


def world(*modulations, **overrides):
    demand = {"rate_per_node": 1.0, "modulations": list(modulations)}
    return scenario(demand=demand, **overrides).compile()


def state_at(times, states, when):
    return states[np.searchsorted(times, when, side="right") - 1]


@given(
    seed=st.integers(0, 2**64 - 1),
    span_s=st.floats(0.01, 100.0),
    cuts=st.lists(st.floats(0.0, 300.0), min_size=1, max_size=6),
)
def test_any_span_is_that_of_the_whole(seed, span_s, cuts):
    times, states = chain(seed, span_s).states(0.0, 300.0)
    assert times[0] == 0.0
    assert (np.diff(times) > 0.0).all()
    assert (states[1:] != states[:-1]).all()
    edges = np.unique([0.0, *cuts, 300.0])
    for start, end in list(pairwise(edges))[::-1]:
        part_times, part_states = chain(seed, span_s).states(start, end)
        inside = (times > start) & (times < end)
        assert part_times[0] == start
        np.testing.assert_array_equal(part_times[1:], times[inside])
        np.testing.assert_array_equal(part_states[1:], states[inside])
        assert part_states[0] == state_at(times, states, start)


def test_sojourns_are_exponential_and_the_chain_begins_stationary():
    times, states = chain().states(0.0, 40_000.0)
    sojourns, kind = np.diff(times)[1:], states[1:-1]
    assert stats.kstest(sojourns[kind], stats.expon(scale=BURST_S).cdf).pvalue > 1e-3
    assert stats.kstest(sojourns[~kind], stats.expon(scale=CALM_S).cdf).pvalue > 1e-3
    first = [chain(seed).states(0.0, 1.0)[1][0] for seed in range(2000)]
    share = BURST_S / (BURST_S + CALM_S)
    assert stats.binomtest(int(np.sum(first)), 2000, share).pvalue > 1e-3


def mmpp_moments(rate_per_s):
    """Return mean and rate covariance at distance 0, and its rate of decay, of the closed form."""
    share = BURST_S / (BURST_S + CALM_S)
    calm = (1.0 - share * LEVEL) / (1.0 - share)
    variance = share * (1.0 - share) * (rate_per_s * (LEVEL - calm)) ** 2
    return rate_per_s, variance, 1.0 / CALM_S + 1.0 / BURST_S


def test_index_of_dispersion_is_that_of_the_mmpp():
    """Within 4 standard errors, estimated from the same windows: about 3 % of the value."""
    times = requests(world(BURSTS), 5, 500)[0]
    mean, variance, decay = mmpp_moments(5.0)
    for window_s in (0.5, 3.0):
        # A gap of 15 mean times of the chain between windows leaves nothing of the dependence.
        begins = np.arange(0.0, times[-1] - window_s, window_s + 15.0 / decay)
        counts = np.searchsorted(times, begins + window_s) - np.searchsorted(times, begins)
        lost = (1.0 - np.exp(-decay * window_s)) / (decay * window_s)
        expected = 1.0 + 2.0 * variance / (mean * decay) * (1.0 - lost)
        centred = (counts - mean * window_s) ** 2 / (mean * window_s)
        error = centred.std() / np.sqrt(len(counts))
        assert error < 0.05 * expected
        assert abs(centred.mean() - expected) < 4.0 * error
        count_error = counts.std() / np.sqrt(len(counts))
        assert abs(counts.mean() - mean * window_s) < 4.0 * count_error


def test_autocovariance_decays_as_that_of_the_mmpp():
    """Within 4 standard errors over 100 batches."""
    times = requests(world(BURSTS), 6, 500)[0]
    mean, variance, decay = mmpp_moments(5.0)
    bin_s, bins = 0.5, int(times[-1] / 0.5)
    counts = np.histogram(times, bins=bins, range=(0.0, bins * bin_s))[0] - mean * bin_s
    for lag in (1, 2, 5):
        products = counts[:-lag] * counts[lag:]
        batches = np.array([batch.mean() for batch in np.array_split(products, 100)])
        error = batches.std() / 10.0
        expected = variance * np.exp(-decay * bin_s * (lag - 1))
        expected *= ((1.0 - np.exp(-decay * bin_s)) / decay) ** 2
        assert error < 0.1 * expected
        assert abs(batches.mean() - expected) < 4.0 * error


def test_bursts_of_some_families_leave_the_others_poisson():
    times, *_, kind = requests(world(BURSTS | {"families": ["code"]}), 5, 300)
    for family, bursty in ((0, False), (1, True)):
        counts = np.histogram(times[kind == family], np.arange(0.0, times[-1] - 2.0, 2.0))[0]
        assert counts.mean() == pytest.approx(5.0, rel=0.02 if not bursty else 0.05)
        dispersion = counts.var() / counts.mean()
        if bursty:
            assert dispersion > 2.0
        else:
            # A Poisson count has variance 1 ± sqrt(2 / n) times its mean.
            assert abs(dispersion - 1.0) < 4.0 * np.sqrt(2.0 / len(counts))


def test_several_chains_are_independent_and_multiply():
    other = {"kind": "mmpp", "burst_level": 1.5, "burst_s": 1.0, "calm_s": 1.0}
    both = BurstStream(world(BURSTS | {"families": ["chat"]}, other), 3, 10.0)
    bursts = both.over(0.0, 20_000.0)
    alone = chain(3).states(0.0, 20_000.0)
    share = BURST_S / (BURST_S + CALM_S)
    calm = (1.0 - share * LEVEL) / (1.0 - share)
    first = np.where(state_at(*alone, bursts.start_s), LEVEL, calm)
    second = bursts.level[:, 1]
    assert set(np.unique(second)) == {0.5, 1.5}
    np.testing.assert_allclose(bursts.level[:, 0], first * second)
    held = np.diff(np.append(bursts.start_s, 20_000.0))
    # The time average of a chain of two states over T has variance 2 v / (decay T).
    error = np.sqrt(2.0 * first.var() / (2 / 3 * 20_000.0))
    assert abs(np.average(first, weights=held) - 1.0) < 5.0 * error
    assert abs(np.average(bursts.level[:, 0], weights=held) - 1.0) < 0.05
    np.testing.assert_allclose(peak_bursts(world(BURSTS, other)), [4.5, 4.5])


def test_levels_are_normalised_to_the_long_run_mean():
    bursts = Mmpp(burst_level=3.0, burst_s=2.0, calm_s=6.0)
    assert bursts.burst_share == 0.25
    assert bursts.calm_level == pytest.approx(1.0 / 3.0)
    assert Mmpp(burst_level=4.0, burst_s=2.0, calm_s=6.0).calm_level == 0.0
    compiled, plain = world(BURSTS), world()
    assert compiled.mean_rate_per_s == plain.mean_rate_per_s
    np.testing.assert_array_equal(compiled.family_share, plain.family_share)


def test_fast_chains_get_short_blocks():
    """A block holds at most 65,536 expected changes, however rare requests are."""
    rare = {
        "rate_per_node": 1e-6,
        "modulations": [{"kind": "mmpp", "burst_level": 1.5, "burst_s": 0.001, "calm_s": 0.001}],
    }
    stream = RequestStream(scenario(demand=rare).compile(), 0)
    assert stream.block_s == pytest.approx(65536 / 2000.0)
    assert len(stream.bursts.over(0.0, stream.block_s).start_s) < 40_000
