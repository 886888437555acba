"""Queues after a change, against exact birth-death chains, an ODE solver, and quadrature."""

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.linalg import expm
from scipy.stats import poisson

from edgegym.analytic import erlang_c
from edgegym.analytic.coverage import cost_coverage
from edgegym.analytic.placement.objective import CoverageObjective
from edgegym.analytic.quadrature import rule
from edgegym.analytic.tier_map import tier_loads
from edgegym.analytic.transient import advance_queues, phase_coverage, settle_for
from tests.analytic.networks import paper_network

SLOTS, OCCUPANCY_S = 12, 1.4


def mean_number(load):
    return load + erlang_c(SLOTS, load) * load / (SLOTS - load)


def exact_queue(before, load, times):
    """Return mean number and P(wait > 0.3 s) of M/M/c by its generator, at these times."""
    size = 500
    count = np.arange(size)
    up = np.full(size - 1, load / OCCUPANCY_S)
    down = np.minimum(count, SLOTS)[1:] / OCCUPANCY_S
    generator = np.diag(up, 1) + np.diag(down, -1)
    generator -= np.diag(generator.sum(axis=1))
    state = np.cumprod(np.r_[1.0, before / np.minimum(count[1:], SLOTS)])
    state /= state.sum()
    late = np.zeros(size)
    late[SLOTS:] = poisson.cdf(count[SLOTS:] - SLOTS, SLOTS / OCCUPANCY_S * 0.3)
    found = []
    for step in np.diff([0.0, *times]):
        state = state @ expm(generator * step)
        found.append((state @ count, state @ late))
    return np.array(found).T


@pytest.mark.parametrize(("before", "load"), [(6, 10), (6, 11.5), (6, 12), (6, 14), (6, 18)])
def test_a_queue_fills_about_as_the_exact_one(before, load):
    times = [1.0, 2.0, 5.0, 10.0]
    number, late = exact_queue(before, load, times)
    loads = [settle_for(SLOTS, OCCUPANCY_S, load, 1.0, float(before), t) for t in times]
    np.testing.assert_allclose([mean_number(e) for e in loads], number, rtol=0.12)
    found = [erlang_c(SLOTS, e) * np.exp(-(SLOTS - e) / OCCUPANCY_S * 0.3) for e in loads]
    # Far beyond the slots the exact wait is nearly the same for all, not exponential.
    np.testing.assert_allclose(found, late, atol=0.03 if load < 12 else 0.21)


def test_a_pile_drains_about_as_the_exact_one():
    times = [1.0, 5.0, 20.0]
    number, _ = exact_queue(11.5, 8.0, times)
    found = [mean_number(settle_for(SLOTS, OCCUPANCY_S, 8.0, 1.0, 11.5, t)) for t in times]
    np.testing.assert_allclose(found, number, rtol=0.25)


@pytest.mark.twin
@pytest.mark.parametrize("load", [0.0, 5.0, 11.9, 12.0, 20.0])
@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("before", [1.0, 11.99])
def test_steps_follow_the_equation(before, load, scale):
    def number(e):
        return e + scale * erlang_c(SLOTS, e) * e / (SLOTS - e)

    def slope(_, y):
        e = y[0]
        gap = 1e-6 * (SLOTS - e)
        return [(load - e) / OCCUPANCY_S / ((number(e + gap) - number(e - gap)) / (2 * gap))]

    for span in (0.5, 4.0, 40.0):
        if before == 1.0 and load == 0.0 and span == 40.0:
            continue  # the reference steps below no load
        exact = solve_ivp(slope, (0, span), [before], method="LSODA", rtol=1e-8, atol=1e-10)
        found = settle_for(SLOTS, OCCUPANCY_S, load, scale, before, span)
        assert number(found) == pytest.approx(number(exact.y[0, -1]), rel=4e-3, abs=2e-3)


def test_an_overloaded_queue_grows_along_a_line():
    early, later = (
        mean_number(settle_for(SLOTS, OCCUPANCY_S, 15.0, 1.0, 3.0, t)) for t in (1000.0, 3000.0)
    )
    assert later - early == pytest.approx(2000.0 * 3.0 / OCCUPANCY_S, rel=0.01)


@pytest.mark.parametrize(("intensity", "span", "ending"), [(2.0, 5.0, 0.02), (7.0, 60.0, 0.05)])
def test_coverage_of_a_phase_is_the_mean_over_its_ages(intensity, span, ending):
    net = paper_network(intensity)
    mix = net.profile_probabilities
    objective = CoverageObjective.for_network(net, np.full(2, 0.8))
    tiers, _ = objective.tiers(mix)
    wait = np.array([0.05, 0.1, 0.0])  # not those of its load: the deep tier overflows at 7
    points, weights = rule(net.radio_alpha, 24)
    rate, load = np.empty(3), np.empty(3)
    tier_loads(tiers, wait, points, weights, rate, load, np.empty((0, 0)), np.empty((0, 0)))
    assert (load >= tiers.slots).any() == (intensity == 7.0)

    def at(age):
        queues = np.full(3, 2.0)
        advance_queues(tiers, wait, points, weights, queues, age)
        return cost_coverage(
            tiers.prefill + wait,
            tiers.density,
            tiers.xi,
            tiers.power,
            points,
            weights,
            tiers.shares,
            objective.target,
            wait,
            np.array([erlang_c(int(c), e) for c, e in zip(tiers.slots, queues, strict=True)]),
            (tiers.slots - queues) * rate / load,
        )

    mass = -np.expm1(-ending * span) / ending
    mean = (
        quad(lambda t: np.exp(-ending * t) * at(t), 0, span, epsabs=1e-3 * mass, epsrel=1e-3)[0]
        / mass
    )
    queues = np.full(3, 2.0)
    value, excess = phase_coverage(
        tiers, wait, objective.target, points, weights, queues, span, ending
    )
    assert value == pytest.approx(mean, abs=2e-3)
    beyond = np.maximum(load - tiers.slots, 0) @ tiers.density / (tiers.slots @ tiers.density)
    assert excess == pytest.approx(beyond)
    end = np.full(3, 2.0)
    advance_queues(tiers, wait, points, weights, end, span)
    np.testing.assert_allclose(queues, end, rtol=2e-3)
    assert at(0.0) > at(span)
