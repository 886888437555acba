"""The smallest density for a reliability."""

from dataclasses import replace

import numpy as np
import pytest

from edgegym.analytic import (
    Exchange,
    SimplexGrid,
    evaluate,
    minimum_density,
    optimize_placement,
    solve_equilibrium,
)
from tests.analytic.networks import paper_network
from tests.analytic.placement.problems import small_problem


def coverage(net, density, target_s):
    other = replace(net, density_per_km2=density)
    return evaluate(other, solve_equilibrium(other), target_s).coverage


@pytest.mark.parametrize("reliability", [0.05, 0.3, 0.684, 0.9, 0.99])
def test_coverage_there_is_the_reliability(reliability):
    net = paper_network()
    density = minimum_density(net, ttft_target_s=0.8, reliability=reliability)
    assert coverage(net, density, 0.8) == pytest.approx(reliability, abs=1e-9)
    for part in np.linspace(0.2, 0.999, 12):
        assert coverage(net, part * density, 0.8) < reliability
    anywhere = replace(net, density_per_km2=50.0)
    assert minimum_density(anywhere, ttft_target_s=0.8, reliability=reliability) == density


def test_the_first_of_several_crossings_is_returned():
    # The coverage of this fleet rises to 0.89, falls to 0.81 and rises again.
    net, target_s, _ = small_problem(49)
    densities = np.geomspace(4.0, 30.0, 80)
    values = np.array([coverage(net, density, target_s) for density in densities])
    for reliability in (0.82, 0.89):
        crossings = np.flatnonzero((values[:-1] < reliability) & (values[1:] >= reliability))
        assert len(crossings) == 2
        found = minimum_density(net, ttft_target_s=target_s, reliability=reliability)
        assert densities[crossings[0]] <= found <= densities[crossings[0] + 1]


@pytest.mark.parametrize("seed", range(20))
def test_on_random_networks_no_smaller_density_does(seed):
    net, target_s, _ = small_problem(seed)
    reachable = net.type_probabilities @ (net.prefill_s < target_s).any(axis=0)
    reliability = 0.6 * float(reachable)
    density = minimum_density(net, ttft_target_s=target_s, reliability=reliability)
    assert coverage(net, density, target_s) == pytest.approx(reliability, abs=1e-9)
    smaller = np.geomspace(density / 10, density * (1 - 1e-6), 15)
    assert max(coverage(net, other, target_s) for other in smaller) < reliability


@pytest.mark.parametrize("limits", [{}, {"maximum": [1, 1, 0.2]}, {"budget_bytes": 2.0}])
@pytest.mark.parametrize("reliability", [0.3, 0.8])
def test_the_best_mix_needs_fewer_nodes(limits, reliability):
    net = paper_network(6.0, state_bytes=[0, 4, 7])
    task = {"ttft_target_s": 0.8, "reliability": reliability}
    best = minimum_density(net, **task, reoptimize=True, method=SimplexGrid(0.1), **limits)
    by_exchange = minimum_density(net, **task, reoptimize=True, **limits)
    mixes = [
        np.array([i, j, 10 - i - j]) / 10
        for i in range(11)
        for j in range(11 - i)
        if 10 - i - j <= 10 * limits.get("maximum", [1, 1, 1])[2]
        and 4 * j + 7 * (10 - i - j) <= 10 * limits.get("budget_bytes", 10)
        and i + j < 10  # without deep nodes, long requests are never in time
    ]
    every = [minimum_density(net.with_mix(mix), **task) for mix in mixes]
    assert best <= min(every) * (1 + 1e-9)
    assert by_exchange <= min(every) * (1 + 1e-9)
    assert by_exchange <= best * (1 + 1e-9)
    there = replace(net, density_per_km2=by_exchange * (1 + 1e-6))
    found = optimize_placement(there, ttft_target_s=0.8, **limits)
    assert found.coverage >= reliability
    assert found.coverage == pytest.approx(reliability, abs=1e-3)


def test_it_is_reported():
    lines = []
    density = minimum_density(
        paper_network(), ttft_target_s=0.8, reliability=0.5, reoptimize=True, report=lines.append
    )
    assert lines[-1].startswith(f"{density:.6g} nodes/km²")


def test_what_no_density_reaches_is_refused_with_the_limit():
    net = paper_network(state_bytes=[0, 4, 7])
    # In 0.3 s of prefill: short requests everywhere but uncached, long ones on deep nodes only.
    cold, deep = net.prefill_s[0], net.prefill_s[2]
    target_s = 0.5 * (cold[0] + cold[1])
    assert cold[0] < target_s < cold[1]
    assert deep[1] < target_s
    without_deep = net.with_mix(np.array([1.0, 0.0, 0.0]))
    task = {"ttft_target_s": target_s, "reliability": 0.7}
    with pytest.raises(ValueError, match=r"reliability is 0.7: must be less than 0.4, the cov"):
        minimum_density(without_deep, **task)
    with pytest.raises(ValueError, match=r"must be less than 0.4, the coverage"):
        minimum_density(net, **task, reoptimize=True, budget_bytes=0.0)
    assert minimum_density(without_deep, **task, reoptimize=True) > 0
    near = minimum_density(without_deep, ttft_target_s=target_s, reliability=0.3999)
    assert coverage(without_deep, near, target_s) == pytest.approx(0.3999, abs=1e-9)


def test_without_load_the_closed_form():
    # One tier, alpha = 2: coverage is 1 - exp(-pi density slack / xi).
    net = replace(
        paper_network(),
        request_intensity=0.0,
        profile_probabilities=[1, 0, 0],
        type_probabilities=[1, 0],
    )
    slack = 0.8 - net.prefill_s[0, 0]
    expected = -np.log(0.1) * net.radio_xi / (np.pi * slack)
    found = minimum_density(net, ttft_target_s=0.8, reliability=0.9)
    assert found == pytest.approx(expected, rel=1e-7)


def test_where_coverage_jumps_the_density_is_on_the_upper_side():
    # At the density that just carries the load, coverage jumps from 0.
    net = paper_network()
    density = minimum_density(net, ttft_target_s=0.8, reliability=1e-9)
    assert coverage(net, density, 0.8) >= 1e-9
    assert coverage(net, density * (1 - 1e-9), 0.8) == 0.0


def test_a_load_that_only_dense_fleets_carry():
    net = paper_network(1e6)
    task = {"ttft_target_s": 0.8, "reliability": 0.5}
    method = Exchange(0.1, screen=3, restarts=0)
    density = minimum_density(net, **task, reoptimize=True, method=method)
    assert 0 < density <= minimum_density(net, **task)
    there = replace(net, density_per_km2=density * (1 + 1e-6))
    assert optimize_placement(there, ttft_target_s=0.8).coverage >= 0.5
