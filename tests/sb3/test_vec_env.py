from functools import partial

import gymnasium
import numpy as np
import pytest
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from edgegym.envs.vector import PlacementVectorEnv
from edgegym.sb3 import EdgeVecEnv
from edgegym.world import Integers, ScenarioDraw, Uniform

ENV_ID = "edgegym:EdgeGym/Placement-v0"


def monitored(**options):
    return Monitor(gymnasium.make(ENV_ID, scenario="toy", **options))


def play(vector, steps=45):
    """Return all that a learner sees of two environments under random actions."""
    generator = np.random.default_rng(0)
    vector.seed(5)
    seen = [vector.reset()]
    infos = list(vector.reset_infos)
    for _ in range(steps):
        masks = get_action_masks(vector)
        actions = np.array([generator.choice(np.flatnonzero(mask)) for mask in masks])
        if generator.random() < 0.2:
            actions[0] = 0  # legal or not
        observation, rewards, dones, step_infos = vector.step(actions)
        seen += [masks, observation, rewards, dones]
        infos += step_infos
        if dones.any():
            infos += vector.reset_infos
    vector.close()
    return seen, infos


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("moves_per_epoch", [1, 2])
def test_same_as_dummy_vec_env_with_monitors(threads, moves_per_epoch):
    overrides = {"control.moves_per_epoch": moves_per_epoch}
    vector = EdgeVecEnv.make(ENV_ID, 2, scenario="toy", num_threads=threads, overrides=overrides)
    seen, infos = play(vector)
    expected, expected_infos = play(DummyVecEnv([partial(monitored, overrides=overrides)] * 2))
    for mine, theirs in zip(seen, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    ended = 0
    for mine, theirs in zip(infos, expected_infos, strict=True):
        assert mine.keys() == theirs.keys()
        for key in mine.keys() - {"episode"}:
            assert type(mine[key]) is type(theirs[key]), key
            np.testing.assert_array_equal(mine[key], theirs[key], err_msg=key)
        if "episode" in theirs:
            ended += 1
            assert mine["TimeLimit.truncated"] is True
            assert mine["episode"]["l"] == theirs["episode"]["l"]
            assert mine["episode"]["r"] == pytest.approx(theirs["episode"]["r"], abs=1e-5)
            assert mine["episode"]["t"] > 0
    assert ended >= 2


def test_returned_arrays_are_fresh():
    vector = EdgeVecEnv.make(ENV_ID, 1, scenario="toy")
    first = vector.reset()
    kept = first.copy()
    no_op = np.array([vector.action_space.n - 1])
    second, _, _, infos = vector.step(no_op)
    kept_info = dict(infos[0])
    vector.step(no_op)
    np.testing.assert_array_equal(first, kept)
    assert not np.array_equal(second, kept)
    assert infos[0]["episode_arrivals"] == kept_info["episode_arrivals"]
    vector.close()


def test_monitors_are_not_needed():
    vector = EdgeVecEnv.make(ENV_ID, 2, scenario="toy", overrides={"control.horizon_epochs": 3})
    assert vector.env_is_wrapped(Monitor) == [True, True]
    assert vector.env_is_wrapped(gymnasium.wrappers.TimeLimit, indices=0) == [False]

    class Still:
        def predict(self, observations, **_):
            return np.full(len(observations), vector.action_space.n - 1), None

    # It warns, which is an error here, where it finds no Monitor.
    _, lengths = evaluate_policy(Still(), vector, n_eval_episodes=4, return_episode_rewards=True)
    assert lengths == [3] * 4
    vector.close()


def test_attributes_and_methods():
    vector = EdgeVecEnv.make(ENV_ID, 3, scenario="toy")
    vector.reset()
    assert is_masking_supported(vector)
    assert vector.env_method("action_masks", indices=[2])[0].shape == (vector.action_space.n,)
    assert [scenario.name for scenario in vector.get_attr("scenario")] == ["toy"] * 3
    assert vector.get_attr("spec", 0)[0].id == "EdgeGym/Placement-v0"
    assert not vector.has_attr("no_such_thing")
    with pytest.raises(AttributeError, match="scenario can't be set"):
        vector.set_attr("scenario", None)
    vector.close()


def test_wrong_actions_are_refused_before_anything_happens():
    vector = EdgeVecEnv.make(ENV_ID, 3, scenario="toy", num_threads=2)
    vector.reset()
    with pytest.raises(ValueError, match="action is 99 in environment 1"):
        vector.step(np.array([0, 99, 99]))
    vector.close()


def test_what_it_adapts():
    with pytest.raises(TypeError, match="must be an edgegym vector environment"):
        EdgeVecEnv(gymnasium.make(ENV_ID, scenario="toy"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="autoreset_mode next_step: it must be same_step"):
        EdgeVecEnv(PlacementVectorEnv(2, "toy"))


def test_same_as_dummy_vec_env_in_drawn_scenarios():
    draw = ScenarioDraw(
        scenarios=("toy",),
        vary=(
            Integers(path="nodes.count", low=1, high=4),
            Uniform(path="demand.request_intensity", low=0.5, high=1.5),
        ),
    )
    vector = EdgeVecEnv.make(ENV_ID, 2, scenario=draw)
    assert vector.get_attr("draw") == [draw] * 2
    seen, infos = play(vector)
    expected, expected_infos = play(
        DummyVecEnv([lambda: Monitor(gymnasium.make(ENV_ID, scenario=draw))] * 2)
    )
    for mine, theirs in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    numbers = [[info["scenario.nodes.count"] for info in rows] for rows in (infos, expected_infos)]
    assert numbers[0] == numbers[1]
    assert len(set(numbers[0])) > 1
