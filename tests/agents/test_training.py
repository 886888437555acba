import signal

import pytest
import torch
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents.config import ConfigError
from agents.training import read_run, train
from edgegym.envs.info import INFO_KEYWORDS
from edgegym.sb3 import Manifest, load_model
from edgegym.sb3.callbacks import latest_checkpoint


def weights(path):
    return load_model(path, "toy").policy.state_dict()


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


def test_training_twice_gives_the_same_bits(config, console, tmp_path):
    one = train(config, tmp_path / "one", console, threads=1)
    two = train(config, tmp_path / "two", console, threads=2)
    torch.set_num_threads(1)
    assert one.finished
    assert one.steps == two.steps == 200
    assert_same_bits(weights(one.model_path), weights(two.model_path))
    other = train(config.with_settings(["seed=8"]), tmp_path / "three", console, threads=1)
    assert any(
        not torch.equal(tensor, weights(other.model_path)[name])
        for name, tensor in weights(one.model_path).items()
    )


def test_what_a_run_leaves(config, console, tmp_path):
    folder = tmp_path / "run"
    result = train(config, folder, console, threads=1)
    assert result.model_path == folder / "model.zip"
    assert result.steps_per_s > 0
    assert sorted(path.name for path in folder.iterdir()) == [
        "checkpoint-000000000200.json",
        "checkpoint-000000000200.zip",
        "config.yaml",
        "model.json",
        "model.zip",
        "tensorboard",
    ]
    assert read_run(folder) == config
    manifest = Manifest.read(result.model_path)
    assert (manifest.seed, manifest.steps, manifest.total_steps) == (7, 200, 200)
    assert manifest.hyperparameters["n_steps"] == 20
    assert manifest.env_id == "EdgeGym/Placement-v0"
    log = EventAccumulator(str(folder / "tensorboard")).Reload()
    tags = set(log.Tags()["scalars"])
    names = {f"episode/{key.removeprefix('episode_')}" for key in INFO_KEYWORDS}
    assert names | {"episode/coverage", "episode/mean_ttft_s", "rollout/ep_rew_mean"} <= tags
    assert sorted(event.step for event in log.Scalars("episode/coverage")) == [
        40,
        80,
        120,
        160,
        200,
    ]
    assert all(0 <= event.value <= 1 for event in log.Scalars("episode/coverage"))
    assert all(event.value == 20 for event in log.Scalars("rollout/ep_len_mean"))


def test_resumes_where_it_was(config, console, tmp_path):
    folder = tmp_path / "run"
    train(config.with_settings(["total_steps=80"]), folder, console, threads=1)
    before = load_model(folder, "toy").policy.optimizer.state_dict()["state"][0]["step"]
    result = train(config, folder, console, threads=1)
    assert result.steps == 200
    assert "going on from step 80 of 200" in console.file.getvalue()
    after = load_model(folder, "toy").policy.optimizer.state_dict()["state"][0]["step"]
    assert (int(before), int(after)) == (8, 20)
    log = EventAccumulator(str(folder / "tensorboard")).Reload()
    assert sorted(event.step for event in log.Scalars("episode/coverage")) == [
        40,
        80,
        120,
        160,
        200,
    ]
    # The requests of an episode follow from its seed: the resumed session met other episodes.
    arrivals = {event.step: event.value for event in log.Scalars("episode/arrivals")}
    assert arrivals[120] != arrivals[40]
    found = latest_checkpoint(folder)
    assert found is not None
    assert found[1].steps == 200
    # Nothing is left to do: the model stays what it is.
    kept = weights(folder)
    assert train(config, folder, console, threads=1).steps_per_s == 0
    assert_same_bits(weights(folder), kept)


def test_a_checkpoint_without_its_manifest_is_passed_over(config, console, tmp_path):
    folder = tmp_path / "run"
    train(config.with_settings(["total_steps=40"]), folder, console, threads=1)
    (folder / "checkpoint-000000000080.zip").write_bytes(b"half")
    found = latest_checkpoint(folder)
    assert found is not None
    assert found[1].steps == 40


def test_learning_rate_falls_to_its_end(config, console, tmp_path):
    falling = config.with_settings(["hyperparameters.final_learning_rate=1e-5"])
    train(falling, tmp_path / "run", console, threads=1)
    log = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    rates = [event.value for event in log.Scalars("train/learning_rate")]
    assert rates[0] > rates[-1]
    assert rates[0] == pytest.approx(3e-3 + (1e-5 - 3e-3) * 0.2)


def test_evaluation_seeds_are_refused(config, console, tmp_path):
    with pytest.raises(ConfigError, match="seed = 10000: 2 environments would use the seeds"):
        train(config.with_settings(["seed=10000"]), tmp_path / "run", console, threads=1)


def test_ctrl_c_keeps_what_was_learned(config, console, tmp_path, ctrl_c_when):
    folder = tmp_path / "run"
    endless = config.with_settings(["total_steps=1_000_000_000"])
    before = signal.getsignal(signal.SIGINT)
    with ctrl_c_when(lambda: any(folder.glob("checkpoint-*.zip"))):
        result = train(endless, folder, console, threads=1, checkpoint_s=0.0)
    assert signal.getsignal(signal.SIGINT) == before
    assert not result.finished
    # Whole rollouts: what was not learned from is not counted.
    assert result.steps > 0
    assert result.steps % 40 == 0
    assert Manifest.read(result.model_path).steps == result.steps
    longer = config.with_settings([f"total_steps={result.steps + 40}"])
    assert train(longer, folder, console, threads=1).steps == result.steps + 40


def test_training_on_drawn_scenarios(config, console, tmp_path):
    worlds = tmp_path / "worlds.yaml"
    law = "{kind: uniform, path: demand.request_intensity, low: 0.5, high: 1.5}"
    worlds.write_text(f"scenarios: [toy]\nvary: [{law}]\n")
    drawn = config.with_settings([f"scenario={worlds}", "overrides.initial.warmup_s=5"])
    result = train(drawn, tmp_path / "run", console, threads=1)
    manifest = Manifest.read(result.model_path)
    assert manifest.draw["vary"][0]["high"] == 1.5
    assert manifest.scenario["initial"]["warmup_s"] == 5.0
    assert manifest.steps == 200
