"""``edgegym figures``."""

import os
import signal
import subprocess
import sys
import time

import pytest

from edgegym.cli import main
from edgegym.figures import FIGURES


def test_list_names_every_figure(capsys):
    assert main(["figures", "list"]) == 0
    shown = capsys.readouterr().out
    for figure in FIGURES:
        assert figure.name in shown
        assert figure.title in shown


def test_draws_some_and_says_where(tmp_path, capsys):
    out = tmp_path / "new" / "out"
    assert main(["figures", "fig12", "fig03", "--quick", "-o", str(out)]) == 0
    shown = capsys.readouterr()
    assert f"Drew 2 figures in {out}; captions are in {out}/figures.md" in shown.out
    assert "figures: fig03, 1 of 2" in shown.err
    assert {path.name for path in out.iterdir()} == {
        "fig03.csv", "fig03.png", "fig12.csv", "fig12.png", "figures.md",
    }  # fmt: skip
    assert main(["figures", "fig12", "--quick", "-o", str(out), "--no-progress"]) == 0
    shown = capsys.readouterr()
    assert "Drew 0 figures" in shown.out
    assert "1 were up to date" in shown.out
    assert shown.err == ""


def test_the_page_may_stand_elsewhere(tmp_path):
    page = tmp_path / "page.md"
    arguments = ["figures", "fig03", "--quick", "-o", str(tmp_path / "out"), "--page", str(page)]
    assert main(arguments) == 0
    assert "](out/fig03.png)" in page.read_text()
    assert not (tmp_path / "out" / "figures.md").exists()


BAD = [
    ([], "figure: name one or several, or `all`; `edgegym figures list`"),
    (["fig13", "-o", "out"], "figure = 'fig13': must be one of fig03, fig04, "),
    (["fig08", "list"], "figure = 'list': must be one of fig03"),
    (["fig08"], "--output: the folder for the figures is missing, as -o out"),
    (["fig08", "-o", "out", "--page", "page.html"], "--page page.html: the name must end in .md"),
    (["fig08", "-o", "file"], "--output file: is a file, not a folder"),
    (["fig08", "-o", "taken"], "fig08.png: is a folder, not a file"),
    (
        ["fig08", "-o", "out", "--page", "file/page.md"],
        "--page file/page.md: file: is a file, not a folder",
    ),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_said_before_anything_is_drawn(
    arguments, message, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("mine")
    (tmp_path / "taken" / "fig08.png").mkdir(parents=True)
    assert main(["figures", *arguments]) == 2
    shown = capsys.readouterr()
    assert message in shown.err
    assert shown.out == ""
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to process groups")
def test_an_interrupt_keeps_what_is_finished(tmp_path):
    # Figures 10 and 11 take seconds each; figure 3 is finished before they begin.
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "edgegym",
            "figures",
            "fig03",
            "fig10",
            "fig11",
            "-o",
            str(tmp_path),
        ],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    for _ in range(600):
        if (tmp_path / "fig03.png").exists():
            break
        time.sleep(0.1)
    # Right now kernels are being loaded, where Python itself may drop an interrupt.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert errors.endswith("edgegym: interrupted\n")
    assert {path.name for path in tmp_path.iterdir()} == {"fig03.csv", "fig03.png"}
