"""All mixes of a lattice."""

import itertools

import numpy as np
import pytest

from edgegym.analytic import SimplexGrid, optimize_placement
from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.placement.lattice import Lattice
from tests.analytic.networks import paper_network


def every_mix(parts, constraints):
    """Return all allowed mixes, by trying all counts."""
    size = len(constraints.minimum)
    for counts in itertools.product(range(parts + 1), repeat=size):
        if sum(counts) == parts and constraints.allows(np.array(counts) / parts):
            yield counts


@pytest.mark.parametrize("seed", range(20))
def test_the_lattice_holds_every_allowed_mix_once(seed):
    rng = np.random.default_rng(seed)
    net = paper_network(state_bytes=[1, 4, 7])
    budget = float(rng.uniform(3, 7)) if rng.random() < 0.6 else None
    low, high = np.round(rng.uniform(0, 0.2, 3), 2), np.round(rng.uniform(0.4, 1, 3), 2)
    constraints = MixConstraints.for_network(net, budget, low, high)
    expected = set(every_mix(20, constraints))
    lattice = Lattice.within(constraints, 0.05)
    if lattice is None:
        assert not expected
        return
    mixes = [tuple(np.round(mix * 20).astype(int).tolist()) for mix in lattice.mixes()]
    assert len(mixes) == len(set(mixes))
    assert set(mixes) == expected
    assert lattice.size_without_budget() >= len(mixes)
    if budget is None:
        assert lattice.size_without_budget() == len(mixes)
    for mix in rng.dirichlet(np.ones(3), 10):
        near = lattice.snap(mix)
        assert constraints.allows(near)
        assert tuple(np.round(near * 20).astype(int).tolist()) in expected


def test_neighbours_follow_each_other():
    constraints = MixConstraints.for_network(paper_network(), None, None, None)
    lattice = Lattice.within(constraints, 0.1)
    assert lattice is not None
    mixes = np.array(list(lattice.mixes()))
    assert len(mixes) == 66
    # Half the sum of absolute differences is the mass moved.
    assert (np.abs(np.diff(mixes, axis=0)).sum(axis=1) / 2).max() <= 0.1 + 1e-9


def test_it_solves_them_all():
    lines = []
    result = optimize_placement(
        paper_network(), ttft_target_s=0.8, method=SimplexGrid(0.1), report=lines.append
    )
    assert result.evaluations == 66
    assert result.converged
    assert lines[-1].startswith("66 of 66 mixes solved, best coverage 0.99")
    assert optimize_placement(paper_network(), ttft_target_s=0.8, method="grid").evaluations == 231


@pytest.mark.parametrize(
    ("step", "limits", "message"),
    [
        (0.001, {}, r"the grid has 501501 mixes of 3 profiles; must be at most 100000"),
        (1e-6, {}, r"the grid has 500001500001 mixes of 3 profiles; must be at most 100000"),
        (0.5, {"minimum": [0.3, 0, 0], "maximum": [0.4, 1, 1]}, r"step is 0.5: must be smaller"),
        (0.5, {"budget_bytes": 1.0, "maximum": [0.9, 1, 1]}, r"step is 0.5: must be smaller"),
    ],
)
def test_refused(step, limits, message):
    net = paper_network(state_bytes=[0, 4, 7])
    with pytest.raises(ValueError, match=message):
        optimize_placement(net, ttft_target_s=0.8, method=SimplexGrid(step), **limits)
