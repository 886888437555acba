"""The quadrature that the benchmark compares with computes the same."""

import numpy as np
import pytest

from edgegym.analytic import association_law, evaluate, solve_equilibrium
from edgegym.evaluation.quad_reference import quad_values
from edgegym.evaluation.speed import speed_network


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_both_ways_agree(seed):
    net = speed_network(4, 3, seed)
    eq = solve_equilibrium(net)
    expected = quad_values(net, eq, 0.8)
    found = evaluate(net, eq, 0.8)
    association = association_law(net, eq.assumed_wait_s).probability
    np.testing.assert_allclose(association, expected.association, atol=1e-7)
    assert found.coverage == pytest.approx(expected.coverage, abs=1e-7)
    assert found.mean_distance_km == pytest.approx(expected.mean_distance_km, abs=1e-7)
    assert 0.01 < found.coverage < 0.99
