"""The page that shows figures with their captions."""

import textwrap
from collections.abc import Mapping

from edgegym.figures.spec import Figure
from edgegym.figures.table import Table

_WIDTH = 110

_HEAD = """\
# Figures

<!-- Written by `edgegym figures`: change the figures in edgegym/figures, not this page. -->
"""

_FITTED = (
    "The figures of the framework paper, from this library's own numbers: Figs. 3 to 12 (1 and 2 "
    "are sketches, 13 is a diagram). **The parameter values are fitted.** The paper's parameter "
    "table is not in its published text; the scenario `paper` holds values that were fitted to the "
    "results it prints, so an agreement with a printed number says that such values exist, not "
    "that they are the paper's. Every picture says so again where it applies."
)

_STUDIES = (
    "Studies beyond the paper's figures follow them: a question, the answer, and what limits it."
)

_COARSE = (
    "**Drawn with `--quick`:** few points, samples and requests. Use it to see what a figure looks "
    "like."
)


def page_text(tables: Mapping[Figure, Table], pictures: str, *, exact: bool) -> str:
    """Return the page in Markdown.

    Parameters
    ----------
    tables : mapping
        What to show, with its numbers, in this order.
    pictures : str
        Folder of the pictures and CSV files as seen from the page, "" or with a slash at the end.
    exact : bool
        Whether the figures were made at full effort.

    Returns
    -------
    str
    """
    parts = [_HEAD, _filled(_FITTED)]
    if any(figure.study for figure in tables):
        parts.append(_filled(_STUDIES))
    if not exact:
        parts.append(_filled(_COARSE))
    parts += [_section(figure, table, pictures) for figure, table in tables.items()]
    return "\n".join(parts)


def _section(figure: Figure, table: Table, pictures: str) -> str:
    caption = figure.caption(table)
    heads = ("Question", "Answer", "Limits") if figure.study else ("Paper", "Here", "Difference")
    texts = (caption.paper, caption.here, caption.difference)
    lines = [f"## {figure.title}", "", f"![{figure.title}]({pictures}{figure.name}.png)", ""]
    for head, text in zip(heads, texts, strict=True):
        lines.append(_filled(f"**{head}.** {text}"))
    lines += [f"[The numbers]({pictures}{figure.name}.csv), `edgegym figures {figure.name}`", ""]
    return "\n".join(lines)


def _filled(text: str) -> str:
    return textwrap.fill(text, _WIDTH, break_on_hyphens=False) + "\n"
