"""What the guide shows runs from top to bottom, and prints what the page says."""

import shlex

import gymnasium
import pytest

from edgegym.cli import main
from edgegym.evaluation import runner
from tests.docs.pages import DOCS, PAGES, fences, files, snippets

# `paper.md` has a test of its own.
_RUN = [page for page in PAGES if page.name != "paper.md" and snippets(page)]
_COMMANDS = sorted(
    {
        line.split(" #")[0].strip()
        for page in PAGES
        for kind, text, _ in fences(page)
        if kind == "sh"
        for line in text.splitlines()
        if line.startswith("edgegym ") and not line.startswith("edgegym --")
    }
)


@pytest.mark.parametrize("page", _RUN, ids=lambda page: str(page.relative_to(DOCS)))
def test_the_code_of_a_page_runs_and_prints_what_it_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(runner, "_cores", lambda: 1)  # starting workers would take most of the time
    for name, text in files(page).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    names = {"__name__": "page"}
    for code, output in snippets(page):
        exec(compile(code, str(page), "exec"), names)
        printed = capsys.readouterr().out
        if output is not None:
            assert printed == output
    for value in names.values():
        if isinstance(value, gymnasium.Env):
            value.close()


@pytest.mark.parametrize("line", _COMMANDS)
def test_commands_are_understood(line, tmp_path, monkeypatch, capsys):
    """Each is stopped by its last word: everything before it must have been taken."""
    monkeypatch.chdir(tmp_path)
    status = main([*shlex.split(line)[1:], "--no-such-option"])
    message = "".join(capsys.readouterr())
    assert status == 2
    assert "--no-such-option" in message
