import dataclasses

import numpy as np
import pytest

from edgegym.analytic import evaluate, optimize_placement, solve_equilibrium
from edgegym.analytic.constraints import MixConstraints
from tests.analytic.networks import paper_network

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
    result = optimize_placement(net, ttft_target_s=0.8, step=1 / N, **limits)
    coverage, mix = grid(net, allowed)
    assert result.converged
    assert result.coverage == pytest.approx(coverage, abs=1e-9)
    np.testing.assert_allclose(result.probabilities, mix, atol=1e-9)
    assert result.equilibrium.stable


def test_it_leaves_overload():
    net = paper_network(10.7)
    assert not solve_equilibrium(net).stable
    result = optimize_placement(net, ttft_target_s=0.8, step=0.05)
    assert result.equilibrium.stable
    assert result.coverage > 0.6


def test_hopeless_overload_ends():
    result = optimize_placement(paper_network(40.0), ttft_target_s=0.8, step=0.1)
    assert result.converged
    assert not result.equilibrium.stable
    assert result.coverage == 0.0


def test_a_warm_call_confirms_and_is_cheap():
    net = paper_network(7.0)
    first = optimize_placement(net, ttft_target_s=0.8, step=0.05, maximum=[1, 1, 0.2])
    again = optimize_placement(net, ttft_target_s=0.8, step=0.05, maximum=[1, 1, 0.2], start=first)
    np.testing.assert_array_equal(again.probabilities, first.probabilities)
    assert again.evaluations < 15
    stopped = optimize_placement(net, ttft_target_s=0.8, max_moves=1)
    assert not stopped.converged
    assert np.abs(stopped.probabilities - net.profile_probabilities).sum() == pytest.approx(0.04)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"minimum": [0.6, 0.6, 0]}, "minimum sums to 1.2"),
        ({"maximum": 0.3}, "maximum sums to 0.9"),
        ({"minimum": [0, 0.4, 0], "maximum": [1, 0.3, 1]}, r"minimum\[1\] is 0.4"),
        ({"minimum": [0, -0.1, 0]}, r"minimum\[1\] is -0.1"),
        ({"budget_bytes": 1.0, "minimum": [0, 0.5, 0]}, "holds 2 bytes per node"),
        ({"method": "luck"}, "method is 'luck'"),
        ({"step": 0.0}, "step is 0.0"),
        ({"screen": 0}, "screen is 0"),
        ({"max_moves": -1}, "max_moves is -1"),
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


def test_projection_is_the_nearest_allowed_mix():
    rng = np.random.default_rng(11)
    net = paper_network(state_bytes=[0, 4, 7])
    constraints = MixConstraints.for_network(net, 2.5, [0.1, 0, 0], [1, 0.5, 0.9])
    candidates = rng.dirichlet(np.ones(3), 20_000)
    candidates = candidates[[constraints.allows(mix) for mix in candidates]]
    for _ in range(50):
        mix = rng.normal(0.3, 0.5, 3)
        nearest = constraints.project(mix)
        assert constraints.allows(nearest)
        np.testing.assert_array_equal(constraints.project(nearest), nearest)
        others = ((candidates - mix) ** 2).sum(axis=1).min()
        assert ((nearest - mix) ** 2).sum() <= others + 1e-9


def test_a_zero_budget_leaves_only_free_profiles():
    net = paper_network(state_bytes=[0, 4, 7])
    result = optimize_placement(net, ttft_target_s=0.8, budget_bytes=0.0)
    np.testing.assert_allclose(result.probabilities, [1, 0, 0], atol=1e-12)
