"""The public face of the simulator: arguments, copies, statistics."""

import copy
import math
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from edgegym.simulator import Fleet
from edgegym.simulator.histogram import RELATIVE_ERROR, bin_edges_s, histogram_quantile_s
from edgegym.simulator.layouts import draw_node_count
from edgegym.world import preset, presets
from edgegym.world.rounding import largest_remainder
from tests.simulator.fleets import scenario


def busy_fleet():
    fleet = Fleet(preset("moving-hotspot"), seed=4)
    fleet.advance(20.0)
    fleet.start_move(*np.argwhere(fleet.legal_moves())[5])
    fleet.advance(0.5)
    return fleet


def assert_same(one: Fleet, other: Fleet) -> None:
    for left, right in zip(one.state, other.state, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize(
    "copier",
    [
        Fleet.fork,
        copy.deepcopy,
        copy.copy,
        lambda fleet: pickle.loads(pickle.dumps(fleet)),
    ],
)
def test_a_copy_continues_identically_and_by_itself(copier):
    fleet = busy_fleet()
    twin, other = copier(fleet), copier(fleet)
    move = np.argwhere(other.legal_moves())[0]
    other.start_move(*move)
    other.advance(50.0)
    assert fleet.now_s == twin.now_s == 20.5
    for _ in range(20):
        assert fleet.advance(5.0) == twin.advance(5.0)
        move = np.argwhere(fleet.legal_moves())[3]
        fleet.start_move(*move)
        twin.start_move(*move)
    assert_same(fleet, twin)


def test_state_can_be_taken_and_put_back_even_into_a_fleet_with_another_seed():
    fleet, other = busy_fleet(), Fleet(preset("moving-hotspot"), seed=5)
    state = fleet.get_state()
    first = fleet.advance(100.0)
    fleet.set_state(state)
    other.set_state(state)
    assert other.seed == 4
    assert fleet.advance(100.0) == first == other.advance(100.0)
    assert_same(fleet, other)


def test_a_state_of_another_world_is_refused():
    with pytest.raises(ValueError, match=r"state.node_x has shape \(1, 2\): this fleet's is"):
        busy_fleet().set_state(Fleet(preset("toy")).get_state())


@pytest.mark.parametrize("seconds", [-1.0, math.nan, math.inf, -1e-9])
def test_bad_spans_are_refused(seconds):
    fleet = Fleet(preset("toy"))
    with pytest.raises(ValueError, match=r"seconds = .*: must be finite and at least 0"):
        fleet.advance(seconds)
    assert fleet.now_s == 0.0


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "1", True, None])
def test_bad_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed = "):
        Fleet(preset("toy"), seed)


def test_large_and_numpy_seeds_are_accepted():
    assert Fleet(preset("toy"), 2**64 - 1).seed == 2**64 - 1
    assert Fleet(preset("toy"), np.uint64(2**63)).seed == 2**63


def test_tier_waits_are_checked():
    tier = preset("paper").with_overrides({"routing.advertised_wait": "tier"})
    assert Fleet(tier, tier_wait_s=[0.1, 0.2, 0.3]).state.tier_wait_s[0].tolist() == [0.1, 0.2, 0.3]
    for wait, words in (
        (None, "is missing"),
        ([0.1], r"shape \(1,\)"),
        ([0.1, -0.2, 0.3], "at least 0"),
        ([0.1, np.inf, 0.3], "finite"),
    ):
        with pytest.raises(ValueError, match=f"tier_wait_s.*{words}"):
            Fleet(tier, tier_wait_s=wait)
    with pytest.raises(ValueError, match=r"only used with routing\.advertised_wait = 'tier'"):
        Fleet(preset("paper"), tier_wait_s=[0.1, 0.2, 0.3])


@pytest.mark.parametrize("name", presets())
def test_every_preset_runs(name):
    window = Fleet(preset(name), seed=1).advance(60.0)
    assert window.arrivals > 0
    assert 0.0 <= window.coverage <= 1.0
    assert window.ttft_quantile_s(0.5) <= window.ttft_quantile_s(0.9)


def test_an_empty_window_has_no_mean():
    window = Fleet(preset("toy")).advance(0.0)
    assert window.seconds == 0.0
    assert math.isnan(window.coverage)
    assert math.isnan(window.mean_ttft_s)
    assert math.isnan(window.ttft_quantile_s(0.5))
    assert (window.utilization == 0.0).all()
    assert (window.prefill_utilization == 0.0).all()


def test_quantiles_are_within_the_stated_error():
    rng = np.random.default_rng(1)
    values = np.sort(rng.lognormal(-1.0, 1.5, 20_000))
    histogram = np.histogram(values, bins=bin_edges_s())[0]
    for quantile in (0.01, 0.1, 0.5, 0.9, 0.99, 0.999):
        exact = values[math.ceil(quantile * len(values)) - 1]
        assert histogram_quantile_s(histogram, quantile) == pytest.approx(exact, rel=RELATIVE_ERROR)
    assert histogram_quantile_s(histogram, 0.0) == pytest.approx(values[0], abs=1e-3)
    with pytest.raises(ValueError, match=r"quantile = 1\.5"):
        histogram_quantile_s(histogram, 1.5)


def test_simulated_quantiles_are_those_of_the_components():
    fleet = Fleet(scenario(nodes={"count": 1}, radio={"xi": 1e-9, "alpha": 2.0}), seed=1)
    window = fleet.advance(3000.0)
    assert window.mean_ttft_s == pytest.approx(window.ttft_sum_s / window.first_tokens)
    middle = (bin_edges_s()[:-1] + np.append(bin_edges_s()[1:-1], 2.0**14)) / 2
    mean = (window.ttft_histogram * middle).sum() / window.first_tokens
    assert mean == pytest.approx(window.mean_ttft_s, rel=RELATIVE_ERROR)


def test_initial_profiles_follow_the_mix_by_largest_remainders():
    world = preset("paper").with_overrides({"nodes": {"count": 40}})
    first, second = (Fleet(world, seed).state.profile[0] for seed in (1, 2))
    expected = largest_remainder(world.initial_mix, 40)
    assert np.bincount(first).tolist() == np.bincount(second).tolist() == expected.tolist()
    assert first.tolist() != second.tolist()


def test_node_counts_are_poisson_given_their_bounds():
    rng = np.random.default_rng(1)
    draws = np.array([draw_node_count(rng, 3.0, 6) for _ in range(20_000)])
    numbers = np.arange(1, 7)
    law = stats.poisson(3.0).pmf(numbers)
    counts = np.bincount(draws, minlength=7)[1:]
    assert stats.chisquare(counts, law / law.sum() * len(draws)).pvalue > 1e-3


def test_padding_nodes_stay_out_of_everything():
    fleet = Fleet(preset("paper"), seed=2)
    state, count = fleet.state, fleet.state.node_count[0]
    assert 1 <= count < fleet.world.max_nodes
    fleet.advance(50.0)
    assert not state.up[0, count:].any()
    assert not fleet.legal_moves()[count:].any()
    for name in ("active", "queued", "in_flight"):
        assert not getattr(state, name)[0, count:].any()


def test_runs_are_the_same_in_another_process():
    code = (
        "from edgegym.simulator import Fleet\n"
        "from edgegym.world import preset\n"
        "f = Fleet(preset('moving-hotspot'), seed=4)\n"
        "w = f.advance(30.0)\n"
        "print(w.counters.tolist(), w.busy_ticks.tolist(), f.state.node_x.tobytes().hex())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    fleet = Fleet(preset("moving-hotspot"), seed=4)
    window = fleet.advance(30.0)
    expected = (
        f"{window.counters.tolist()} {window.busy_ticks.tolist()} "
        f"{fleet.state.node_x.tobytes().hex()}"
    )
    assert run.stdout.strip() == expected


def test_dispersion_of_utilisations_leaves_padding_out():
    world = scenario(nodes={"density_per_km2": 0.04, "max_count": 12})
    fleet = Fleet(world, seed=2)
    window = fleet.advance(20.0)
    count = int(fleet.state.node_count[0])
    assert 2 <= count < 12
    for name in ("utilization", "prefill_utilization"):
        expected = np.std(getattr(window, name)[:count])
        assert getattr(window, f"{name}_deviation") == pytest.approx(expected, rel=1e-12)
        assert expected > 0.0
    assert math.isnan(fleet.advance(0.0).utilization_deviation)
