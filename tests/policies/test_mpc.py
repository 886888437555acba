"""The policy with a receding horizon, on written observations and in the real environment."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.interface.layout import DEMAND_EWMA_S
from edgegym.policies import make_policy
from edgegym.policies.analytic import Target
from edgegym.policies.local import LocalSettings, family_savings_s, holding_savings_s
from edgegym.policies.mpc import MpcPolicy, MpcSettings
from edgegym.world import preset
from tests.policies.observations import make_observation
from tests.policies.test_episodes import play

SCENARIO = preset("moving-hotspot")
NODES, PROFILES, FAMILIES = 25, 8, 7
NO_OP = NODES * PROFILES
DEEP = 2
WORLD = SCENARIO.compile()
RATES = WORLD.mean_rate_per_s * WORLD.family_share


def no_plan(**kwargs) -> MpcSettings:
    return MpcSettings(tolerance=1.0, **kwargs)


def test_savings_of_what_two_profiles_share() -> None:
    holdings = holding_savings_s(SCENARIO)
    np.testing.assert_array_equal(holdings[:PROFILES], family_savings_s(SCENARIO))
    kept = WORLD.meet[DEEP, DEEP + 1]
    np.testing.assert_allclose(holdings[kept], holdings[1])  # the shared root


def test_state_moves_ahead_of_the_crowd() -> None:
    """Demand falls at its holder and rises at another node: the forecast sees it further on."""
    held = np.full(NODES, 1)
    held[0] = DEEP
    policy = MpcPolicy(SCENARIO, no_plan())
    still = MpcPolicy(SCENARIO, no_plan(ahead_s=0.0))
    near = np.full((NODES, FAMILIES), 0.05)
    kept = np.exp(-5.0 / DEMAND_EWMA_S)
    gains = []
    for chosen in (policy, still):
        state, rows = None, near.copy()
        rows[0, 0] = 2.0
        for epoch in range(30):
            truth = np.full((NODES, FAMILIES), 0.05)
            truth[0, 0], truth[5, 0] = 2.0 - 0.06 * epoch, 0.05 + 0.06 * epoch
            rows = kept * rows + (1.0 - kept) * truth
            row = make_observation(SCENARIO, held, near_demand_per_s=rows)
            _, state = chosen.predict(row, state)
        view = chosen._reader.view(row)
        forecast = type(chosen.forecaster.begin(*chosen._observed(view)))(
            *(part[0] for part in state[6:])
        )
        foreseen = chosen.forecaster.pattern(forecast, chosen.settings.ahead_s)
        gains.append(foreseen[5, 0] - foreseen[0, 0])
    assert gains[0] > gains[1] > rows[5, 0] - rows[0, 0]


def test_the_transfer_costs_what_it_keeps_from_being_served() -> None:
    held = np.full(NODES, 1)
    near = np.zeros((NODES, FAMILIES))
    near[:, 0] = 1.0
    policy = MpcPolicy(SCENARIO, no_plan())
    view = policy._reader.view(make_observation(SCENARIO, held, near_demand_per_s=near))
    target = Target(np.eye(PROFILES)[1], RATES)
    lost = policy._lost(view, near, target)
    gained = policy.chooser.worth(view, target, near)
    seconds = WORLD.move_bytes[1, DEEP] / WORLD.backhaul_bytes_per_s
    # From shallow to deep, the root stays: lost is the gain for as long as the transfer lasts.
    free = MpcPolicy(SCENARIO, no_plan(local=LocalSettings(mix_weight=0.0)))
    gained = free.chooser.worth(view, target, near)
    np.testing.assert_allclose(lost[:, DEEP], gained[:, DEEP] * seconds / policy.settings.dwell_s)
    assert not lost[:, 0].any()  # to nothing at once
    slow = MpcPolicy(SCENARIO, no_plan(dwell_s=1.0))
    assert (slow._lost(view, near, target)[:, DEEP] <= gained[:, DEEP] + 1e-12).all()


def test_a_move_that_does_not_outlast_its_transfer_is_not_made() -> None:
    held = np.full(NODES, 1)
    near = np.full((NODES, FAMILIES), 0.05)
    near[3, 2] = 2.0
    row = make_observation(SCENARIO, held, near_demand_per_s=near)
    action, _ = MpcPolicy(SCENARIO, no_plan()).predict(row)
    assert divmod(int(action), PROFILES) == (3, DEEP + 2)
    settings = no_plan(dwell_s=1.0, local=LocalSettings(mix_weight=0.0, hysteresis=0.015))
    action, _ = MpcPolicy(SCENARIO, settings).predict(row)
    assert action == NO_OP


def test_the_plan_follows_the_load_that_is_foreseen() -> None:
    scenario = preset("diurnal-load")
    policy = MpcPolicy(scenario, MpcSettings(interval_s=5.0))
    held = np.repeat(np.arange(PROFILES), [4, 3, 3, 3, 3, 3, 3, 3])
    world = scenario.compile()
    state = None
    for epoch in range(12):
        rates = world.mean_rate_per_s * world.family_share * (1.0 + 0.06 * epoch)
        row = make_observation(scenario, held, family_rates_per_s=rates)
        _, state = policy.predict(row, state)
    mix, planned_for = state[3][0], state[4][0]
    assert planned_for.sum() > 1.2 * world.mean_rate_per_s
    counts = mix * NODES
    np.testing.assert_allclose(counts, np.round(counts))
    assert counts.sum() == pytest.approx(NODES)
    # No more than the bucket and two periods' worth of budget: 9 + 18 GiB of 3 or 7 each.
    assert 0 < np.abs(counts - np.bincount(held, minlength=PROFILES)).sum() / 2 <= 9


def test_the_plan_is_for_the_demand_in_the_middle_of_each_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    policy = MpcPolicy(SCENARIO, MpcSettings(periods=3, period_s=40.0, tolerance=0.0))
    monkeypatch.setattr(policy.forecaster, "load", lambda _, ahead_s: 10.0 + ahead_s)
    totals: dict[int, float] = {}
    networks, planned = [], []
    network = policy.model.network

    def note(rates: Any, nodes: int) -> Any:
        networks.append(network(rates, nodes))
        totals[id(networks[-1])] = float(rates.sum())
        return networks[-1]

    def plan(path: list[Any], **_: Any) -> Any:
        planned.append([totals[id(one)] for one in path])
        return SimpleNamespace(mixes=[np.eye(PROFILES)[0]])

    monkeypatch.setattr(policy.model, "network", note)
    monkeypatch.setattr("edgegym.analytic.plan_path", plan)
    _, state = policy.predict(make_observation(SCENARIO, np.full(NODES, 1)))
    assert len(planned) == 1
    np.testing.assert_allclose(planned[0], [10.0 + 20.0, 10.0 + 60.0, 10.0 + 100.0])
    np.testing.assert_allclose(state[4][0].sum(), 10.0 + 60.0)  # what it was planned for


def test_nothing_is_done_when_no_node_is_up() -> None:
    row = make_observation(SCENARIO, np.zeros(NODES, dtype=int), down=np.arange(NODES))
    policy = make_policy("analytic_mpc", SCENARIO)
    action, state = policy.predict(row)
    assert action == NO_OP
    action, state = policy.predict(row, state)
    assert action == NO_OP
    assert all(np.isfinite(part).all() for part in state)


@pytest.mark.parametrize("name", ["moving-hotspot", "paper"])
def test_a_batch_of_episodes_is_its_rows(name: str) -> None:
    env = PlacementEnv(name)
    policy = make_policy("analytic_mpc", env.scenario)
    played = [play(env, policy, seed, epochs=12)[:2] for seed in range(2)]
    state, together = None, []
    for rows in zip(*(seen for _, seen in played), strict=True):
        actions, state = policy.predict(np.stack(rows), state)
        together.append(actions)
    for column, (alone, _) in enumerate(played):
        assert [int(actions[column]) for actions in together] == alone


def test_the_toy_gets_one_prefix_on_each_node() -> None:
    env = PlacementEnv("toy")
    for seed in range(3):
        play(env, make_policy("analytic_mpc", env.scenario), seed, epochs=14)
        assert sorted(env.fleet.state.profile[0].tolist()) == [1, 2]


@pytest.mark.slow
def test_looking_ahead_is_worth_it_where_demand_moves() -> None:
    env = PlacementEnv("moving-hotspot")
    gain = []
    for seed in range(3):
        covered = {}
        for name in ("analytic_local", "analytic_mpc"):
            _, _, info = play(env, make_policy(name, env.scenario), seed, epochs=120)
            covered[name] = info["episode_hits"] / info["episode_decided"]
        gain.append(covered["analytic_mpc"] - covered["analytic_local"])
    assert np.mean(gain) > 0.005


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("ahead_s", -1.0),
        ("dwell_s", 0.0),
        ("period_s", float("nan")),
        ("interval_s", -5.0),
        ("tolerance", 2.0),
        ("periods", 0),
        ("periods", 1.5),
    ],
)
def test_wrong_settings_are_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} is {value}"):
        MpcSettings(**{field: value})


def test_what_are_no_settings_is_refused() -> None:
    wrong: Any = "x"
    with pytest.raises(TypeError, match="settings is 'x': must be MpcSettings"):
        MpcPolicy(preset("toy"), wrong)
    with pytest.raises(TypeError, match="local is 'x': must be LocalSettings"):
        MpcSettings(local=wrong)
    with pytest.raises(TypeError, match="forecast is 'x': must be ForecastSettings"):
        MpcSettings(forecast=wrong)
