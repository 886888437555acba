"""Progress of long work: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LINE_EVERY_S = 10.0


@contextmanager
def progress_of(what: str, total: int, shown: bool) -> Iterator[Callable[[str], None]]:
    """Show how far some work is, on standard error.

    Parameters
    ----------
    what : str
        Name of the work.
    total : int
        Number of its parts.
    shown : bool
        Whether to show anything.

    Yields
    ------
    callable
        To be called with a few words after each part.
    """
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty():
        with _bar(what, total) as advance:
            yield advance
    else:
        yield _lines(what, total)


@contextmanager
def _bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn(what),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda words: bar.update(task, advance=1, description=words)


def _lines(what: str, total: int) -> Callable[[str], None]:
    begin = last = time.monotonic()
    done = 0

    def advance(words: str) -> None:
        nonlocal done, last
        done += 1
        now = time.monotonic()
        if done == total or now - last >= _LINE_EVERY_S:
            last = now
            line = f"{what}: {done} of {total} after {now - begin:.0f} s ({words})"
            print(line, file=sys.stderr, flush=True)  # noqa: T201

    return advance
