from itertools import pairwise

import numpy as np
import pytest

from edgegym.analytic import evaluate, solve_equilibrium
from edgegym.policies import make_policy
from edgegym.policies.analytic import AnalyticPolicy, LargestDeficit, ReplanSettings
from edgegym.policies.estimate import PlacementModel
from edgegym.world import preset
from edgegym.world.rounding import largest_remainder
from tests.policies.observations import make_observation
from tests.policies.test_mix import follow

SCENARIO = preset("stationary")
NODES, PROFILES, FAMILIES = 25, 8, 7
MODEL = PlacementModel(SCENARIO)


def reversed_popularity() -> np.ndarray:
    rates = MODEL.long_run.copy()
    rates[:6] = rates[:6][::-1]
    return rates


def test_the_network_of_the_long_run_is_the_scenarios() -> None:
    expected = SCENARIO.tiered_network()
    network = MODEL.network(MODEL.long_run, NODES)
    assert network.density_per_km2 == pytest.approx(expected.density_per_km2)
    assert network.request_intensity == pytest.approx(expected.request_intensity, rel=2e-3)
    np.testing.assert_allclose(network.type_probabilities, expected.type_probabilities)


def test_the_network_follows_load_shares_and_nodes() -> None:
    rates = np.zeros(FAMILIES)
    rates[1] = 50.0
    network = MODEL.network(rates, 20)
    assert network.density_per_km2 == pytest.approx(20 / 25)
    assert network.request_intensity == pytest.approx(50 / 25, rel=2e-3)
    assert network.type_probabilities[1] == pytest.approx(1.0, abs=2e-3)
    silent = MODEL.network(np.zeros(FAMILIES), 20)
    np.testing.assert_allclose(
        silent.type_probabilities, SCENARIO.tiered_network().type_probabilities
    )


def test_a_family_keeps_its_types_in_proportion() -> None:
    scenario = preset("paper").with_overrides(
        {"request_types.short.family": "all", "request_types.long.family": "all"}
    )
    network = PlacementModel(scenario).network(np.array([30.0]), 25)
    np.testing.assert_allclose(network.type_probabilities, [0.4, 0.6])


def test_rates_are_read_from_the_observation() -> None:
    rates = np.linspace(1.0, 20.0, FAMILIES)
    row = make_observation(SCENARIO, np.zeros(NODES, dtype=int), family_rates_per_s=rates)
    view = make_policy("static", SCENARIO)._reader.view(row)
    np.testing.assert_allclose(MODEL.observed(view), rates, rtol=1e-5)


def test_the_optimum_beats_the_start_and_the_equal_mix() -> None:
    network = SCENARIO.tiered_network()

    def coverage(mix: np.ndarray) -> float:
        changed = network.with_mix(mix)
        return evaluate(changed, solve_equilibrium(changed), ttft_target_s=0.8).coverage

    best = coverage(MODEL.long_run_optimum)
    assert best > coverage(SCENARIO.initial_mix) + 0.01
    assert best > coverage(np.full(PROFILES, 1 / PROFILES)) + 0.01


def test_static_optimal_reaches_the_optimum_and_holds() -> None:
    start = np.arange(NODES) % PROFILES
    placements = follow(make_policy("static_optimal", SCENARIO), SCENARIO, start, 30)
    target = largest_remainder(MODEL.long_run_optimum, NODES)
    assert np.bincount(placements[-1], minlength=PROFILES).tolist() == target.tolist()
    np.testing.assert_array_equal(placements[-1], placements[-5])
    moved = sum((a != b).any() for a, b in pairwise(placements))
    assert moved == np.maximum(target - np.bincount(start, minlength=PROFILES), 0).sum()


def test_analytic_closes_deficits_until_the_observed_demand_is_served_best() -> None:
    rates = reversed_popularity()
    held = np.repeat(np.arange(PROFILES), largest_remainder(MODEL.long_run_optimum, NODES))
    policy = make_policy("analytic", SCENARIO)
    state, moved = None, 0
    for _ in range(30):
        row = make_observation(SCENARIO, held, family_rates_per_s=rates)
        action, state = policy.predict(row, state)
        if action == NODES * PROFILES:
            continue
        node, profile = divmod(int(action), PROFILES)
        target = largest_remainder(state[4][0], NODES)
        lacking = target - np.bincount(held, minlength=PROFILES)
        assert lacking[profile] == lacking.max() > 0
        assert lacking[held[node]] < 0
        held[node] = profile
        moved += 1
    counts = np.bincount(held, minlength=PROFILES)
    assert moved >= 5
    assert counts[7] > counts[2]  # what was rare is popular now
    assert counts.tolist() == largest_remainder(state[4][0], NODES).tolist()


def count_solutions(policy: AnalyticPolicy, rows: list[np.ndarray], monkeypatch) -> int:
    solved = []

    def optimum(rates, nodes, start):
        solved.append(rates)
        return start

    assert policy.model.long_run_optimum is not None  # solved before counting
    monkeypatch.setattr(policy.model, "optimum", optimum)
    state = None
    for row in rows:
        _, state = policy.predict(row, state)
    return len(solved)


@pytest.mark.parametrize(
    ("interval", "tolerance", "solutions"), [(1, 0.01, 5), (2, 0.01, 3), (3, 0.01, 2), (1, 0.9, 0)]
)
def test_the_placement_is_solved_anew_when_due(
    interval: int, tolerance: float, solutions: int, monkeypatch
) -> None:
    held = np.arange(NODES) % PROFILES
    rows = [
        make_observation(SCENARIO, held, family_rates_per_s=MODEL.long_run * (1.1 + 0.1 * step))
        for step in range(5)
    ]
    settings = ReplanSettings(interval=interval, tolerance=tolerance)
    policy = AnalyticPolicy(SCENARIO, LargestDeficit(SCENARIO), settings)
    assert count_solutions(policy, rows, monkeypatch) == solutions


def test_an_unchanged_demand_is_not_solved_again(monkeypatch) -> None:
    held = np.arange(NODES) % PROFILES
    rows = [make_observation(SCENARIO, held)] * 6
    policy = AnalyticPolicy(SCENARIO, LargestDeficit(SCENARIO), ReplanSettings(interval=1))
    assert count_solutions(policy, rows, monkeypatch) == 0


def test_few_requests_are_averaged_for_longer() -> None:
    quiet = SCENARIO.with_overrides({"demand.rate_per_node": 0.2})
    policy = AnalyticPolicy(quiet, LargestDeficit(quiet), ReplanSettings(least_requests=3000.0))
    rates = policy.model.long_run * 2.0
    row = make_observation(quiet, np.zeros(NODES, dtype=int), family_rates_per_s=rates)
    _, state = policy.predict(row)
    # 3000 requests at 5/s: 2 T = 600 s, of which the observation itself averages T = 30 s.
    weight = 1.0 - np.exp(-5.0 / 270.0)
    np.testing.assert_allclose(state[2][0], policy.model.long_run * (1.0 + weight), rtol=1e-5)


def test_nothing_is_solved_when_no_node_is_up() -> None:
    row = make_observation(
        SCENARIO,
        np.zeros(NODES, dtype=int),
        down=np.arange(NODES),
        family_rates_per_s=reversed_popularity(),
    )
    for name in ("analytic", "analytic_local", "uniform", "static_optimal", "random"):
        assert make_policy(name, SCENARIO).predict(row)[0] == NODES * PROFILES


@pytest.mark.parametrize(
    ("field", "value"),
    [("least_requests", -1.0), ("interval", 0), ("tolerance", -0.1), ("tolerance", float("nan"))],
)
def test_bad_settings_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} is {value}"):
        ReplanSettings(**{field: value})
