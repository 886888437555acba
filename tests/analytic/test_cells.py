"""Sizes of cells, and what nodes of unequal size deliver."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.spatial import KDTree

from edgegym.analytic import (
    MixedService,
    cell_size_moments,
    erlang_c,
    evaluate,
    evaluate_dispersed,
    nearest_association,
    solve_equilibrium,
)
from edgegym.analytic.cells import lens_area
from edgegym.analytic.load_spread import equal_parts, tilted_square, unit_scale, weibull_shape
from tests.analytic.networks import oracle_network, paper_network

# Variance of the area of a planar Poisson-Voronoi cell over its mean squared (Gilbert 1962).
VORONOI = 0.280176
TARGET_S = 0.8


def one_tier(**changes):
    return paper_network(profile_probabilities=[1.0, 0.0, 0.0], **changes)


@pytest.mark.parametrize(
    ("radii", "distance"),
    [((1.0, 1.0), 0.7), ((0.5, 1.3), 1.0), ((2.0, 0.4), 1.9), ((1.0, 2.0), 0.9), ((1.0, 1.0), 2.1)],
)
def test_lens_is_the_area_in_both_discs(radii, distance):
    def height(x: float) -> float:
        one, other = radii[0] ** 2 - x**2, radii[1] ** 2 - (x - distance) ** 2
        return 2.0 * math.sqrt(max(min(one, other), 0.0))

    low, high = max(-radii[0], distance - radii[1]), min(radii[0], distance + radii[1])
    area = integrate.quad(height, low, high, limit=200)[0] if high > low else 0.0
    assert lens_area(*radii, distance) == pytest.approx(area, abs=1e-6)


@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("density", [0.2, 5.0])
def test_one_tier_has_voronoi_cells(alpha, density):
    net = one_tier(radio_alpha=alpha, density_per_km2=density)
    cells = cell_size_moments(net, solve_equilibrium(net))
    assert cells.mean_area_km2[0] == pytest.approx(1.0 / density, rel=1e-9)
    assert cells.relative_variance[0] == pytest.approx(VORONOI, abs=1e-3)
    assert (cells.relative_variance[1:] == 0).all()


def test_nearest_node_routing_has_voronoi_cells_in_all_tiers():
    net = paper_network()
    cells = cell_size_moments(net, solve_equilibrium(net, policy="nearest"))
    np.testing.assert_allclose(cells.relative_variance, VORONOI, atol=1e-3)


@pytest.mark.parametrize("policy", ["load_aware", "queue_unaware"])
@pytest.mark.parametrize("case", ["paper_load_3", "paper_load_4"])
def test_means_are_those_of_the_association_law(case, policy):
    net = oracle_network(case)
    eq = solve_equilibrium(net, policy=policy)
    cells = cell_size_moments(net, eq)
    expected = eq.association / net.tier_density[:, None]
    np.testing.assert_allclose(cells.mean_area_km2, expected, rtol=1e-8)
    np.testing.assert_allclose(cells.mean_load, eq.utilization * net.concurrency, rtol=1e-8)


def simulated_products(net, eq, tori, side_km=20.0, places=40_000):
    """Return the mean products of areas ``[tori, S, Q, Q]`` on random tori."""
    rng = np.random.default_rng(5)
    costs = net.prefill_s + eq.assumed_wait_s[:, None]
    count, tiers = int(side_km**2 * net.density_per_km2), net.num_profiles
    km2_per_place = side_km**2 / places
    products = np.empty((tori, tiers, net.num_types, net.num_types))
    for torus in range(tori):
        nodes = rng.random((count, 2)) * side_km
        tier = rng.choice(tiers, count, p=net.profile_probabilities)
        area = np.empty((count, net.num_types))
        for q in range(net.num_types):
            place = rng.random((places, 2)) * side_km
            # Of each tier only the nearest node is a candidate.
            cost, candidate = np.empty((tiers, places)), np.empty((tiers, places), int)
            for s in range(tiers):
                members = np.flatnonzero(tier == s)
                distance, found = KDTree(nodes[members], boxsize=side_km).query(place)
                cost[s] = net.radio_xi * distance**net.radio_alpha + costs[s, q]
                candidate[s] = members[found]
            chosen = candidate[cost.argmin(axis=0), np.arange(places)]
            area[:, q] = np.bincount(chosen, minlength=count) * km2_per_place
        for s in range(tiers):
            mine = area[tier == s]
            # The number of places in a cell is Poisson: take its own variance off.
            noise = np.diag(mine.mean(axis=0) * km2_per_place)
            products[torus, s] = mine.T @ mine / len(mine) - noise
    return products


@pytest.mark.parametrize("alpha", [2.0, 3.0])
def test_second_moments_are_those_of_simulated_cells(alpha):
    net = paper_network(radio_alpha=alpha)
    eq = solve_equilibrium(net)
    tori = 8
    found = simulated_products(net, eq, tori)
    error = found.std(axis=0, ddof=1) / math.sqrt(tori)
    half_width = stats.t(tori - 1).ppf(0.9995) * error
    predicted = cell_size_moments(net, eq).area_product_km4
    assert (half_width < 0.6 * predicted).all()
    assert (np.abs(found.mean(axis=0) - predicted) < half_width).all()


def test_empty_tiers_and_types_that_a_tier_may_not_serve_have_no_cells():
    net = paper_network(
        profile_probabilities=[0.5, 0.0, 0.5], servable=[[True, True], [True, True], [True, False]]
    )
    cells = cell_size_moments(net, solve_equilibrium(net))
    assert (cells.mean_area_km2[1] == 0).all()
    assert cells.mean_area_km2[2, 1] == 0
    assert (cells.area_product_km4[2, 1] == 0).all()
    assert (cells.relative_variance[[0, 2]] > 0).all()
    assert cells.relative_variance[1] == 0


def test_moments_of_another_network_are_refused():
    eq = solve_equilibrium(paper_network())
    with pytest.raises(ValueError, match="must be solved for this network"):
        cell_size_moments(paper_network(request_intensity=4.0), eq)
    with pytest.raises(ValueError, match="must be solved for this network"):
        evaluate_dispersed(paper_network(request_intensity=4.0), eq, TARGET_S)
    with pytest.raises(TypeError, match="must be an Equilibrium"):
        cell_size_moments(paper_network(), None)  # pyright: ignore[reportArgumentType]
    nothing: Any = None
    for call in (
        lambda: cell_size_moments(nothing, eq),
        lambda: evaluate_dispersed(nothing, eq, TARGET_S),
        lambda: nearest_association(nothing),
    ):
        with pytest.raises(TypeError, match="net is None: must be a TieredNetwork"):
            call()


@pytest.mark.parametrize("shape", [0.4, 1.0, 3.0])
def test_weibull_law(shape):
    law = stats.weibull_min(shape)
    variance = law.var() / law.mean() ** 2
    assert weibull_shape(variance) == pytest.approx(shape, rel=1e-9)
    assert unit_scale(shape) == pytest.approx(1.0 / law.mean(), rel=1e-12)
    parts = equal_parts(variance, 4000)
    assert parts.mean() == pytest.approx(1.0)
    if shape >= 1:
        assert parts.var() == pytest.approx(variance, rel=1e-2)


@pytest.mark.parametrize("shape", [0.7, 1.0, 3.0])
def test_size_biased_law_has_the_square_that_reweighting_gives(shape):
    law = stats.weibull_min(shape, scale=1.0 / stats.weibull_min(shape).mean())
    square, cube = law.moment(2), law.moment(3)
    assert tilted_square(shape, square) == pytest.approx(cube, rel=1e-6)


@pytest.mark.parametrize("load", [0.0, 1e-3])
def test_without_load_nothing_is_lost(load):
    net = paper_network(request_intensity=load)
    eq = solve_equilibrium(net)
    dispersed = evaluate_dispersed(net, eq, TARGET_S)
    assert dispersed.coverage == pytest.approx(evaluate(net, eq, TARGET_S).coverage, abs=1e-6)
    assert dispersed.overloaded_requests == pytest.approx(0.0, abs=1e-6)


def test_coverage_of_nearest_node_routing_is_an_integral_over_the_load():
    # One tier, one type and a radio that takes no time: whether a request is in time depends on its
    # node's load alone, and the law of that is known.
    net = one_tier(
        radio_xi=1e-9,
        input_tokens=[1024],
        hit_tokens=[[0], [256], [768]],
        type_probabilities=[1.0],
        request_intensity=9.0,
    )
    eq = solve_equilibrium(net, policy="nearest")
    cells = cell_size_moments(net, eq)
    slots, mean = int(net.concurrency[0]), cells.mean_load[0]
    variance = cells.relative_variance[0]
    shape = weibull_shape(variance)
    law = stats.weibull_min(shape, scale=mean * unit_scale(shape))
    density: Any = law.pdf  # pyright: ignore[reportAttributeAccessIssue]
    slack = TARGET_S - net.prefill_s[0, 0]

    def in_time(load: float) -> float:
        late = erlang_c(slots, load) * math.exp(-eq.service_rate[0] * (slots - load) * slack)
        # Who sees a cell sees it in proportion to its size.
        return density(load) * load / mean * (1.0 - late)

    expected = integrate.quad(in_time, 0.0, slots, limit=200)[0]
    found = evaluate_dispersed(net, eq, TARGET_S)
    # The library's law given the distance is a Weibull law too, and so is not quite the same.
    assert found.coverage == pytest.approx(expected, abs=0.01)
    assert found.overloaded_nodes[0] == pytest.approx(law.sf(slots), abs=1e-9)
    assert found.utilization_deviation[0] == pytest.approx(math.sqrt(variance) * mean / slots)


def test_busy_slots_are_at_most_all():
    net = replace(paper_network(), request_intensity=7.0)
    found = evaluate_dispersed(net, solve_equilibrium(net), TARGET_S)
    assert (found.busy_mean <= found.utilization_mean + 1e-12).all()
    assert (found.busy_deviation <= found.utilization_deviation).all()
    assert found.busy_mean[2] < 0.9 < found.utilization_mean[2]
    assert found.coverage == pytest.approx(
        float(found.coverage_by_type @ net.type_probabilities), abs=1e-12
    )


def test_refuses_queues_that_are_not_its_own():
    net = paper_network()
    eq = solve_equilibrium(net, queue=MixedService())
    with pytest.raises(ValueError, match=r"eq.queue is MixedService\(\)"):
        evaluate_dispersed(net, eq, TARGET_S)
