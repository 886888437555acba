"""Expected coverage under varying traffic, and the fallback study."""

import math
from dataclasses import replace

import numpy as np
import pytest

from edgegym.analytic import (
    STUDY_TRAFFIC,
    Exchange,
    SimplexGrid,
    TrafficUncertainty,
    association_law,
    evaluate,
    fallback_study,
    robust_placement,
    solve_equilibrium,
    two_family_network,
)
from edgegym.analytic.robust import ExpectedCoverage
from tests.analytic.networks import paper_network

CAPS = [1, 1, 0.2]


def expected(net, traffic, mix, target_s=0.8):
    objective = ExpectedCoverage.for_network(net, np.full(net.num_types, target_s), traffic)
    return objective.assess(np.array(mix), objective.first_wait())[0]


def coverage(net, target_s=0.8):
    return evaluate(net, solve_equilibrium(net), target_s).coverage


def test_steady_traffic_is_the_plain_model():
    net = paper_network(4.0)
    value = expected(net, TrafficUncertainty(), net.profile_probabilities)
    assert value == pytest.approx(coverage(net), abs=1e-5)


@pytest.mark.parametrize("scv", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_bursts_have_the_moments_asked_for(scv, share):
    traffic = TrafficUncertainty(burst_scv=scv, burst_time_share=share)
    levels = traffic.intensities()
    time = np.array([1 - share, share]) if len(levels) == 2 else np.ones(1)
    assert time @ levels == pytest.approx(1)
    assert time @ (levels - 1) ** 2 == pytest.approx(scv)
    assert traffic.routing_weights().sum() == pytest.approx(1)


def test_bursts_weigh_states_by_their_requests():
    net = paper_network(4.0)
    # So long that the changes between the states do not count.
    traffic = TrafficUncertainty(burst_scv=0.1, burst_time_share=0.5, burst_length_s=1e7)
    low, high = traffic.intensities()
    parts = [
        0.5 * level * coverage(replace(net, request_intensity=4.0 * level)) for level in (low, high)
    ]
    value = expected(net, traffic, net.profile_probabilities)
    assert value == pytest.approx(sum(parts), abs=1e-5)


def test_the_state_of_a_while_ago_is_that_of_a_simulated_chain():
    traffic = TrafficUncertainty(
        burst_scv=0.2, burst_time_share=0.25, burst_length_s=30.0, telemetry_delay_s=12.0
    )
    rng = np.random.default_rng(4)
    lengths = rng.exponential(1.0, 200_000) * np.tile([90.0, 30.0], 100_000)
    ends = np.cumsum(lengths)
    now = rng.uniform(100.0, ends[-1], 400_000)
    busy = (np.searchsorted(ends, now) % 2, np.searchsorted(ends, now - 12.0) % 2)
    levels = traffic.intensities()
    weights = np.array(
        [[np.mean((busy[0] == i) & (busy[1] == j)) * levels[i] for j in range(2)] for i in range(2)]
    )
    np.testing.assert_allclose(traffic.routing_weights(), weights, atol=6e-3)


def test_how_long_the_router_has_been_misled_is_as_in_a_simulated_chain():
    visits, delay = np.array([90.0, 30.0]), 25.0
    rng = np.random.default_rng(5)
    ends = np.cumsum(rng.exponential(1.0, 200_000) * np.tile(visits, 100_000))
    now = rng.uniform(100.0, ends[-1], 400_000)
    place, known = np.searchsorted(ends, now), np.searchsorted(ends, now - delay)
    misled = (place - known) % 2 == 1
    # It began when one of the two, the state and what is known of it, last changed.
    since = np.minimum(
        now[misled] - ends[place[misled] - 1], now[misled] - delay - ends[known[misled] - 1]
    )
    rate = (1.0 / visits).sum()
    law = -np.expm1(-rate * np.linspace(0, delay, 26)) / -np.expm1(-rate * delay)
    counts = np.searchsorted(np.sort(since), np.linspace(0, delay, 26)) / len(since)
    np.testing.assert_allclose(counts, law, atol=6e-3)


def test_late_telemetry_routes_by_the_other_state_s_waits():
    net = paper_network(2.0)
    traffic = TrafficUncertainty(burst_scv=0.05, burst_length_s=6e6, telemetry_delay_s=2e6)
    weights, levels = traffic.routing_weights(), traffic.intensities()
    states = [replace(net, request_intensity=2.0 * level) for level in levels]
    solved = [solve_equilibrium(state) for state in states]
    total = 0.0
    for i, state in enumerate(states):
        for j in range(2):
            wait = solved[j].assumed_wait_s
            share = association_law(state, wait).probability * state.type_probabilities
            per_node = state.request_intensity / state.tier_density
            load = per_node * (share * state.occupancy_s).sum(axis=1)
            assert (load < state.concurrency).all()
            # The same queues, as an equilibrium whose assumed waits are another state's.
            eq = replace(
                solved[i],
                assumed_wait_s=wait,
                association=share / state.type_probabilities,
                **_queues(state, per_node * share.sum(axis=1), load),
            )
            total += weights[i, j] * evaluate(state, eq, 0.8).coverage
    value = expected(net, traffic, net.profile_probabilities)
    assert value == pytest.approx(total, abs=2e-5)
    assert value < expected(net, replace(traffic, telemetry_delay_s=0.0), net.profile_probabilities)


def _queues(net, rate, load):
    waiting, wait = [], []
    for a, c, per_s in zip(load, net.concurrency, rate, strict=True):
        blocking = 1.0
        for k in range(1, c + 1):
            blocking = a * blocking / (k + a * blocking)
        waiting.append(blocking / (1 - a / c * (1 - blocking)))
        wait.append(waiting[-1] / (c * per_s / a - per_s))
    return {
        "mean_wait_s": np.array(wait),
        "arrival_rate_per_node": rate,
        "service_rate": rate / load,
        "utilization": load / net.concurrency,
        "erlang_c": np.array(waiting),
        "wait_decay_per_s": net.concurrency * rate / load - rate,
    }


@pytest.mark.parametrize("concentration", [2.0, 30.0])
def test_popularities_have_the_moments_of_the_dirichlet_law(concentration):
    shares = np.array([0.5, 0.3, 0.0, 0.2])
    traffic = TrafficUncertainty(concentration=concentration, samples=400)
    draws = traffic.popularities(shares)
    np.testing.assert_allclose(draws.sum(axis=1), 1)
    np.testing.assert_allclose(draws.mean(axis=0), shares, atol=1e-9)
    variance = shares * (1 - shares) / (concentration + 1)
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=0.12)
    assert (draws[:, 2] == 0).all()
    np.testing.assert_array_equal(draws, traffic.popularities(shares))


@pytest.mark.parametrize(
    "traffic",
    [
        TrafficUncertainty(burst_scv=0.1),
        TrafficUncertainty(burst_scv=0.1, telemetry_delay_s=10.0),
        replace(STUDY_TRAFFIC, samples=4),
    ],
)
def test_exchange_finds_what_the_grid_finds(traffic):
    net = paper_network(5.0)
    task = {"ttft_target_s": 0.8, "maximum": CAPS}
    grid = robust_placement(net, traffic, **task, method=SimplexGrid(0.1))
    found = robust_placement(net, traffic, **task, method=Exchange(0.1))
    assert found.coverage >= grid.coverage - 1e-5
    value = expected(net, traffic, found.probabilities)
    assert found.coverage == pytest.approx(value, abs=1e-6)


@pytest.mark.slow
def test_what_the_study_says():
    nested = fallback_study(paper_network(5.0), ttft_target_s=0.8, maximum=CAPS)
    families = fallback_study(two_family_network(), ttft_target_s=1.2)
    ends = {}
    for name, rows in (("nested", nested), ("families", families)):
        for parameter in ("burst_scv", "telemetry_delay_s", "concentration"):
            shares = [row.fallback_share for row in rows if row.parameter == parameter]
            ends[name, parameter] = (round(shares[0], 2), round(shares[-1], 2))
        assert all(row.coverage >= row.nominal_coverage - 1e-9 for row in rows)
    expected_ends = {
        ("nested", "burst_scv"): (0.0, 0.80),
        ("nested", "telemetry_delay_s"): (0.29, 0.0),
        ("nested", "concentration"): (0.14, 0.43),
        ("families", "burst_scv"): (0.0, 0.16),
        ("families", "telemetry_delay_s"): (0.06, 0.0),
        ("families", "concentration"): (0.08, 0.0),
    }
    for key, (first, last) in expected_ends.items():
        assert ends[key] == pytest.approx((first, last), abs=0.021), key


def test_a_short_study():
    lines = []
    rows = fallback_study(
        paper_network(5.0),
        TrafficUncertainty(burst_scv=0.1),
        ttft_target_s=0.8,
        maximum=CAPS,
        burst_scv=[0.0, 0.2],
        telemetry_delay_s=[10.0],
        concentration=[math.inf],
        report=lines.append,
    )
    assert [(row.parameter, row.value) for row in rows] == [
        ("burst_scv", 0.0),
        ("burst_scv", 0.2),
        ("telemetry_delay_s", 10.0),
        ("concentration", math.inf),
    ]
    assert rows[1].fallback_share > rows[3].fallback_share > rows[0].fallback_share
    assert rows[2].fallback_share < rows[3].fallback_share
    assert rows[1].coverage > rows[1].nominal_coverage + 0.01
    assert lines[-1] == f"4 of 4: concentration inf, fallback share {rows[3].fallback_share:.2f}"
