"""The figure of an agent on larger fleets than it was trained on."""

import io
from typing import Any

_STYLES = {
    "static": ("#9aa3b2", "o"),
    "analytic_local": ("#4c566a", "s"),
    "analytic_mpc": ("#3b6ea8", "^"),
    "learned": ("#1b7f4b", "D"),
}
_APART = 0.09  # between the marks of one fleet, in units of the distance between fleets


def larger_png(documents: list[dict[str, Any]]) -> bytes:
    """Draw coverage, and paired differences to the reference, by number of nodes.

    Parameters
    ----------
    documents : list of dict
        One comparison for each fleet, as ``Comparison.document`` returns it, with the same policies
        and the same reference.

    Returns
    -------
    bytes
        A PNG image.
    """
    # Not pyplot: no global figure, and no display needed.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    reference = documents[0]["reference"]
    names = [row["policy"] for row in documents[0]["policies"]]
    for place, name in enumerate(names):
        rows = [_row(document, name) for document in documents]
        shift = _APART * (place - (len(names) - 1) / 2)
        at = [turn + shift for turn in range(len(rows))]
        colour, mark = _STYLES[name]
        style = {"color": colour, "marker": mark, "label": name, "capsize": 3, "linestyle": "none"}
        left.errorbar(at, **_marks(rows, "coverage"), **style)
        # What moves nothing lies far below: it would flatten the rest.
        if name not in (reference, "static"):
            right.errorbar(at, **_marks(rows, "difference"), **style)
    right.axhline(0.0, color=_STYLES[reference][0], linewidth=1.0)
    left.set_title("coverage", fontsize=10)
    right.set_title(f"coverage less that of {reference}, same requests", fontsize=10)
    left.legend(fontsize=8)
    for axes in (left, right):
        sizes = [document["scenario"]["nodes"]["count"] for document in documents]
        axes.set_xticks(range(len(sizes)), [f"{nodes} nodes" for nodes in sizes])
        axes.set_xlim(-0.5, len(sizes) - 0.5)
        axes.grid(axis="y", alpha=0.3)
    seeds, epochs = documents[0]["seeds"], documents[0]["scenario"]["control"]["horizon_epochs"]
    figure.suptitle(
        f"An agent trained on 25 nodes, on larger fleets ({documents[0]['scenario']['name']}, "
        f"{len(seeds)} seeds of {epochs} epochs, 95 % intervals)",
        fontsize=10,
    )
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    return buffer.getvalue()


def _row(document: dict[str, Any], name: str) -> dict[str, Any]:
    return next(row for row in document["policies"] if row["policy"] == name)


def _marks(rows: list[dict[str, Any]], value: str) -> dict[str, Any]:
    """Return heights and the lengths of error bars."""
    heights = [row[value] for row in rows]
    bars = [[], []]
    for row, height in zip(rows, heights, strict=True):
        interval = row[f"{value}_interval"]
        low, high = interval["low"], interval["high"]
        bars[0].append(0.0 if low is None else max(height - low, 0.0))
        bars[1].append(0.0 if high is None else max(high - height, 0.0))
    return {"y": heights, "yerr": bars}
