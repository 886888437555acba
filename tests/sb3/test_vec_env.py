from functools import partial

import gymnasium
import numpy as np
import pytest
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from edgegym.sb3 import ThreadVecEnv


def make():
    return gymnasium.make("edgegym:EdgeGym/Placement-v0", scenario="toy")


def monitored():
    return Monitor(make())


def play(vector, steps=25):
    """Return all that a learner sees of two environments under random legal actions."""
    generator = np.random.default_rng(0)
    vector.seed(5)
    seen = [vector.reset()]
    infos = []
    for _ in range(steps):
        masks = np.stack(vector.env_method("action_masks"))
        actions = np.array([generator.choice(np.flatnonzero(mask)) for mask in masks])
        observation, rewards, dones, step_infos = vector.step(actions)
        seen += [masks, observation, rewards, dones]
        infos += step_infos
    vector.close()
    return seen, infos


@pytest.mark.parametrize("threads", [1, 2])
def test_same_as_dummy_vec_env_with_monitors(threads):
    seen, infos = play(ThreadVecEnv([make, make], num_threads=threads))
    expected, expected_infos = play(DummyVecEnv([monitored, monitored]))
    for mine, theirs in zip(seen, expected, strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)
    ended = 0
    for mine, theirs in zip(infos, expected_infos, strict=True):
        assert mine.keys() == theirs.keys()
        assert mine["TimeLimit.truncated"] == theirs["TimeLimit.truncated"]
        if "episode" in theirs:
            ended += 1
            assert mine["TimeLimit.truncated"]
            assert mine["episode"]["l"] == theirs["episode"]["l"] == 20
            assert mine["episode"]["r"] == pytest.approx(theirs["episode"]["r"], abs=1e-5)
            np.testing.assert_array_equal(
                mine["terminal_observation"], theirs["terminal_observation"]
            )
    assert ended == 2


def test_returned_arrays_are_fresh():
    vector = ThreadVecEnv([make], num_threads=1)
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


def test_an_error_in_an_environment_reaches_the_caller():
    vector = ThreadVecEnv([make] * 3, num_threads=2)
    vector.reset()
    with pytest.raises(ValueError, match="action is 99"):
        vector.step(np.array([0, 99, 99]))
    vector.close()


def test_one_thread_at_least():
    with pytest.raises(ValueError, match="num_threads is 0"):
        ThreadVecEnv([partial(make)], num_threads=0)
