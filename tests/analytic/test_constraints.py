"""The set of allowed mixes."""

import numpy as np
import pytest
from scipy.optimize import linprog

from edgegym.analytic.constraints import MixConstraints
from tests.analytic.networks import paper_network


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


@pytest.mark.parametrize("seed", range(40))
def test_projection_satisfies_the_conditions_of_a_minimum(seed):
    rng = np.random.default_rng([6, seed])
    size = int(rng.integers(2, 9))
    low = rng.uniform(0, 0.5 / size, size) * (rng.random(size) < 0.5)
    high = np.where(rng.random(size) < 0.5, 1.0, rng.uniform(1.5 / size, 1, size))
    weight = rng.uniform(0, 2, size) * (rng.random(size) < 0.8)
    weight[0] = 0.0
    high[0] = 1.0
    constraints = MixConstraints(low, high, weight)
    for mix in rng.normal(1 / size, rng.choice([0.2, 1, 5]), (10, size)):
        nearest = constraints.project(mix)
        assert constraints.allows(nearest)
        # No allowed mix lies further in the direction from the nearest one towards the mix.
        best = linprog(
            nearest - mix,
            A_ub=[weight],
            b_ub=[1.0],
            A_eq=np.ones((1, size)),
            b_eq=[1],
            bounds=list(zip(low, high, strict=True)),
        )
        assert best.status == 0
        assert (best.x - nearest) @ (mix - nearest) <= 1e-8 * (1 + np.abs(mix).max())


@pytest.mark.parametrize("seed", range(30))
def test_it_is_empty_exactly_where_a_linear_program_says_so(seed):
    rng = np.random.default_rng([5, seed])
    net = paper_network(state_bytes=[int(b) for b in rng.integers(0, 10, 3)])
    low = np.round(rng.uniform(0, 0.45, 3), 2)
    high = np.round(np.minimum(low + rng.uniform(0, 0.6, 3), 1), 2)
    budget = float(rng.uniform(1, 9))
    assert net.state_bytes is not None
    program = linprog(
        np.zeros(3),
        A_ub=[net.state_bytes],
        b_ub=[budget],
        A_eq=[[1, 1, 1]],
        b_eq=[1],
        bounds=list(zip(low, high, strict=True)),
    )
    try:
        constraints = MixConstraints.for_network(net, budget, low, high)
    except ValueError:
        assert program.status == 2  # infeasible
    else:
        assert program.status == 0
        assert constraints.allows(constraints.project(rng.dirichlet(np.ones(3))))


def test_reachable_profiles():
    net = paper_network(state_bytes=[1, 4, 7])
    cases = {
        (None, None, None): [True, True, True],
        (1.0, None, None): [True, False, False],
        (1.5, None, None): [True, True, True],
        (None, None, (1, 0, 1)): [True, False, True],
        (None, (0.4, 0.6, 0), None): [True, True, False],
        (4.0, (0, 1, 0), None): [False, True, False],
    }
    for (budget, low, high), expected in cases.items():
        constraints = MixConstraints.for_network(net, budget, low, high)
        np.testing.assert_array_equal(constraints.reachable(), expected)


def test_every_pair_of_constraints_that_no_mix_satisfies_is_refused():
    net = paper_network(state_bytes=[2, 4, 7])
    bad = {
        "floors": {"minimum": [0.5, 0.6, 0]},
        "caps": {"maximum": [0.3, 0.3, 0.3]},
        "floors and budget": {"minimum": [0, 0.9, 0], "budget_bytes": 3.0},
        "caps and budget": {"maximum": [0.2, 1, 1], "budget_bytes": 3.0},
        "floors and caps": {"minimum": [0, 0, 0.5], "maximum": [1, 1, 0.4]},
        "budget": {"budget_bytes": 1.0},
    }
    for limits in bad.values():
        with pytest.raises(ValueError, match=r"must be at (most|least)|the cheapest mix within"):
            MixConstraints.for_network(
                net, *(limits.get(name) for name in ("budget_bytes", "minimum", "maximum"))
            )
