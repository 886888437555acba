"""The exchange search, and what holds for every method."""

import dataclasses
import time

import numpy as np
import pytest

from edgegym.analytic import (
    Exchange,
    SimplexGrid,
    evaluate,
    optimize_placement,
    solve_equilibrium,
)
from edgegym.policies.estimate import PlacementModel
from edgegym.world import preset
from tests.analytic.networks import paper_network
from tests.analytic.placement.problems import small_problem

N = 20


def grid(net, allowed):
    """Return the best coverage over all mixes of twentieths that are allowed and stable."""
    best = (-1.0, (0.0, 0.0, 0.0))
    for i in range(N + 1):
        for j in range(N + 1 - i):
            mix = np.array([i, j, N - i - j]) / N
            if allowed(mix):
                other = dataclasses.replace(net, profile_probabilities=mix)
                eq = solve_equilibrium(other)
                if eq.stable:
                    best = max(best, (evaluate(other, eq, 0.8).coverage, tuple(mix)))
    return best


@pytest.mark.parametrize("intensity", [3.0, 9.0])
@pytest.mark.parametrize(
    ("limits", "allowed"),
    [
        ({"maximum": [1, 1, 0.2]}, lambda mix: mix[2] <= 0.2 + 1e-9),
        ({"budget_bytes": 3.0}, lambda mix: mix @ [0, 4, 7] <= 3 + 1e-9),
        (
            {"minimum": [0.1, 0.3, 0], "maximum": 0.5},
            lambda mix: (mix <= 0.5 + 1e-9).all() and mix[0] >= 0.1 - 1e-9 and mix[1] >= 0.3 - 1e-9,
        ),
    ],
    ids=["cap", "budget", "floors"],
)
def test_against_the_grid(intensity, limits, allowed):
    net = paper_network(intensity, state_bytes=[0, 4, 7])
    result = optimize_placement(net, ttft_target_s=0.8, method=Exchange(1 / N), **limits)
    coverage, mix = grid(net, allowed)
    assert result.converged
    assert result.coverage == pytest.approx(coverage, abs=1e-9)
    np.testing.assert_allclose(result.probabilities, mix, atol=1e-9)
    assert result.equilibrium.stable


def test_it_leaves_overload():
    net = paper_network(10.7)
    assert not solve_equilibrium(net).stable
    result = optimize_placement(net, ttft_target_s=0.8, method=Exchange(0.05))
    assert result.equilibrium.stable
    assert result.coverage > 0.6


def test_hopeless_overload_ends():
    result = optimize_placement(paper_network(40.0), ttft_target_s=0.8, method=Exchange(0.1))
    assert result.converged
    assert not result.equilibrium.stable
    assert result.coverage == 0.0


@pytest.mark.parametrize("group", range(5))
def test_it_reaches_the_optimum_of_the_grid(group):
    for seed in range(10 * group, 10 * group + 10):
        net, target_s, limits = small_problem(seed)
        step = 0.05 if net.num_profiles == 3 else 0.1
        grid = optimize_placement(net, ttft_target_s=target_s, method=SimplexGrid(step), **limits)
        found = optimize_placement(net, ttft_target_s=target_s, method=Exchange(step), **limits)
        assert found.converged
        assert found.coverage >= grid.coverage - 1e-4, f"problem {seed}"
        # Where nothing carries the load, the smallest overload counts.
        assert found.history[-1, 1] >= grid.history[-1, 1] - 1e-4, f"problem {seed}"


@pytest.mark.slow
def test_it_reaches_the_optimum_of_a_finer_grid():
    for seed in range(50, 150):
        net, target_s, limits = small_problem(seed)
        grid = optimize_placement(net, ttft_target_s=target_s, method=SimplexGrid(0.05), **limits)
        found = optimize_placement(net, ttft_target_s=target_s, method=Exchange(0.05), **limits)
        assert found.coverage >= grid.coverage - 1e-4, f"problem {seed}"


def test_a_warm_call_confirms_and_is_cheap():
    net = paper_network(7.0)
    search = {"ttft_target_s": 0.8, "method": Exchange(0.05), "maximum": [1, 1, 0.2]}
    first = optimize_placement(net, **search)
    again = optimize_placement(net, **search, start=first)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)
    assert again.evaluations < 15
    stopped = optimize_placement(
        net, ttft_target_s=0.8, method=Exchange(max_moves=1), start=net.profile_probabilities
    )
    assert not stopped.converged
    assert np.abs(stopped.probabilities - net.profile_probabilities).sum() == pytest.approx(0.04)


def test_the_mix_is_one_of_whole_nodes_within_its_limits():
    net = paper_network(9.0)
    result = optimize_placement(
        net,
        ttft_target_s=0.8,
        method=Exchange(1 / 25),
        start=[0.41, 0.39, 0.2],
        minimum=[0.0, 0.13, 0.0],
        maximum=[1, 1, 0.21],
    )
    nodes = result.probabilities * 25
    np.testing.assert_allclose(nodes, np.round(nodes), atol=1e-9)
    assert nodes[1] >= 4 - 1e-9
    assert nodes[2] <= 5 + 1e-9


def test_no_result_is_worse_than_its_start():
    net = paper_network(3.0)
    best = optimize_placement(net, ttft_target_s=0.8, method=Exchange(0.01), maximum=[1, 1, 0.2])
    # No lattice mix is as good as this one, which lies between its points.
    start = best.probabilities
    result = optimize_placement(
        net, ttft_target_s=0.8, method=Exchange(0.25), maximum=[1, 1, 0.2], start=best
    )
    assert result.coverage >= best.coverage - 1e-7
    np.testing.assert_allclose(result.probabilities, start, atol=1e-9)


def test_history_ends_at_the_result():
    result = optimize_placement(paper_network(3.0), ttft_target_s=0.8, maximum=[1, 1, 0.2])
    assert (np.diff(result.history[:, 0]) > 0).all()
    assert (np.diff(result.history[:, 1]) > 0).all()
    assert result.history[-1, 1] == pytest.approx(result.coverage, abs=1e-5)
    assert result.history[-1, 0] <= result.evaluations


def test_progress_is_reported():
    lines = []
    result = optimize_placement(paper_network(3.0), ttft_target_s=0.8, report=lines.append)
    assert f"{result.evaluations} mixes solved, best coverage {result.coverage:.4f}" == lines[-1]


def test_an_interrupt_passes_through():
    class Interrupted(Exchange):
        def search(self, search):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize_placement(paper_network(), ttft_target_s=0.8, method=Interrupted())


def test_types_that_only_excluded_profiles_may_serve_are_named():
    net = paper_network(servable=[[1, 0], [1, 0], [1, 1]], state_bytes=[0, 4, 7])
    for limits in ({"maximum": [1, 1, 0]}, {"budget_bytes": 0.0}, {"minimum": [0.5, 0.5, 0]}):
        with pytest.raises(ValueError, match=r"profiles \[2\]: .* request type 1"):
            optimize_placement(net, ttft_target_s=0.8, **limits)


@pytest.mark.slow
def test_a_warm_call_for_twenty_five_nodes_takes_fifty_milliseconds():
    model = PlacementModel(preset("moving-hotspot"))
    assert (model._base.num_profiles, model._base.num_types) == (8, 7)
    best = model.long_run_optimum
    rng = np.random.default_rng(0)
    times = []
    for _ in range(20):
        rates = model.long_run * rng.uniform(0.8, 1.25, len(model.long_run))
        begin = time.process_time()
        model.optimum(rates, 25, start=best)
        times.append(time.process_time() - begin)
    assert np.median(times) <= 0.05


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minimum": [0.6, 0.6, 0]}, "minimum sums to 1.2"),
        ({"maximum": 0.3}, "maximum sums to 0.9"),
        ({"minimum": [0, 0.4, 0], "maximum": [1, 0.3, 1]}, r"minimum\[1\] is 0.4"),
        ({"minimum": [0, -0.1, 0]}, r"minimum\[1\] is -0.1"),
        ({"budget_bytes": 1.0, "minimum": [0, 0.5, 0]}, "holds 2 bytes per node"),
        ({"method": "luck"}, "method is 'luck'"),
        ({"start": [0.5, 0.5]}, "start is"),
    ],
)
def test_refused(arguments, message):
    net = paper_network(state_bytes=[0, 4, 7])
    with pytest.raises(ValueError, match=message):
        optimize_placement(net, ttft_target_s=0.8, **arguments)


def test_a_budget_needs_bytes():
    with pytest.raises(ValueError, match="must have state_bytes"):
        optimize_placement(paper_network(), ttft_target_s=0.8, budget_bytes=1.0)


def test_a_zero_budget_leaves_only_free_profiles():
    net = paper_network(state_bytes=[0, 4, 7])
    result = optimize_placement(net, ttft_target_s=0.8, budget_bytes=0.0)
    np.testing.assert_allclose(result.probabilities, [1, 0, 0], atol=1e-12)
