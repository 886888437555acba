"""One look for all figures: sizes, colours, marks, and pictures as PNG bytes."""

import io
from typing import Any

from edgegym.figures.published import Published
from edgegym.figures.spec import Figure
from edgegym.figures.table import Table

_DPI = 110
_RC: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.titlesize": 10.5,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 9.0,
}
FITTED_NOTE = "values fitted to the paper's printed results (preset 'paper')"

# Okabe and Ito, "Color universal design", 2008.
BLUE, ORANGE, GREEN, RED, PINK, SKY, GREY = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#6B6B6B",
)

POLICIES: dict[str, dict[str, Any]] = {
    "load_aware": {"color": BLUE, "linestyle": "-", "label": "load-aware"},
    "queue_unaware": {"color": RED, "linestyle": "--", "label": "queue-unaware"},
    "nearest": {"color": GREEN, "linestyle": "-.", "label": "nearest node"},
}
"""Line style of each routing policy."""

PROFILES: dict[str, dict[str, Any]] = {
    "uncached": {"color": GREY, "linestyle": ":", "label": "uncached"},
    "shallow": {"color": ORANGE, "linestyle": "--", "label": "shallow"},
    "deep": {"color": BLUE, "linestyle": "-", "label": "deep"},
}
"""Line style of each profile of the ``paper`` preset."""


def mark_published(axes: Any, points: tuple[Published, ...], table: Table) -> None:
    """Mark what the paper prints, in the colours of the policies."""
    axis = table.names[0]
    for index, point in enumerate(points):
        if point.figure_axis != axis:
            continue
        policy = point.column.removeprefix("coverage_")
        axes.plot(
            [point.at],
            [point.value],
            marker="D",
            linestyle="none",
            markersize=6,
            markerfacecolor="white",
            markeredgecolor=POLICIES[policy]["color"],
            markeredgewidth=1.5,
            zorder=5,
            label="printed in the paper" if index == 0 else None,
        )


def picture_png(figure: Figure, table: Table, stamp: str) -> bytes:
    """Draw a figure.

    Parameters
    ----------
    figure : Figure
    table : Table
        Its numbers.
    stamp : str
        Kept in the picture's metadata, as "Description".

    Returns
    -------
    bytes
        A PNG image.
    """
    # Not pyplot: no global figure, and no display needed.
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context(_RC):
        canvas = Canvas(figsize=figure.size_in, dpi=_DPI, layout="constrained")
        FigureCanvasAgg(canvas)
        figure.draw(canvas, table)
        if figure.fitted:
            canvas.supxlabel(FITTED_NOTE, fontsize=7.5, color=GREY, x=0.99, ha="right")
        buffer = io.BytesIO()
        canvas.savefig(buffer, format="png", metadata={"Description": stamp, "Software": None})
    return buffer.getvalue()
