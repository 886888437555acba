"""Algorithms for continuous actions train on the environment of target mixes."""

import gymnasium as gym
import numpy as np
from stable_baselines3 import SAC


def test_sac_trains():
    env = gym.make(
        "edgegym:EdgeGym/RegionalMix-v0",
        scenario="toy",
        regions=(1, 2),
        overrides={"control.epoch_s": 0.5, "initial.warmup_s": 0.0, "control.horizon_epochs": 50},
    )
    model = SAC(
        "MlpPolicy",
        env,
        learning_starts=100,
        train_freq=4,
        batch_size=64,
        policy_kwargs={"net_arch": [16]},
        seed=0,
    )
    before = [value.detach().clone() for value in model.policy.parameters()]
    model.learn(500)
    assert model.num_timesteps == 500
    after = list(model.policy.parameters())
    assert any(not old.equal(new) for old, new in zip(before, after, strict=True))
    assert all(bool(value.isfinite().all()) for value in after)
    observation, _ = env.reset(seed=1)
    action, _ = model.predict(observation, deterministic=True)
    assert action in env.action_space
    assert np.isfinite(env.step(action)[1])
    env.close()
