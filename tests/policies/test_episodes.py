"""The policies in the real environment."""

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.policies import Policy, make_policy, policies
from edgegym.policies.bound import BoundPolicy


def play(
    env: PlacementEnv, policy: Policy, seed: int, *, epochs: int, masks: bool = True
) -> tuple[list[int], list[np.ndarray], dict]:
    if isinstance(policy, BoundPolicy):
        policy.bind(env)
    observation, info = env.reset(seed=seed)
    state, actions, seen = None, [], []
    for _ in range(epochs):
        seen.append(observation)
        mask = info["action_mask"] if masks else None
        action, state = policy.predict(observation, state, action_masks=mask)
        assert info["action_mask"][action]
        observation, _, _, _, info = env.step(action)
        actions.append(int(action))
    return actions, seen, info


@pytest.mark.parametrize("name", policies())
def test_actions_are_legal_with_and_without_masks(name: str) -> None:
    env = PlacementEnv("moving-hotspot")
    policy = make_policy(name, env.scenario, seed=1)
    masked, _, info = play(env, policy, 0, epochs=25)
    assert info["episode_illegal_actions"] == 0
    unmasked, _, info = play(env, policy, 0, epochs=25, masks=False)
    assert info["episode_illegal_actions"] == 0
    assert masked == unmasked  # the observation says exactly what is legal
    if name not in ("static", "lru"):
        assert info["episode_moves"] > 0


@pytest.mark.parametrize("name", ["analytic", "analytic_local"])
def test_a_batch_of_episodes_is_its_rows(name: str) -> None:
    env = PlacementEnv("popularity-drift")
    policy = make_policy(name, env.scenario)
    played = [play(env, policy, seed, epochs=15)[:2] for seed in range(2)]
    state, together = None, []
    for rows in zip(*(seen for _, seen in played), strict=True):
        actions, state = policy.predict(np.stack(rows), state)
        together.append(actions)
    for column, (alone, _) in enumerate(played):
        assert [int(actions[column]) for actions in together] == alone


@pytest.mark.parametrize("name", ["analytic", "analytic_local"])
def test_the_toy_gets_one_prefix_on_each_node(name: str) -> None:
    env = PlacementEnv("toy")
    for seed in range(3):
        play(env, make_policy(name, env.scenario), seed, epochs=14)
        assert sorted(env.fleet.state.profile[0].tolist()) == [1, 2]


def test_local_demand_beats_the_mix_and_the_mix_beats_nothing() -> None:
    env = PlacementEnv("moving-hotspot")
    coverage = {}
    for name in ("static", "analytic", "analytic_local"):
        policy = make_policy(name, env.scenario)
        infos = [play(env, policy, seed, epochs=60)[2] for seed in range(3)]
        hits = sum(info["episode_hits"] for info in infos)
        coverage[name] = hits / sum(info["episode_decided"] for info in infos)
    assert coverage["analytic"] > coverage["static"] + 0.05
    assert coverage["analytic_local"] > coverage["analytic"] + 0.02
