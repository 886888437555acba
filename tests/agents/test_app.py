import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agents.app import main
from edgegym.sb3 import Manifest, load_model
from edgegym.sb3.callbacks import latest_checkpoint
from edgegym.world import preset

CLONE = Path(__file__).parents[2]
ENDLESS = ["--set", "total_steps=1_000_000_000", "--threads", "1"]


@pytest.fixture
def start():
    """Start ``python -m agents`` in a process of its own; end it in any case."""
    started = []

    def run(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-m", "agents", *map(str, arguments)],
            cwd=CLONE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def wait_for(condition, process, seconds=400.0):
    # Long, because the first process that needs a kernel compiles it.
    end = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_killed_training_resumes(start, config_file, tmp_path, capsys):
    folder = tmp_path / "run"
    process = start("train", config_file, "-o", folder, "--checkpoint-s", "0.001", *ENDLESS)
    seen = set()

    def several():
        seen.update(path.name for path in folder.glob("checkpoint-*.zip"))
        return len(seen) >= 3

    wait_for(several, process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    found = latest_checkpoint(folder)
    assert found is not None
    path, manifest = found
    assert load_model(path, "toy").num_timesteps == manifest.steps
    total = manifest.steps + 40
    code = main(["train", "--resume", str(folder), "--set", f"total_steps={total}"])
    assert code == 0
    assert f"trained {total:,} of {total:,} steps" in capsys.readouterr().err
    assert Manifest.read(folder / "model.zip").steps == total
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


def test_ctrl_c_ends_training_with_130(start, config_file, tmp_path):
    folder = tmp_path / "run"
    process = start("train", config_file, "-o", folder, "--checkpoint-s", "0.001", *ENDLESS)
    wait_for(lambda: any(folder.glob("checkpoint-*.zip")), process)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted: kept what was trained" in errors
    assert f"to go on: python -m agents train --resume {folder}" in errors
    assert "Traceback" not in errors
    assert load_model(folder / "model.zip", "toy").num_timesteps > 0


def test_train_then_evaluate(config_file, tmp_path, capsys):
    folder = tmp_path / "run"
    arguments = ["train", str(config_file), "-o", str(folder), "--seed", "11", "--threads", "1"]
    assert main([*arguments, "--set", "total_steps=40"]) == 0
    assert Manifest.read(folder / "model.zip").seed == 11
    capsys.readouterr()
    again = main([*arguments])
    assert again == 2
    assert "there is a run here already" in capsys.readouterr().err
    code = main(["evaluate", str(folder), "--policy", "static", "--seeds", "2", "--workers", "1"])
    output = capsys.readouterr()
    assert code == 0, output.err
    assert "learned" in output.out
    result = json.loads((folder / "evaluation" / "comparison.json").read_text())
    assert result["seeds"] == [10000, 10001]
    assert [row["policy"] for row in result["policies"]] == ["learned", "static"]
    assert (folder / "evaluation" / "comparison.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train"], "give either a configuration to start with, or --resume RUN"),
        (["train", "missing.yaml"], "config file missing.yaml: No such file"),
        (["train", "{config}", "--set", "total_step=3"], "total_step: unknown key"),
        (["train", "{config}", "--set", "scenario=nowhere"], "neither a preset"),
        (["train", "{config}", "--seed", "10000"], "keeps 10000 for evaluation"),
        (["train", "{config}", "--threads", "0"], "--threads 0: must be at least 1"),
        (["train", "{config}", "--checkpoint-s", "nan"], "--checkpoint-s nan: must be a positive"),
        (["train", "{config}", "--checkpoint-s", "inf"], "--checkpoint-s inf: must be a positive"),
        (["train", "{config}", "--checkpoint-s", "0"], "--checkpoint-s 0: must be a positive"),
        (["train", "{config}", "-o", "{config}/x"], "tiny.yaml/x: Not a directory"),
        (["train", "--resume", "{folder}"], "not the folder of a training run"),
        (["train", "--resume", "{folder}", "--seed", "3"], "leave out --seed, -o"),
        (["train", "--resume", "{folder}", "--set", "num_envs=3"], "only total_steps can change"),
        (["evaluate", "{folder}", "--workers", "0"], "--workers 0: must be at least 1"),
        (["evaluate", "{folder}"], "there is no such model"),
        (["demo", "-o", "{folder}", "--config", "{config}"], "not empty and not of a demo"),
        (["demo", "-o", "{config}", "--config", "{config}"], "is a file, not a folder"),
        (["demo", "--config", "{config}", "--seeds", "99"], "has 20 evaluation seeds"),
    ],
)
def test_bad_input_is_explained_and_ends_with_2(
    arguments, message, config_file, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "something").touch()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    filled = [part.format(config=config_file, folder=folder) for part in arguments]
    assert main(filled) == 2
    errors = capsys.readouterr().err
    assert message in errors
    assert "Traceback" not in errors
    assert "Training" not in errors
    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


def test_a_scenario_in_place_of_a_configuration_is_said(tmp_path, capsys):
    path = tmp_path / "world.yaml"
    preset("toy").to_yaml(path)
    assert main(["train", str(path)]) == 2
    assert "is a scenario, but a training configuration is expected" in capsys.readouterr().err


def test_unknown_command_ends_with_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["trian"])
    assert caught.value.code == 2
    assert "invalid choice: 'trian'" in capsys.readouterr().err


def test_help_is_quick_and_loads_no_torch():
    code = (
        "import sys; from agents.app import main\n"
        "try:\n main(['train', '--help'])\nexcept SystemExit: pass\n"
        "assert 'torch' not in sys.modules"
    )
    environment = os.environ | {"COLUMNS": "100"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CLONE, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "--resume RUN" in done.stdout
