"""A comparison as one figure: coverage of each policy, and what it is worth over the reference."""

import io
from typing import TYPE_CHECKING, Any

from edgegym.evaluation.results import PolicyResult
from edgegym.evaluation.statistics import Interval
from edgegym.evaluation.terminal import seeds_text

if TYPE_CHECKING:
    from edgegym.evaluation.comparison import Comparison

_DPI = 150
_WIDTH_IN = 10.0
_ROW_IN = 0.45
_FRAME_IN = 1.9
_NEUTRAL, _BETTER, _WORSE = "#4c566a", "#1b7f4b", "#b5482f"


def chart_png(comparison: "Comparison") -> bytes:
    """Draw a comparison.

    Parameters
    ----------
    comparison : Comparison
        What to show.

    Returns
    -------
    bytes
        A PNG image: left the coverage of each policy with its interval and the single seeds, right
        the paired difference to the reference with its interval.
    """
    # Not pyplot: no global figure, and no display needed.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = list(comparison.table)
    figure = Figure(
        figsize=(_WIDTH_IN, _FRAME_IN + _ROW_IN * len(rows)), dpi=_DPI, layout="constrained"
    )
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_coverage(left, comparison, rows)
    _draw_differences(right, rows, comparison.reference)
    left.set_yticks(range(len(rows)), [row.policy for row in rows])
    left.set_ylim(len(rows) - 0.5, -0.5)
    figure.suptitle(
        f"{comparison.scenario.name}: {seeds_text(comparison.seeds)}, {comparison.card.target}",
        fontsize=11,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _draw_coverage(axes: Any, comparison: "Comparison", rows: list[PolicyResult]) -> None:
    for height, row in enumerate(rows):
        single = [
            seed.coverage
            for seed in comparison.per_seed
            if seed.policy == row.policy and seed.coverage is not None
        ]
        axes.plot(
            single,
            [height + 0.22] * len(single),
            "|",
            color=_NEUTRAL,
            alpha=0.6,
            markersize=6,
            label="one seed" if height == 0 else None,
        )
        if row.coverage is not None:
            _draw_estimate(axes, height, row.coverage, row.coverage_interval, _NEUTRAL, height == 0)
    axes.set_xlabel("coverage (share of requests within target)")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 1.0 + 0.35 / len(rows)),
        ncols=2,
        fontsize=8,
        frameon=False,
        borderaxespad=0.0,
    )


def _draw_differences(axes: Any, rows: list[PolicyResult], reference: str) -> None:
    axes.axvline(0.0, color=_NEUTRAL, linewidth=1.0)
    # The word goes where the differences are, so that it stays inside.
    to_the_left = sum(row.difference or 0.0 for row in rows) < 0.0
    for height, row in enumerate(rows):
        if row.policy == reference:
            axes.annotate(
                "reference",
                (0.0, height),
                xytext=(-4 if to_the_left else 4, 0),
                textcoords="offset points",
                ha="right" if to_the_left else "left",
                va="center",
                fontsize=9,
                color=_NEUTRAL,
            )
        elif row.difference is not None:
            interval = row.difference_interval
            colour = _NEUTRAL
            if interval.low is not None and interval.low > 0:
                colour = _BETTER
            elif interval.high is not None and interval.high < 0:
                colour = _WORSE
            _draw_estimate(axes, height, row.difference, interval, colour, False)
    axes.set_xlabel(f"difference in coverage to {reference}, same seeds")
    axes.grid(axis="x", alpha=0.3)
    axes.margins(x=0.1)


def _draw_estimate(
    axes: Any, height: float, value: float, interval: Interval, colour: str, labelled: bool
) -> None:
    ends = None
    if interval.low is not None and interval.high is not None:
        # A BCa interval need not contain the estimate.
        ends = [[max(value - interval.low, 0.0)], [max(interval.high - value, 0.0)]]
    axes.errorbar(
        [value],
        [height],
        xerr=ends,
        fmt="o",
        color=colour,
        capsize=3,
        markersize=5,
        label="all seeds, 95 % interval" if labelled else None,
    )
