"""The damping limit: published values, and the iteration itself on both sides of it."""

import dataclasses

import numpy as np
import pytest

from edgegym.analytic import damping_limit, solve_equilibrium
from tests.analytic.networks import paper_network, random_network


@pytest.mark.parametrize(
    ("intensity", "limit"), [(3, 0.90), (3.5, 0.65), (4, 0.495), (4.5, 0.35), (5, 0.25), (6, 0.14)]
)
def test_published_limits(intensity, limit):
    net = paper_network(intensity)
    assert damping_limit(net, solve_equilibrium(net)) == pytest.approx(limit, abs=0.005)


def distances(net, eq, damping, steps):
    """Return how far the damped iteration is from the equilibrium, step by step."""
    # A deviation that is no eigenvector, small enough to stay in the linear range.
    start = eq.assumed_wait_s + 1e-5 * (1 + eq.assumed_wait_s) * np.cos(np.arange(net.num_profiles))
    run = solve_equilibrium(
        net,
        method="damped",
        start=np.maximum(start, 0.0),
        damping=damping,
        tolerance=1e-14,
        max_iterations=steps,
        history=True,
    )
    assert run.history is not None
    return np.abs(run.history - eq.assumed_wait_s).max(axis=1)


def test_the_iteration_shrinks_deviations_below_the_limit_and_not_above():
    tried = 0
    for k in range(40):
        net = random_network([77, k], load=0.9)
        eq = solve_equilibrium(net)
        limit = damping_limit(net, eq)
        if not 0.02 < limit < 0.95:
            continue
        tried += 1
        below = distances(net, eq, 0.97 * limit, 200)
        assert below[-1] < 0.2 * below[0], k
        above = distances(net, eq, 1.03 * limit, 400)
        assert above[-1] > 5 * above[0], k
        if tried == 8:
            break
    assert tried == 8


def test_waits_that_do_not_react():
    net = paper_network(0.0)
    assert damping_limit(net, solve_equilibrium(net)) == pytest.approx(2.0)


def test_equal_profiles_count_as_one():
    split = paper_network(
        4.0,
        profile_probabilities=[0.4, 0.1, 0.3, 0.2],
        concurrency=[16, 12, 12, 9],
        hit_tokens=[[0, 0], [256, 256], [256, 256], [768, 3072]],
    )
    limit = damping_limit(split, solve_equilibrium(split))
    assert limit == pytest.approx(0.495, abs=0.005)


def test_refused():
    net = paper_network(4.0)
    eq = solve_equilibrium(net)
    with pytest.raises(ValueError, match="policy 'queue_unaware'"):
        damping_limit(net, solve_equilibrium(net, "queue_unaware"))
    overloaded = paper_network(20.0)
    no_equilibrium = solve_equilibrium(overloaded)
    with pytest.raises(ValueError, match="converged False, stable False"):
        damping_limit(overloaded, no_equilibrium)
    with pytest.raises(ValueError, match="must be solved for this network"):
        damping_limit(dataclasses.replace(net, request_intensity=5.0), eq)
    with pytest.raises(ValueError, match=r"eq\.association has shape"):
        damping_limit(random_network([1, 1]), eq)
    with pytest.raises(TypeError, match="must be an Equilibrium"):
        damping_limit(net, None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="must be a TieredNetwork"):
        damping_limit(None, eq)  # pyright: ignore[reportArgumentType]
