"""Projected simultaneous perturbation, and Bayesian optimisation."""

import sys

import numpy as np
import pytest

from edgegym.analytic import (
    Bayesian,
    Exchange,
    ProjectedSpsa,
    optimize_placement,
    solve_equilibrium,
)
from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.placement.search import Search
from tests.analytic.networks import paper_network

LIMITS = {"minimum": [0.1, 0, 0], "maximum": [1, 1, 0.2], "budget_bytes": 3.0}


class Bowl:
    """A concave score with a known best mix."""

    def __init__(self, top):
        self.top = np.array(top)

    def first_wait(self):
        return np.zeros(len(self.top))

    def assess(self, mix, wait):
        return 1.0 - float(((mix - self.top) ** 2).sum()), wait

    def probe(self, mix, wait, profile, change):
        raise NotImplementedError


@pytest.mark.parametrize("seed", range(5))
def test_spsa_finds_the_nearest_allowed_mix_to_the_top(seed):
    net = paper_network(state_bytes=[0, 4, 7])
    constraints = MixConstraints.for_network(net, 2.0, [0.05, 0, 0], [1, 0.3, 1])
    top = np.random.default_rng(seed).dirichlet(np.ones(3))
    objective = Bowl(top)
    search = Search(objective, constraints, np.array([1.0, 0, 0]), np.zeros(3), warm=False)
    search.run(ProjectedSpsa(iterations=400, seed=seed))
    np.testing.assert_allclose(search.mix, constraints.project(top), atol=0.01)


def test_spsa_comes_to_rest_where_nothing_can_move():
    constraints = MixConstraints.for_network(paper_network(), None, [0.2, 0.3, 0.5], None)
    search = Search(Bowl([1, 0, 0]), constraints, np.array([0.2, 0.3, 0.5]), np.zeros(3), True)
    assert search.run(ProjectedSpsa())
    np.testing.assert_allclose(search.mix, [0.2, 0.3, 0.5])


@pytest.mark.parametrize("method", [ProjectedSpsa(iterations=150, seed=3), Bayesian(seed=3)])
@pytest.mark.parametrize("intensity", [3.0, 9.0])
def test_they_come_near_the_exchange_search(method, intensity):
    if isinstance(method, Bayesian):
        pytest.importorskip("optuna")
    net = paper_network(intensity, state_bytes=[0, 4, 7])
    best = optimize_placement(net, ttft_target_s=0.8, method=Exchange(0.01), **LIMITS)
    found = optimize_placement(net, ttft_target_s=0.8, method=method, **LIMITS)
    assert found.coverage == pytest.approx(best.coverage, abs=3e-3)
    assert found.equilibrium.stable
    assert found.probabilities @ [0, 4, 7] <= 3 + 1e-8
    assert found.probabilities[0] >= 0.1 - 1e-9
    assert found.probabilities[2] <= 0.2 + 1e-9
    again = optimize_placement(net, ttft_target_s=0.8, method=method, **LIMITS)
    np.testing.assert_array_equal(again.probabilities, found.probabilities)


def test_spsa_leaves_overload():
    net = paper_network(10.7)
    assert not solve_equilibrium(net).stable
    result = optimize_placement(net, ttft_target_s=0.8, method="spsa")
    assert result.equilibrium.stable


def test_without_optuna_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "edgegym\[tune\]"'):
        optimize_placement(paper_network(), ttft_target_s=0.8, method="bayesian")


def test_bayesian_is_silent_and_leaves_the_settings_of_optuna_alone(capsys):
    optuna = pytest.importorskip("optuna")
    before = optuna.logging.get_verbosity()
    result = optimize_placement(paper_network(), ttft_target_s=0.8, method=Bayesian(trials=5))
    assert result.evaluations == 5
    assert not result.converged
    assert optuna.logging.get_verbosity() == before
    shown = capsys.readouterr()
    assert shown.out + shown.err == ""
