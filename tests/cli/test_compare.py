"""``edgegym compare``."""

import json
from pathlib import Path

import pytest

from edgegym.cli import main
from edgegym.cli.compare import labelled_models, named_policies

SHORT = ["--scenario", "toy", "--set", "control.horizon_epochs=4", "--workers", "1"]


def test_prints_a_table_and_writes_all_files(tmp_path, capsys):
    out = tmp_path / "new" / "out"
    arguments = ["compare", *SHORT, "--policy", "uniform", "static", "--seeds", "2", "-o", str(out)]
    assert main(arguments) == 0
    shown = capsys.readouterr()
    assert "uniform, 95 %" in shown.out
    assert "compare: 4 of 4 after" in shown.err
    assert {path.name for path in out.iterdir()} == {
        f"comparison.{kind}" for kind in ("json", "csv", "png", "html")
    }
    document = json.loads((out / "comparison.json").read_text())
    assert document["seeds"] == [10_000, 10_001]
    assert [row["policy"] for row in document["policies"]] == ["uniform", "static"]


def test_progress_can_be_silenced(capsys):
    assert main(["compare", *SHORT, "--policy", "static", "--seeds", "1", "--no-progress"]) == 0
    assert capsys.readouterr().err == ""


def test_repeated_options_add_up():
    assert named_policies((("static", "random"), ("uniform",))) == {
        name: name for name in ("static", "random", "uniform")
    }


def test_without_policies_the_usual_ones_are_compared():
    assert list(named_policies(())) == ["static", "uniform", "analytic", "analytic_local"]


def test_models_are_labelled_by_their_run():
    paths = [Path("runs/demo/model.zip"), Path("runs/other"), Path("best.zip")]
    assert list(labelled_models((tuple(paths),))) == ["demo", "other", "best"]


def test_equal_labels_become_whole_paths():
    paths = (Path("a/run"), Path("b/run/model.zip"), Path("static.zip"))
    assert list(labelled_models((paths,))) == [str(path) for path in paths]


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_an_output_that_cannot_be_made_is_refused_before_playing(where, tmp_path, capsys):
    (tmp_path / "file").write_text("mine")
    arguments = ["compare", *SHORT, "--policy", "static", "-o", str(tmp_path / where)]
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert str(tmp_path / "file") in shown.err
    assert shown.out == ""
    assert (tmp_path / "file").read_text() == "mine"


def test_a_file_in_place_of_the_folder_is_said(tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("mine")
    assert main(["compare", *SHORT, "--policy", "static", "-o", str(path)]) == 2
    assert f"--output {path}: is a file, not a folder" in capsys.readouterr().err


def test_a_folder_in_place_of_a_result_is_refused_before_playing(tmp_path, capsys):
    blocked = tmp_path / "comparison.json"
    blocked.mkdir()
    assert main(["compare", *SHORT, "--policy", "static", "-o", str(tmp_path)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert f"--output {tmp_path}: {blocked}: is a folder, not a file" in shown.err


def test_a_full_disk_at_the_end_is_reported_after_the_table(tmp_path, capsys, monkeypatch):
    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    arguments = ["compare", *SHORT, "--policy", "static", "--seeds", "1", "-o", str(tmp_path)]
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert "coverage" in shown.out
    assert "No space left on device" in shown.err
    assert list(tmp_path.iterdir()) == []
