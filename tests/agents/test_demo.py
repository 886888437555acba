import csv
import json
from functools import partial

import pytest
from PIL import Image

from agents.app import main
from agents.config import TrainingConfig
from agents.training import train
from edgegym.sb3 import Manifest, load_model


@pytest.fixture
def arguments(config_file, tmp_path):
    folder = tmp_path / "demo"
    return [
        *("demo", "-o", str(folder), "--config", str(config_file)),
        *("--seeds", "2", "--threads", "1", "--workers", "1"),
    ], folder


def test_demo_end_to_end_and_over_again(arguments, capsys):
    command, folder = arguments
    assert main(command) == 0
    output = capsys.readouterr()
    for name in ("learned", "static", "uniform", "analytic", "analytic_local", "analytic_mpc"):
        assert name in output.out
    assert "the best analytic policy" in output.out
    assert sorted(path.name for path in folder.iterdir()) == [
        "agent.gif",
        "checkpoint-000000000200.json",
        "checkpoint-000000000200.zip",
        "comparison.csv",
        "comparison.json",
        "comparison.png",
        "config.yaml",
        "model.json",
        "model.zip",
        "tensorboard",
    ]
    assert Manifest.read(folder / "model.zip").scenario_name == "toy"
    result = json.loads((folder / "comparison.json").read_text())
    assert len(result["policies"]) == 6
    with (folder / "comparison.csv").open() as file:
        assert next(row["policy"] for row in csv.DictReader(file)) == "learned"
    with Image.open(folder / "agent.gif") as animation:
        assert animation.n_frames == 21
    with Image.open(folder / "comparison.png") as figure:
        assert figure.width > 100

    # A complete demo is replaced.
    assert main(command) == 0
    assert "starting over" in capsys.readouterr().err
    assert (folder / "comparison.json").is_file()


def test_interrupted_demo_goes_on(arguments, config_file, capsys, monkeypatch, ctrl_c_when):
    command, folder = arguments
    monkeypatch.setattr("agents.demo.train", partial(train, checkpoint_s=0.0))
    text = config_file.read_text()
    config_file.write_text(text.replace("total_steps: 200", "total_steps: 1_000_000_000"))
    with ctrl_c_when(lambda: any(folder.glob("checkpoint-*.zip"))):
        assert main(command) == 130
    assert "run the same command again" in capsys.readouterr().err
    kept = load_model(folder, "toy").num_timesteps
    assert kept > 0
    assert not (folder / "comparison.json").exists()
    # As if the demo had been planned so: the rest is one rollout.
    shorter = TrainingConfig.from_yaml(config_file).with_settings([f"total_steps={kept + 40}"])
    for path in (config_file, folder / "config.yaml"):
        shorter.to_yaml(path)
    assert main(command) == 0
    errors = capsys.readouterr().err
    assert f"going on from step {kept:,}" in errors
    assert Manifest.read(folder / "model.zip").steps == kept + 40
