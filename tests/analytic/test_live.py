"""Fleets that advertise their backlog live: states of a node, and the equilibrium."""

import math

import numpy as np
import pytest
from scipy import stats

from edgegym.analytic import (
    association_law,
    erlang_c,
    evaluate,
    solve_equilibrium,
    solve_live_equilibrium,
)
from edgegym.analytic.live_states import level_law, log_room, wait_fits
from tests.analytic.networks import paper_network

TARGET_S = 0.8
NONE = np.zeros(3)


def law_of(rates, slots, occupancy_s, radio_s, factor=1.0):
    room = log_room(slots, len(rates), occupancy_s, radio_s)
    law = np.empty(len(rates))
    level_law(np.asarray(rates, float), factor, room, slots, law)
    return law


def chain(rates, slots, occupancy_s, radio_s):
    """Return P(i on the way, m at the node) by solving the balance equations, n below a limit."""
    most = slots - 1 + len(rates)
    states = [(i, m) for i in range(most) for m in range(most - i)]
    index = {state: k for k, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for (i, m), k in index.items():
        moves = [
            ((i + 1, m), rates[max(0, i + m - slots + 1)]),
            ((i - 1, m + 1), i / radio_s),
            ((i, m - 1), min(m, slots) / occupancy_s),
        ]
        for state, rate in moves:
            if state in index and rate > 0:
                flow[index[state], k] += rate
                flow[k, k] -= rate
    flow[0] = 1.0
    solution = np.linalg.solve(flow, np.eye(len(states))[0])
    return {state: solution[k] for state, k in index.items()}


@pytest.mark.twin
def test_levels_are_those_of_the_markov_chain():
    rates, slots, occupancy_s, radio_s = [5.0, 3.0, 1.5, 0.7, 0.2], 3, 0.8, 0.25
    law = law_of(rates, slots, occupancy_s, radio_s)
    expected = np.zeros(len(rates))
    for (i, m), probability in chain(rates, slots, occupancy_s, radio_s).items():
        expected[max(0, i + m - slots + 1)] += probability
    np.testing.assert_allclose(law, expected, atol=1e-12)


@pytest.mark.twin
def test_split_between_way_and_node_is_that_of_the_markov_chain():
    rates, slots, occupancy_s, radio_s, slack_s = [5.0, 3.0, 1.5, 0.7, 0.2], 3, 0.8, 0.25, 0.3
    states = chain(rates, slots, occupancy_s, radio_s)
    fits = np.empty((len(rates), 1))
    wait_fits(np.full((len(rates), 1), slack_s), slots, len(rates), occupancy_s, radio_s, fits)
    for level in range(1, len(rates)):
        n = slots - 1 + level
        weights = np.array([states[n - m, m] for m in range(n + 1)])
        departures = [m - slots + 1 for m in range(n + 1)]
        waits = [
            stats.gamma(d, scale=occupancy_s / slots).cdf(slack_s) if d > 0 else 1.0
            for d in departures
        ]
        assert fits[level, 0] == pytest.approx(weights @ waits / weights.sum(), rel=1e-10)
    assert fits[0, 0] == 1.0


def test_constant_rates_give_the_queue_of_the_theory():
    slots, occupancy_s, rate = 9, 0.8, 9.0
    law = law_of([rate] * 400, slots, occupancy_s, 0.0)
    assert law[1:].sum() == pytest.approx(erlang_c(slots, rate * occupancy_s), rel=1e-9)


def test_a_factor_multiplies_all_rates():
    rates = np.array([5.0, 3.0, 1.5, 0.7, 0.2])
    found = law_of(rates, 3, 0.8, 0.25, factor=1.7)
    np.testing.assert_allclose(found, law_of(1.7 * rates, 3, 0.8, 0.25), rtol=1e-12)
    assert found[0] < law_of(rates, 3, 0.8, 0.25)[0]


def test_without_radio_time_a_wait_is_an_erlang_time():
    slots, occupancy_s = 4, 0.5
    slack = np.tile(np.array([-0.1, 0.0, 0.2, 1.0]), (6, 1))
    fits = np.empty(slack.shape)
    wait_fits(slack, slots, 6, occupancy_s, 0.0, fits)
    for level in range(6):
        law = stats.gamma(level, scale=occupancy_s / slots) if level else None
        expected = [0.0, *(law.cdf(slack[level, 1:]) if law else np.ones(3))]
        np.testing.assert_allclose(fits[level], expected, atol=1e-12)


@pytest.mark.parametrize("variance", [NONE, None])
@pytest.mark.parametrize("load", [1.0, 4.0, 8.0])
def test_balances_hold(load, variance):
    net = paper_network(load)
    live = solve_live_equilibrium(net, relative_variance=variance)
    assert live.converged
    assert live.association.min() >= 0
    total = live.association @ net.type_probabilities
    assert total.sum() == pytest.approx(1.0, abs=1e-6)
    for law in (live.level_probability, live.seen_level_probability):
        np.testing.assert_allclose(law.sum(axis=1), 1.0, atol=1e-9)
    # What the tiers are asked to do is what their nodes get and do.
    asked = load * total / net.tier_density
    np.testing.assert_allclose(live.arrival_rate_per_node, asked, rtol=1e-6)
    busy = live.arrival_rate_per_node * live.mean_occupancy_s / net.concurrency
    np.testing.assert_allclose(live.utilization_mean, busy, rtol=1e-9)
    assert (live.utilization_mean < 1).all()
    if variance is not None:
        np.testing.assert_allclose(live.association.sum(axis=0), 1.0, atol=1e-6)
        assert live.defect == pytest.approx(0.0, abs=1e-6)
        assert (live.utilization_deviation < 1e-12).all()
    else:
        assert 0 <= live.defect < 0.05
        assert (live.utilization_deviation > 0).all()
        # Requests find the nodes with large cells more often, and those are busier.
        assert (live.seen_level_probability[:, 0] <= live.level_probability[:, 0]).all()
        assert live.seen_level_probability[2, 0] < 0.999 * live.level_probability[2, 0]


def test_a_single_kind_of_node_with_free_slots_is_the_plain_law():
    net = paper_network(1e-3)
    live = solve_live_equilibrium(net, relative_variance=NONE)
    law = association_law(net, NONE)
    np.testing.assert_allclose(live.association, law.probability, atol=1e-6)
    plain = evaluate(net, solve_equilibrium(net), TARGET_S)
    assert live.coverage(TARGET_S) == pytest.approx(plain.coverage, abs=1e-6)
    radio = (law.probability * net.type_probabilities * law.mean_radio_s).sum(axis=1)
    chosen = law.probability @ net.type_probabilities
    np.testing.assert_allclose(live.mean_radio_s, radio / chosen, rtol=1e-5)


def test_better_informed_routing_covers_more_and_spread_costs_coverage():
    net = paper_network(4.0)
    plain = evaluate(net, solve_equilibrium(net), TARGET_S).coverage
    equal = solve_live_equilibrium(net, relative_variance=NONE).coverage(TARGET_S)
    unequal = solve_live_equilibrium(net).coverage(TARGET_S)
    assert plain < unequal < equal


def test_empty_tiers_and_types_that_a_tier_may_not_serve():
    net = paper_network(
        2.0,
        profile_probabilities=[0.5, 0.0, 0.5],
        servable=[[True, True], [True, True], [True, False]],
    )
    live = solve_live_equilibrium(net)
    assert live.converged
    assert (live.association[1] == 0).all()
    np.testing.assert_allclose(live.level_probability.sum(axis=1), 1.0, atol=1e-9)
    assert live.association[2, 1] == 0
    assert live.association[0, 1] == pytest.approx(1.0, abs=0.05)
    assert 0 < live.coverage(TARGET_S) < 1


def test_a_type_that_no_node_may_serve_is_not_covered():
    net = paper_network(
        2.0,
        profile_probabilities=[0.5, 0.0, 0.5],
        servable=[[True, False], [True, True], [True, False]],
    )
    live = solve_live_equilibrium(net)
    assert live.converged
    assert live.coverage_by_type(TARGET_S)[1] == 0
    assert live.association[:, 0].sum() == pytest.approx(1.0, abs=1e-6)
    assert (live.association[:, 1] == 0).all()


def test_overload_is_not_called_an_equilibrium():
    live = solve_live_equilibrium(paper_network(30.0), relative_variance=NONE, max_iterations=20)
    assert not live.converged


def test_overload_is_found_out_at_once():
    # No number of levels holds the backlogs: it used to try them all, for minutes.
    live = solve_live_equilibrium(paper_network(11.0), relative_variance=NONE)
    assert not live.converged
    assert live.level_probability.shape == (3, 32)
    assert np.isfinite(live.utilization_mean).all()


def test_coverage_rises_with_the_target():
    net = paper_network(5.0)
    live = solve_live_equilibrium(net, relative_variance=NONE)
    targets = np.linspace(0.0, 8.0, 9)
    coverage = [live.coverage(float(target)) for target in targets]
    assert (np.diff(coverage) > -1e-12).all()
    assert coverage[0] == 0.0
    assert coverage[-1] == pytest.approx(1.0, abs=1e-3)
    by_type = live.coverage_by_type([0.4, 0.8])
    assert math.isclose(live.coverage([0.4, 0.8]), by_type @ net.type_probabilities)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"relative_variance": [0.1, 0.2]}, r"must be \[S\]"),
        ({"relative_variance": [-0.1, 0.2, 0.1]}, "at least 0"),
        ({"tolerance": 0.0}, "greater than 0"),
        ({"max_iterations": 0}, "at least 1"),
    ],
)
def test_arguments_are_checked(arguments, words):
    with pytest.raises(ValueError, match=words):
        solve_live_equilibrium(paper_network(), **arguments)


def test_networks_it_is_not_made_for_are_refused():
    with pytest.raises(ValueError, match="at most 2000"):
        solve_live_equilibrium(paper_network(concurrency=[16, 12, 3000]))
    with pytest.raises(ValueError, match="greater than 0"):
        solve_live_equilibrium(paper_network(0.0))
    with pytest.raises(TypeError, match="TieredNetwork"):
        solve_live_equilibrium(None)  # pyright: ignore[reportArgumentType]
