"""The program as a whole: help, versions, exit codes, and what counts as bad input."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import edgegym
from edgegym.cli import main
from edgegym.cli.main import COMMANDS


def _edgegym(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "edgegym", *arguments],
        capture_output=True,
        text=True,
        check=False,
        **options,
    )


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"edgegym {edgegym.__version__}\n"


def test_help_lists_every_command_and_stays_cheap():
    code = (
        "import sys; from edgegym.cli import main; code = main(['--help'])\n"
        "heavy = {'numba', 'torch', 'matplotlib', 'scipy', 'tyro', 'edgegym.envs'}\n"
        "sys.exit(code or ' '.join(heavy & set(sys.modules)) or 0)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    for name, command in COMMANDS.items():
        assert f"{name} " in finished.stdout
        assert command.summary in finished.stdout
    assert "examples:" in finished.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name, capsys):
    assert main([name, "--help"]) == 0
    assert f"usage: edgegym {name}" in capsys.readouterr().out


def test_help_of_a_command_loads_nothing_heavy():
    code = (
        "import sys; from edgegym.cli import main; code = main(['compare', '--help'])\n"
        "sys.exit(code or ' '.join({'numba', 'torch', 'matplotlib'} & set(sys.modules)) or 0)"
    )
    finished = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr


def test_python_m_edgegym_is_the_same_program(capsys):
    finished = _edgegym("scenarios", "show", "toy")
    assert finished.returncode == 0
    main(["scenarios", "show", "toy"])
    assert finished.stdout == capsys.readouterr().out


def test_no_command_is_bad_input(capsys):
    assert main([]) == 2
    assert "usage: edgegym" in capsys.readouterr().out


A_FILE = Path(sys.executable)  # no folder can be made in it

BAD = [
    (["fly"], "command = 'fly': must be one of scenarios, solve, compare"),
    (["scenarios"], "subcommand"),
    (["scenarios", "fly"], "fly"),
    (["scenarios", "show"], "NAME"),
    (["scenarios", "show", "tyo"], "scenario = 'tyo': neither a preset (known: paper, toy"),
    (["scenarios", "show", "none.yaml"], "none.yaml: No such file"),
    (["scenarios", "show", "toy", "--set", "nodes.count"], "--set nodes.count: must be KEY=VALUE"),
    (["scenarios", "show", "toy", "--set", "=3"], "--set =3: must be KEY=VALUE"),
    (["scenarios", "show", "toy", "--set", "nodes.count=[3"], "the value is not valid YAML"),
    (["scenarios", "show", "toy", "--set", "nodes.count=-3"], "nodes.count = -3"),
    (["scenarios", "show", "toy", "--set", "nodes.cuont=3"], "nodes.cuont: unknown key"),
    (["compare", "--polciy", "static"], "--polciy"),
    (["scenarios", "show", "toy", "--set", "nodes={count: 2, count: 3}"], "not valid YAML"),
    (["compare", "--policy", "statik"], "--policy statik: must be one of random, static"),
    (["compare", "--policy"], "--policy: must have at least one value"),
    (["compare", "--policy", "static", "--policy", "static"], "--policy static: given twice"),
    (["compare", "--model"], "--model: must have at least one value"),
    (["compare", "--model", "a.zip", "a.zip"], "--model a.zip: given twice"),
    (["compare", "--scenario", "toy", "-o", f"{A_FILE}/x"], f"--output {A_FILE}/x: "),
    (["compare", "--scenario", "toy", "--seeds", "0"], "--seeds 0: must lie in 1..20"),
    (["compare", "--scenario", "toy", "--seeds", "21"], "--seeds 21: must lie in 1..20"),
    (["compare", "--scenario", "toy", "--seeds", "two"], "--seeds"),
    (["compare", "--scenario", "toy", "--workers", "0"], "workers = 0"),
    (["compare", "--scenario", "toy", "--reference", "x"], "reference = 'x'"),
    (["compare", "--scenario", "toy", "--model", "none.zip"], "none.zip: there is no such model"),
    (["solve", "--routing", "psychic"], "psychic"),
    (["solve", "--target-s", "0"], "--target-s 0.0: must be a positive number"),
    (["solve", "--optimize", "--routing", "nearest"], "--optimize: searches with"),
    (["solve", "--optimize", "--set", "routing.kind=nearest"], "only, not with nearest"),
    (["solve", "--budget-gb", "3"], "--budget-gb: only with --optimize"),
    (["solve", "--optimize", "--budget-gb", "-1"], "--budget-gb -1.0: must be at least"),
    (["solve", "--set", "radio.xi=0"], "radio.xi = 0"),
    (["render", "--scenario", "toy"], "--output"),
    (["render", "-o", "a.png"], "--output a.png: the name must end in .gif"),
    (["render", "-o", "a.gif", "--policy", "a", "--model", "b"], "--policy and --model"),
    (["render", "--scenario", "toy", "-o", "a.gif", "--epochs", "99"], "epochs = 99"),
    (["render", "--scenario", "toy", "-o", "a.gif", "--policy", "statik"], "--policy statik: must"),
    (
        ["render", "--scenario", "toy", "-o", f"{A_FILE}/x.gif"],
        f"{A_FILE}: is a file, not a folder",
    ),
    (["render", "--scenario", "nope", "-o", "new/x.gif"], "scenario = 'nope'"),
    (["render", "--scenario", "toy", "-o", "."], "--output .: the name must end in .gif"),
    (["trace", "scenario", "none.jsonl", "-o", "a.txt"], "--output a.txt: must end in"),
    (["bench", "--fast"], "--fast"),
    (["trace", "inspect", "none.jsonl"], "none.jsonl"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD, ids=lambda value: " ".join(value)[:60])
def test_bad_input_is_exit_code_2_and_one_message(
    arguments, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert list(tmp_path.iterdir()) == []


def test_faults_of_the_program_keep_their_traceback(monkeypatch):
    def broken() -> None:
        raise ValueError("a fault, not bad input")

    monkeypatch.setattr("edgegym.cli.scenarios.list_", broken)
    with pytest.raises(ValueError, match="a fault"):
        main(["scenarios", "list"])


def test_an_interrupt_is_exit_code_130(monkeypatch, capsys):
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("edgegym.cli.scenarios.list_", interrupted)
    assert main(["scenarios", "list"]) == 130
    assert capsys.readouterr().err == "edgegym: interrupted\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to process groups")
def test_an_interrupted_comparison_leaves_no_result(tmp_path):
    arguments = ["compare", "--set", "control.horizon_epochs=5000", "--policy", "static", "uniform"]
    process = subprocess.Popen(
        [sys.executable, "-m", "edgegym", *arguments, "-o", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(300):  # the folder is made just before the workers start
        if (tmp_path / "out").exists():
            break
        time.sleep(0.1)
    time.sleep(0.5)
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=20)
    assert (process.returncode, output) == (130, "")
    assert errors == "edgegym: interrupted\n"
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes of a shell")
def test_a_reader_that_leaves_is_no_error():
    finished = subprocess.run(
        f"{sys.executable} -m edgegym scenarios show moving-hotspot | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.stdout == "name: moving-hotspot\n"
    assert finished.stderr == ""
