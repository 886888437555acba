"""The clairvoyant reference against all futures, played one by one in copies of the environment."""

from copy import deepcopy

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.policies.clairvoyant import ClairvoyantPolicy, ClairvoyantSettings
from edgegym.simulator.tree import named_arrays
from edgegym.world import preset
from tests.policies.test_episodes import play

TOY = preset("toy")
NO_OP = 6


def reward(env: PlacementEnv, actions: list[int]) -> float:
    """Return what the environment itself pays for these actions."""
    copy = deepcopy(env)
    return sum(float(copy.step(action)[1]) for action in actions)


def started(seed: int, epochs: int = 0) -> tuple[PlacementEnv, np.ndarray, dict]:
    env = PlacementEnv(TOY.with_overrides({"demand.rate_per_node": 4.0}))
    observation, info = env.reset(seed=seed)
    for _ in range(epochs):
        observation, _, _, _, info = env.step(NO_OP)
    return env, observation, info


def chosen(env: PlacementEnv, observation: np.ndarray, **settings) -> int:
    policy = ClairvoyantPolicy(env.scenario, ClairvoyantSettings(**settings))
    policy.bind(env)
    return int(policy.predict(observation)[0])


@pytest.mark.parametrize("seed", range(3))
def test_without_a_beam_it_makes_the_move_with_the_best_future(seed):
    env, observation, info = started(seed)
    value = {
        int(action): reward(env, [int(action)] + [NO_OP] * 3)
        for action in np.flatnonzero(info["action_mask"])
    }
    action = chosen(env, observation, horizon_epochs=4, moves=6, beam=0)
    assert value[action] == max(value.values()) > value[NO_OP]


@pytest.mark.parametrize("seed", range(2))
def test_with_a_beam_it_makes_the_first_of_the_best_two_moves(seed):
    env, observation, info = started(seed)
    value: dict[int, float] = {}
    for first in map(int, np.flatnonzero(info["action_mask"])):
        after = deepcopy(env)
        _, paid, _, _, later = after.step(first)
        pairs = [
            float(paid) + reward(after, [int(second)] + [NO_OP] * 4)
            for second in np.flatnonzero(later["action_mask"])
        ]
        value[first] = max(pairs)
    action = chosen(env, observation, horizon_epochs=6, moves=6, beam=7, second_moves=6)
    assert value[action] == pytest.approx(max(value.values()))
    assert action != NO_OP


def test_it_does_not_touch_the_fleet():
    env, observation, _ = started(1)
    before = [array.copy() for _, array in named_arrays(env.fleet.get_state())]
    chosen(env, observation)
    for (_, array), kept in zip(named_arrays(env.fleet.get_state()), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def test_at_the_end_of_the_episode_a_move_that_pays_later_is_not_made():
    """The transfer takes 7 s, so within the last epoch of 5 s a move only costs."""
    last = TOY.control.horizon_epochs - 1
    env, observation, _ = started(0, epochs=last)
    assert chosen(env, observation) == NO_OP
    env, observation, _ = started(0, epochs=last - 4)
    assert chosen(env, observation) != NO_OP


def test_a_move_must_gain_enough():
    env, observation, _ = started(0)
    assert chosen(env, observation, least_gain=100.0) == NO_OP


def test_it_solves_the_toy():
    env = PlacementEnv(TOY)
    for seed in range(2):
        _, _, info = play(env, ClairvoyantPolicy(TOY), seed, epochs=12)
        assert sorted(env.fleet.state.profile[0].tolist()) == [1, 2]
        assert info["episode_moves"] == 2


def test_settings_are_checked():
    with pytest.raises(ValueError, match="horizon_epochs"):
        ClairvoyantSettings(horizon_epochs=0)
    with pytest.raises(ValueError, match="beam"):
        ClairvoyantSettings(beam=-1)
    with pytest.raises(TypeError, match="ClairvoyantSettings"):
        ClairvoyantPolicy(TOY, {"beam": 1})  # pyright: ignore[reportArgumentType]
