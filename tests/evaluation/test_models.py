"""Comparing Stable-Baselines3 models: objects, files, other fleets, misfits."""

import shutil

import gymnasium as gym
import pytest

from edgegym.evaluation import compare, plan_comparison
from edgegym.evaluation.contestants import contestant

pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO
from stable_baselines3 import PPO

from edgegym.sb3 import ModelError, NodeScorerPolicy, save_model, scorer_kwargs

SHORT = {"control.horizon_epochs": 6}


def _toy(**options):
    return gym.make("edgegym:EdgeGym/Placement-v0", scenario="toy", **options)


@pytest.fixture(scope="module")
def model():
    env = _toy()
    made = MaskablePPO(
        NodeScorerPolicy, env, policy_kwargs=scorer_kwargs(env), n_steps=64, batch_size=64, seed=0
    )
    return made.learn(64)


@pytest.fixture(scope="module")
def run_folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    save_model(model, folder / "model.zip")
    return folder


def test_object_file_and_folder_play_the_same_in_workers_and_here(model, run_folder):
    policies = {"object": model, "file": run_folder / "model.zip", "folder": str(run_folder)}
    here = compare(policies, "toy", [1, 2], workers=1, progress=False, overrides=SHORT)
    away = compare(policies, "toy", [1, 2], workers=2, progress=False, overrides=SHORT)
    assert here.per_seed == away.per_seed
    assert away.card.workers == 2
    assert here.table["object"].source == "MaskablePPO model"
    assert here.table["file"].source == str(run_folder / "model.zip")
    hits = {row.policy: row.hits for row in here.table and here.per_seed if row.seed == 1}
    assert len(set(hits.values())) == 1
    assert all(row.illegal_actions == 0 for row in here.table)


def test_an_object_plays_as_its_own_predict_says(model):
    outcome = compare({"m": model}, "toy", [5], workers=1, progress=False, overrides=SHORT)

    def by_hand(observation, info):
        action, _ = model.predict(observation, deterministic=True, action_masks=info["action_mask"])
        return action

    same = compare({"m": by_hand}, "toy", [5], workers=1, progress=False, overrides=SHORT)
    assert [row.total_reward for row in outcome.per_seed] == [
        row.total_reward for row in same.per_seed
    ]


def test_a_node_scorer_plays_on_a_larger_fleet(model):
    larger = SHORT | {"nodes.count": 5}
    outcome = compare({"m": model}, "toy", [1], workers=1, progress=False, overrides=larger)
    assert outcome.table["m"].illegal_actions == 0


def test_a_model_that_does_not_fit_is_refused_before_playing(model, run_folder):
    for value in (model, run_folder):
        with pytest.raises(ModelError, match=r"does not fit scenario 'paper'"):
            plan_comparison({"m": value}, "paper")


def test_a_model_without_its_manifest_is_refused(run_folder, tmp_path):
    shutil.copy(run_folder / "model.zip", tmp_path / "alone.zip")
    with pytest.raises(ModelError, match="no manifest"):
        plan_comparison({"m": tmp_path / "alone.zip"}, "toy")


def test_a_model_without_masks_or_manifest_is_played_if_its_spaces_fit():
    made = PPO("MlpPolicy", _toy(), n_steps=8, batch_size=8, device="cpu")
    outcome = compare({"ppo": made}, "toy", [1], workers=1, progress=False, overrides=SHORT)
    assert outcome.table["ppo"].source == "PPO model"
    with pytest.raises(ValueError, match=r"PPO model: its observation_space is .*'paper'"):
        plan_comparison({"ppo": made}, "paper")


def test_a_clocked_model_needs_a_clocked_environment():
    env = _toy(observe_clock=True)
    made = MaskablePPO(NodeScorerPolicy, env, policy_kwargs=scorer_kwargs(env), n_steps=8, seed=0)
    plan_comparison({"m": made}, "toy", observe_clock=True)
    with pytest.raises(ModelError, match="clock"):
        plan_comparison({"m": made}, "toy")


def test_a_copy_is_taken_of_an_object(model):
    taken = contestant("m", model)
    archive = taken.archive
    model.learn(64, reset_num_timesteps=False)
    assert contestant("m", model).archive != archive == taken.archive
