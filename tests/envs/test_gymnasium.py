"""The environment in Gymnasium's own vector environments."""

import gymnasium as gym
import numpy as np
import pytest

from tests.envs.workers import ENV_ID, SHORT


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_sync_vector_environment_in_each_autoreset_mode(mode):
    env = gym.make_vec(
        ENV_ID,
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        overrides=SHORT,
    )
    observations, _ = env.reset(seed=[1, 2])
    assert not np.array_equal(observations[0], observations[1])
    no_op = np.full(2, env.single_action_space.n - 1)
    for step in range(1, 8):
        observations, rewards, terminated, truncated, info = env.step(no_op)
        assert observations in env.observation_space
        assert info["action_mask"].shape == (2, env.single_action_space.n)
        assert not terminated.any()
        if truncated.all() and mode == gym.vector.AutoresetMode.DISABLED:
            env.reset(options={"reset_mask": truncated})
        assert truncated.all() == (step in {3, 7 if mode.value == "NextStep" else 6})
        assert np.isfinite(rewards).all()
    env.close()


def test_async_vector_environment_agrees_with_sync():
    results = []
    for mode in ("sync", "async"):
        kwargs = {"vector_kwargs": {"context": "spawn"}} if mode == "async" else {}
        env = gym.make_vec(ENV_ID, num_envs=2, vectorization_mode=mode, overrides=SHORT, **kwargs)
        observations, info = env.reset(seed=[1, 2])
        action = np.array([np.flatnonzero(mask)[0] for mask in info["action_mask"]])
        after, rewards, *_ = env.step(action)
        results.append((observations.copy(), after.copy(), rewards.copy()))
        env.close()
    for one, two in zip(*results, strict=True):
        np.testing.assert_array_equal(one, two)
