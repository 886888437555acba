"""A comparison as text for a terminal, at most 100 columns wide."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgegym.evaluation.results import PolicyResult, ResultTable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 100
_GB = 1e9
_NONE = "–"


def number(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """Return a number with fixed digits, or a dash for None."""
    if value is None:
        return _NONE
    return f"{value:{'+' if sign else ''}.{digits}f}"


def seeds_text(seeds: Sequence[int]) -> str:
    """Return how many seeds there are, in words."""
    return "1 seed" if len(seeds) == 1 else f"{len(seeds)} seeds"


def difference_text(row: PolicyResult, reference: str) -> str:
    """Return a row's difference to the reference with its interval."""
    if row.policy == reference:
        return "reference"
    text = number(row.difference, 4, sign=True)
    interval = row.difference_interval
    if interval.low is None or interval.high is None:
        return text
    return f"{text} [{interval.low:+.4f}, {interval.high:+.4f}]"


def result_table(table: ResultTable) -> "Table":
    """Return the results by policy as a rich table.

    Parameters
    ----------
    table : ResultTable
        The results.

    Returns
    -------
    rich.table.Table
        Fits ``WIDTH`` columns; long labels are folded.
    """
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    made.add_column("policy", overflow="fold")
    made.add_column("coverage", justify="right", no_wrap=True)
    made.add_column(f"difference to\n{table.reference}, 95 %", justify="right", no_wrap=True)
    for name in ("TTFT\nmean, s", "p90, s", "p99, s", "prefill\nsaved", "GB\nmoved"):
        made.add_column(name, justify="right", no_wrap=True)
    scored = any(row.normalised_score is not None for row in table)
    if scored:
        made.add_column("score", justify="right", no_wrap=True)
    for row in table:
        cells = [
            row.policy,
            number(row.coverage, 4),
            difference_text(row, table.reference),
            number(row.mean_ttft_s),
            number(row.p90_ttft_s),
            number(row.p99_ttft_s),
            _NONE if row.offloading_ratio is None else f"{row.offloading_ratio:.1%}",
            f"{row.bytes_moved / _GB:.1f}",
        ]
        if scored:
            cells.append(number(row.normalised_score, 2))
        made.add_row(*cells, style="bold" if _clearly_better(row) else None)
    return made


def output_console() -> "Console":
    """Return a console for standard output, ``WIDTH`` columns wide where it is no terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH
    return console


def plain_text(*renderables: Any) -> str:
    """Return rich renderables as text without colours, at most ``WIDTH`` columns wide."""
    from rich.console import Console

    buffer = io.StringIO()
    console = Console(file=buffer, width=WIDTH, color_system=None, highlight=False)
    for item in renderables:
        console.print(item, markup=False)
    lines = [line.rstrip() for line in buffer.getvalue().splitlines()]
    return "\n".join(lines).strip("\n")


def _clearly_better(row: PolicyResult) -> bool:
    low = row.difference_interval.low
    return low is not None and low > 0
