"""Figures as files: what is already there and up to date is not made again."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import edgegym
from edgegym.figures.page import page_text
from edgegym.figures.registry import FIGURES
from edgegym.figures.spec import FULL, Effort, Figure, Report
from edgegym.figures.style import picture_png
from edgegym.figures.table import Table
from edgegym.files import atomic_path, write_text


@dataclass(frozen=True)
class Written:
    """What :func:`write_figures` did."""

    made: tuple[Figure, ...]
    """Figures that were computed."""
    kept: tuple[Figure, ...]
    """Figures asked for that were up to date."""
    page: Path
    """The page that shows them."""


def figure_files(figure: Figure) -> tuple[str, str]:
    """Return the names of a figure's CSV file and picture."""
    return f"{figure.name}.csv", f"{figure.name}.png"


def write_figures(
    figures: Sequence[Figure],
    folder: str | os.PathLike[str],
    *,
    page: str | os.PathLike[str],
    effort: Effort = FULL,
    force: bool = False,
    report: Report = lambda _: None,
) -> Written:
    """Make figures, and a page in Markdown that shows all up-to-date ones of the folder.

    A figure is up to date if its picture was drawn from the CSV file beside it by this version of
    the sources at this effort. Files appear whole or not at all: after an interruption the same
    call goes on with the figure that it was at.

    Parameters
    ----------
    figures : sequence of Figure
        What to make.
    folder : path-like
        Where NAME.csv and NAME.png go; created when missing.
    page : path-like
        The page.
    effort : Effort
        How exact to be.
    force : bool
        Whether to make figures again that are up to date.
    report : callable
        Called with a few words before each figure and during long ones.

    Returns
    -------
    Written

    Raises
    ------
    OSError
        If a file can't be written.
    """
    folder, page = Path(folder), Path(page)
    made: list[Figure] = []
    kept: list[Figure] = []
    for number, figure in enumerate(figures, 1):
        where = f"{figure.name}, {number} of {len(figures)}"
        if not force and _current_table(figure, folder, effort) is not None:
            report(f"{where}: up to date")
            kept.append(figure)
            continue
        report(where)
        _make(figure, folder, effort, lambda words, where=where: report(f"{where}: {words}"))
        made.append(figure)
    tables = {figure: _current_table(figure, folder, effort) for figure in FIGURES}
    shown = {figure: table for figure, table in tables.items() if table is not None}
    relative = Path(os.path.relpath(folder, page.parent)).as_posix()
    pictures = "" if relative == "." else f"{relative}/"
    write_text(page, page_text(shown, pictures, exact=effort == FULL))
    return Written(tuple(made), tuple(kept), page)


def _make(figure: Figure, folder: Path, effort: Effort, report: Report) -> None:
    data = figure.compute(effort, report).to_csv()
    csv_path, png_path = (folder / name for name in figure_files(figure))
    # From what the file holds, so that picture, words and file can't differ.
    picture = picture_png(figure, Table.from_csv(data), _stamp(data, effort))
    write_text(csv_path, data)
    with atomic_path(png_path) as temporary:
        temporary.write_bytes(picture)


def _current_table(figure: Figure, folder: Path, effort: Effort) -> Table | None:
    """Return the numbers of a figure whose files are up to date, or None."""
    csv_path, png_path = (folder / name for name in figure_files(figure))
    try:
        data = csv_path.read_text(encoding="utf-8")
        if _stamp_of(png_path) != _stamp(data, effort):
            return None
    except (OSError, ValueError, SyntaxError):  # missing or no picture (Pillow: SyntaxError too)
        return None
    return Table.from_csv(data)


def _stamp(data: str, effort: Effort) -> str:
    digest = hashlib.sha256(data.encode()).hexdigest()[:16]
    return f"edgegym {edgegym.__version__}; sources {_source_hash()}; {effort}; data {digest}"


def _stamp_of(picture: Path) -> str | None:
    from PIL import Image

    with Image.open(picture) as image:
        return image.info.get("Description")


@cache
def _source_hash() -> str:
    """Return a hash of the package's sources: an edit anywhere makes every figure old."""
    root = Path(edgegym.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
