from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

import edgegym
from agents.config import ConfigError, TrainingConfig
from agents.reward import BaselinedCoverage
from agents.seeds import session_seed
from agents.training import train
from edgegym.world import ScenarioError

CONFIGS = sorted((Path(__file__).parents[2] / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_shipped_configurations_are_valid(path):
    config = TrainingConfig.from_yaml(path)
    scenario = config.resolve()
    seed = session_seed(config.seed, 0, config.num_envs, scenario.evaluation_seeds)
    assert seed == config.seed
    assert config.hyperparameters.gamma == 0.95
    if path.stem != "demo":
        assert scenario.name == path.stem


def test_every_scenario_has_one():
    assert {path.stem for path in CONFIGS} == {*edgegym.presets(), "demo"}


def test_round_trip(config, tmp_path):
    changed = config.with_settings(["overrides.demand.rate_per_node=2.5"])
    changed.to_yaml(tmp_path / "again.yaml")
    assert TrainingConfig.from_yaml(tmp_path / "again.yaml") == changed
    assert changed != config


def test_frozen(config):
    with pytest.raises(ValidationError):
        config.seed = 1


def test_settings(config):
    changed = config.with_settings(
        ["total_steps=5_000", "hyperparameters.gamma=0.5", "overrides.demand.rate_per_node=4"]
    )
    assert changed.total_steps == 5000
    assert changed.hyperparameters.gamma == 0.5
    assert changed.hyperparameters.n_steps == 20
    assert changed.resolve().demand.rate_per_node == 4.0


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("total_step=5", "total_step: unknown key"),
        ("hyperparameters.gama=0.5", "hyperparameters.gama: unknown key"),
        ("hyperparameters.gamma=1.5", r"hyperparameters.gamma = 1.5: Input should be less than"),
        ("total_steps=none", "total_steps = 'none': Input should be a valid integer"),
        ("seed=-1", "seed = -1: Input should be greater than or equal to 0"),
        ("algorithm=DQN", "algorithm = 'DQN': Input should be 'MaskablePPO'"),
        ("env_id=CartPole-v1", "env_id = 'CartPole-v1'"),
        ("total_steps", "--set total_steps: must be path=value"),
        ("total_steps=[", r"--set total_steps=\[: the value is not YAML"),
    ],
)
def test_bad_settings_are_named(config, setting, message):
    with pytest.raises(ConfigError, match=message):
        config.with_settings([setting])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenario: toy\nspeed: 3\n", "speed: unknown key"),
        ("seed: 3\n", "scenario: missing, but required"),
        ("- scenario\n", "must be a mapping, got list"),
        ("scenario: [", "bad.yaml: while parsing"),
    ],
)
def test_bad_files_are_named(tmp_path, text, message):
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message) as caught:
        TrainingConfig.from_yaml(path)
    assert f"config file {path}" in str(caught.value)


def test_reward_baseline_needs_the_coverage_objective(config, console, tmp_path):
    settings = ["reward_baseline=0.8", "overrides.objective={kind: goodput, ttft_target_s: 1.0}"]
    with pytest.raises(ConfigError, match=r"reward_baseline = 0\.8: it goes with the objective"):
        train(config.with_settings(settings), tmp_path / "run", console)
    assert not (tmp_path / "run").exists()


def test_reward_baseline_takes_the_number_of_requests_out(config):
    reward = BaselinedCoverage.of(config.resolve(), 0.75)
    expected = reward.expected_arrivals
    assert expected == pytest.approx(20.0)
    for decided in (8, 80):
        assert reward(SimpleNamespace(decided=decided, hits=decided * 3 // 4)) == 0.0
    better = reward(SimpleNamespace(decided=80, hits=64))
    assert better == pytest.approx(4 / expected)


def test_bad_override_names_the_field(config):
    with pytest.raises(ScenarioError, match=r"demand\.rate"):
        config.with_settings(["overrides.demand.rate=4"]).resolve()


def test_training_seeds_are_never_evaluation_seeds():
    kept = range(10_000, 10_020)
    assert session_seed(9_984, 0, 16, kept) == 9_984
    for seed in (9_985, 10_000, 10_019):
        with pytest.raises(ConfigError, match=f"seed = {seed}: .* keeps .* for evaluation"):
            session_seed(seed, 0, 16, kept)
    # A resumed run draws another seed, and again if it must.
    first = session_seed(0, 4096, 16, kept)
    assert first == session_seed(0, 4096, 16, kept)
    assert first not in (0, session_seed(1, 4096, 16, kept), session_seed(0, 8192, 16, kept))
    assert not set(range(first, first + 16)) & set(kept)
    again = session_seed(0, 4096, 16, {first + 3})
    assert first + 3 not in range(again, again + 16)


def test_numbers_and_duplicates_are_read_as_people_mean_them(config, tmp_path):
    assert config.with_settings(["hyperparameters.gamma=5e-1"]).hyperparameters.gamma == 0.5
    path = tmp_path / "twice.yaml"
    path.write_text("scenario: toy\nseed: 1\nseed: 2\n")
    with pytest.raises(ConfigError, match="seed"):
        TrainingConfig.from_yaml(path)
