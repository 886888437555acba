"""Pains of people who train agents: each shown to be absent."""

import copy
import json

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium.vector import VectorEnv
from sb3_contrib import MaskablePPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv

from edgegym.envs.info import INFO_KEYWORDS
from edgegym.envs.placement import PlacementEnv
from edgegym.evaluation import compare
from edgegym.sb3 import (
    EdgeVecEnv,
    ModelError,
    NodeScorerPolicy,
    load_model,
    save_model,
    scorer_kwargs,
)
from edgegym.world import preset
from tests.envs.workers import ENV_ID, SHORT

SEEDS = (10_000, 10_001)


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(seed):
    env = EdgeVecEnv.make(ENV_ID, 2, scenario="toy", overrides=SHORT, num_threads=1)
    model = MaskablePPO(
        NodeScorerPolicy,
        env,
        n_steps=16,
        batch_size=16,
        n_epochs=1,
        policy_kwargs=scorer_kwargs(env, width=8),
        seed=seed,
        device="cpu",
    )
    return model.learn(64)


@pytest.fixture(scope="module")
def models():
    return [trained(seed) for seed in (1, 1, 2)]


def test_training_and_evaluation_can_be_repeated(models):
    one, same, other = (model.policy.state_dict() for model in models)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)
    played = [
        compare({"agent": model}, "toy", SEEDS, overrides=SHORT, workers=1, progress=False)
        for model in models[:2]
    ]
    assert played[0].per_seed == played[1].per_seed
    assert not set(SEEDS) - set(preset("toy").evaluation_seeds), "frozen with the scenario"


def test_masks_are_not_forgotten_in_evaluation(models):
    eager = copy.deepcopy(models[0].policy)
    with torch.no_grad():
        eager.scorer.no_op_score.bias.fill_(-100.0)  # moves whenever it may
    players = {"eager": eager, "chance": "random"}
    result = compare(players, "toy", SEEDS, overrides=SHORT, workers=1, progress=False)
    assert [row.illegal_actions for row in result.per_seed] == [0] * 4
    env = PlacementEnv("toy", overrides=SHORT)
    observation, _ = env.reset(seed=SEEDS[0])
    for _ in range(3):
        action, _ = eager.predict(observation, deterministic=True)
        observation, *_, info = env.step(int(action))
    assert info["episode_illegal_actions"] > 0, "there is something to forget"


def test_sb3_takes_the_native_vector_environment():
    env = EdgeVecEnv.make(ENV_ID, 2, scenario="toy", overrides=SHORT)
    assert isinstance(env, VecEnv)
    assert isinstance(env.vector, VectorEnv)
    env.reset()
    assert np.stack(env.env_method("action_masks")).shape == (2, env.action_space.n)
    for _ in range(3):
        observations, _, dones, infos = env.step(np.full(2, env.action_space.n - 1))
    assert dones.all()
    for b, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is True
        assert info["terminal_observation"].shape == env.observation_space.shape
        assert not np.array_equal(info["terminal_observation"], observations[b])
    env.close()


def test_there_are_no_statistics_to_normalise_with():
    env = PlacementEnv("moving-hotspot", overrides=SHORT | {"control.horizon_epochs": 20})
    observation, _ = env.reset(seed=0)
    rows, rewards = [observation], []
    for _ in range(20):
        observation, reward, *_ = env.step(env.actions.no_op)
        rows.append(observation)
        rewards.append(reward)
    assert 0.0 <= np.min(rows) < np.max(rows) <= 1.0
    assert 0.0 <= min(rewards) <= max(rewards) < 2.0


def test_a_model_that_does_not_fit_says_why(models, tmp_path):
    path = save_model(models[0], tmp_path / "model.zip")
    manifest = json.loads(path.with_suffix(".json").read_text())
    assert manifest.keys() >= {"versions", "env_id", "scenario", "seed", "layout_hash"}
    assert load_model(path, "toy").num_timesteps == 64
    assert load_model(path, preset("toy").with_overrides({"nodes.count": 5})) is not None
    with pytest.raises(ModelError, match=r"num_profiles \(S\) is 3 in the model, 8 there"):
        load_model(path, "moving-hotspot")
    manifest["layout_hash"] = "0" * 16
    path.with_suffix(".json").write_text(json.dumps(manifest))
    with pytest.raises(ModelError, match="layout hash is 0000000000000000 in the model"):
        load_model(path, "toy")


def test_monitor_logs_what_happened():
    env = Monitor(gym.make(ENV_ID, overrides=SHORT), info_keywords=INFO_KEYWORDS)
    env.reset(seed=0)
    for _ in range(3):
        *_, info = env.step(env.action_space.n - 1)
    assert info["episode"]["episode_hits"] == info["episode_hits"] > 0
    env.close()
