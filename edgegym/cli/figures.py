"""``edgegym figures``: draw the framework paper's figures from this library's own numbers."""

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import tyro

from edgegym.cli.arguments import make_folder_of, output_file, output_folder
from edgegym.cli.errors import BadInput, checked_input
from edgegym.cli.interrupts import remembered_interrupts

_PAGE = "figures.md"
_PATIENCE_S = 5.0


def figures(
    names: Annotated[
        tuple[str, ...],
        tyro.conf.Positional,
        tyro.conf.arg(metavar="NAME", help="Figures to draw, `all` of the paper, or `list`."),
    ] = (),
    /,
    *,
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="DIR")] = None,
    page: Annotated[Path | None, tyro.conf.arg(metavar="FILE.md")] = None,
    quick: bool = False,
    force: bool = False,
    progress: bool = True,
) -> None:
    """Draw the framework paper's figures, each as PNG and CSV, and a page with their captions.

    What is up to date is kept, so an interrupted run goes on where it was. Examples:

    edgegym figures list

    edgegym figures all -o out

    edgegym figures fig08 fig12 -o out

    Parameters
    ----------
    output
        Folder for NAME.png and NAME.csv.
    page
        The page; figures.md in that folder without it.
    quick
        Fewer points, samples and requests: some seconds, less exact.
    force
        Draw again what is up to date.
    progress
        Whether to show how far it is, on standard error.
    """
    from edgegym.figures import FULL, QUICK, chosen_figures, figure_files, write_figures

    with checked_input():
        if names == ("list",):
            _print_list()
            return
        if not names:
            raise BadInput("figure: name one or several, or `all`; `edgegym figures list` has them")
        chosen = chosen_figures(names)
        if output is None:
            raise BadInput("--output: the folder for the figures is missing, as -o out")
        if page is not None:
            output_file(page, ".md", "--page")
        target = output / _PAGE if page is None else page
        output_folder(output, [name for figure in chosen for name in figure_files(figure)])
        make_folder_of(target, "--output" if page is None else "--page")
    with remembered_interrupts() as check:
        written = write_figures(
            chosen,
            output,
            page=target,
            effort=QUICK if quick else FULL,
            force=force,
            report=_reporter(progress, check),
        )
    kept = f", {len(written.kept)} were up to date" if written.kept else ""
    print(f"Drew {len(written.made)} figures in {output}{kept}; captions are in {written.page}")


def _reporter(shown: bool, check: Callable[[], None]) -> Callable[[str], None]:
    """Return what says which figure is being drawn, and within one how far it is now and then.

    Each time it is called it also calls `check`.
    """
    last = 0.0

    def report(words: str) -> None:
        nonlocal last
        check()
        now = time.monotonic()
        within = words.count(":") > 0
        if shown and not (within and now - last < _PATIENCE_S):
            last = now
            print(f"figures: {words}", file=sys.stderr, flush=True)

    return report


def _print_list() -> None:
    from rich import box
    from rich.table import Table

    from edgegym.evaluation.terminal import output_console
    from edgegym.figures import FIGURES

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("figure", ratio=1)
    for figure in FIGURES:
        table.add_row(figure.name, figure.title)
    output_console().print(table)
