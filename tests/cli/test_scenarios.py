"""``edgegym scenarios``."""

import pytest

from edgegym.cli import main
from edgegym.world import Scenario, preset, presets


def test_list_names_every_preset_and_fits_a_hundred_columns(capsys):
    assert main(["scenarios", "list"]) == 0
    shown = capsys.readouterr().out
    assert [name for name in presets() if f"\n {name} " not in shown] == []
    assert max(map(len, shown.splitlines())) <= 100


def test_show_prints_a_file_that_can_be_read_again(tmp_path, capsys):
    assert main(["scenarios", "show", "flash-crowd"]) == 0
    path = tmp_path / "mine.yaml"
    path.write_text(capsys.readouterr().out)
    assert Scenario.from_yaml(path) == preset("flash-crowd")
    assert main(["scenarios", "show", str(path), "--set", "radio.xi=0.5", "nodes.count=30"]) == 0
    path.write_text(capsys.readouterr().out)
    expected = preset("flash-crowd").with_overrides({"radio.xi": 0.5, "nodes.count": 30})
    assert Scenario.from_yaml(path) == expected


def test_settings_may_be_lists_and_repeated(tmp_path, capsys):
    settings = ["--set", "profiles.hold_a.vertices=[]", "--set", "evaluation_seeds=[1, 2]"]
    assert main(["scenarios", "show", "toy", *settings]) == 0
    path = tmp_path / "mine.yaml"
    path.write_text(capsys.readouterr().out)
    scenario = Scenario.from_yaml(path)
    assert scenario.profiles[1].vertices == ()
    assert scenario.evaluation_seeds == (1, 2)


def test_check_prints_the_report(capsys):
    assert main(["scenarios", "check", "toy", "--seeds", "1", "--epochs", "6"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("scenario 'toy'\n")
    assert "stable: load is 0.23 of the critical one" in shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--set", "objective.ttft_target_s=0.2"], "broken: feasible"),
        (["--seeds", "0"], "--seeds 0: must be at least 1"),
        (["--epochs", "0"], "--epochs 0: must be at least 1"),
    ],
)
def test_check_says_what_is_wrong(arguments, words, capsys):
    assert main(["scenarios", "check", "toy", *arguments]) == 2
    assert words in capsys.readouterr().err
