"""The critical load and its bounds: closed forms, published values, the solver on both sides."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.analytic import (
    capacity_intensity,
    critical_intensity,
    lp_intensity,
    solve_equilibrium,
)
from tests.analytic.networks import paper_network, random_network


def masked_network(seed, share, **changes):
    """Return a random network in which a tier may not serve a type with this probability."""
    net = random_network([41, seed])
    rng = np.random.default_rng([42, seed])
    mask = rng.random(net.prefill_s.shape) >= share
    mask[rng.integers(len(mask)), ~mask.any(axis=0)] = True
    return dataclasses.replace(net, servable=mask, **changes)


def at(net, intensity):
    # So near the critical load, rounding leaves residuals above the usual tolerance.
    return solve_equilibrium(dataclasses.replace(net, request_intensity=intensity), tolerance=1e-6)


def test_published_values():
    net = paper_network()
    assert critical_intensity(net) == pytest.approx(10.66, abs=0.005)
    assert lp_intensity(net) == pytest.approx(10.72, abs=0.005)
    assert capacity_intensity(net) == pytest.approx(16.9, abs=0.05)


def test_one_tier_saturates_at_its_capacity():
    net = paper_network(
        profile_probabilities=[0.0, 0.0, 1.0],
        density_per_km2=2.0,
    )
    expected = 2.0 * 9 / (net.occupancy_s[2] @ net.type_probabilities)
    for bound in (critical_intensity, lp_intensity, capacity_intensity):
        assert bound(net) == pytest.approx(expected, rel=1e-9)


def test_equal_occupancies_leave_no_gap():
    # Where every request takes as long everywhere, all bounds are the total of all slots.
    net = paper_network(hit_tokens=np.zeros((3, 2)), input_tokens=[1000, 1000])
    expected = net.tier_density @ net.concurrency / net.occupancy_s[0, 0]
    for bound in (critical_intensity, lp_intensity, capacity_intensity):
        assert bound(net) == pytest.approx(expected, rel=1e-8)


def test_only_some_tiers_saturate():
    # The long type may be served by the deep tier only: that saturates, however idle the others.
    net = paper_network(servable=[[1, 0], [1, 0], [1, 1]])
    expected = 0.2 * 9 / (0.6 * net.occupancy_s[2, 1])
    assert critical_intensity(net) == pytest.approx(expected, rel=1e-8)
    above = at(net, 1.001 * expected)
    np.testing.assert_array_equal(above.stable_tiers, [True, True, False])


def test_separate_fleets_saturate_one_by_one():
    net = paper_network(profile_probabilities=[0.5, 0.0, 0.5], servable=[[1, 0], [0, 0], [0, 1]])
    short = 0.5 * 16 / (0.4 * net.occupancy_s[0, 0])
    long = 0.5 * 9 / (0.6 * net.occupancy_s[2, 1])
    assert critical_intensity(net) == pytest.approx(min(short, long), rel=1e-8)


@pytest.mark.parametrize("block", range(3))
def test_an_equilibrium_exists_below_and_not_above(block):
    for k in range(20 * block, 20 * (block + 1)):
        net = random_network([40, k])
        limit = critical_intensity(net)
        below = at(net, 0.999 * limit)
        assert below.converged, k
        assert below.stable, k
        above = at(net, 1.001 * limit)
        assert not above.converged, k
        assert not above.stable, k


def test_an_equilibrium_exists_below_and_not_above_with_masks():
    for k in range(30):
        # Steep path loss and long waits leave too few digits for the solver so near the limit.
        net = masked_network(k, (0.3, 0.5, 0.7)[k % 3], radio_alpha=1.5 + (k % 5) / 2.5)
        limit = critical_intensity(net)
        below = at(net, 0.999 * limit)
        assert below.converged, k
        assert below.stable, k
        assert not at(net, 1.001 * limit).stable, k


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), share=st.sampled_from([0.0, 0.3, 0.6]))
def test_critical_is_at_most_lp_and_that_at_most_capacity(seed, share):
    net = masked_network(seed, share)
    critical, lp, capacity = critical_intensity(net), lp_intensity(net), capacity_intensity(net)
    assert 0 < critical <= lp * (1 + 1e-7)
    assert lp <= capacity * (1 + 1e-9)


def test_own_load_does_not_matter_and_density_scales():
    net = paper_network(3.0)
    limit = critical_intensity(net)
    assert critical_intensity(paper_network(50.0)) == limit
    # Twice the nodes at 1 / sqrt(2) of the distances, radio costs kept: twice the load.
    denser = paper_network(3.0, density_per_km2=2.0, radio_xi=net.radio_xi * 2.0)
    assert critical_intensity(denser) == pytest.approx(2.0 * limit, rel=1e-8)


def test_no_tier_for_any_request():
    net = paper_network(profile_probabilities=[1.0, 0.0, 0.0], servable=[[0, 0], [1, 1], [1, 1]])
    for bound in (critical_intensity, lp_intensity, capacity_intensity):
        assert bound(net) == math.inf
        with pytest.raises(TypeError, match="must be a TieredNetwork"):
            bound(None)


@pytest.mark.parametrize("changes", [{"radio_xi": 1e-12}, {"radio_alpha": 100.0}])
def test_a_limit_that_is_not_found_is_no_number(changes):
    # Waits that are needed are far below or above what a distance costs.
    net = paper_network(**changes)
    assert math.isfinite(lp_intensity(net))
    with pytest.raises(ArithmeticError, match="could only be found to lie between"):
        critical_intensity(net)


def test_a_tier_with_hardly_any_node_changes_nothing():
    rare = paper_network(profile_probabilities=[1 - 1e-12, 1e-12, 0.0])
    without = paper_network(profile_probabilities=[1.0, 0.0, 0.0])
    for bound in (critical_intensity, lp_intensity):
        assert bound(rare) == pytest.approx(bound(without), rel=1e-6)


@pytest.mark.parametrize("share", [1e-4, 1e-6, 1e-8])
def test_the_bound_of_a_rare_tier_is_as_exact_as_any(share):
    # Each tier alone may serve a type: the fuller of the two sets the limit.
    net = paper_network(
        profile_probabilities=[1 - share, share, 0.0],
        servable=[[1, 0], [0, 1], [0, 0]],
        type_probabilities=[1 - share, share],
    )
    room = net.tier_density[:2] * net.concurrency[:2]
    needed = net.type_probabilities * np.diag(net.occupancy_s)
    assert lp_intensity(net) == pytest.approx((room / needed).min(), rel=1e-9)
