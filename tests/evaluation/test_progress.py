"""Progress: a line now and then where there is no terminal, a bar where there is one."""

import io
import sys

from edgegym.evaluation import progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_come_now_and_then_and_at_the_end(monkeypatch, capsys):
    seconds = iter([0.0, 1.0, 11.0, 12.0, 13.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))
    with progress.progress_of("compare", 4, shown=True) as advance:
        for number in range(4):
            advance(f"job {number}")
    assert capsys.readouterr().err.splitlines() == [
        "compare: 2 of 4 after 11 s (job 1)",
        "compare: 4 of 4 after 13 s (job 3)",
    ]


def test_nothing_is_shown_when_not_asked(capsys):
    with progress.progress_of("compare", 1, shown=False) as advance:
        advance("job")
    assert capsys.readouterr() == ("", "")


def test_a_terminal_gets_a_bar(monkeypatch):
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress.progress_of("compare", 2, shown=True) as advance:
        advance("job 0")
        advance("job 1")
    assert "2/2" in terminal.getvalue()
    assert "job 1" in terminal.getvalue()
