"""Fig. 3: how far a request goes for a deeper prefix [46]."""

from functools import partial
from typing import Any

import numpy as np

from edgegym.analytic import decision_boundary
from edgegym.figures.scenario import paper_network, profile_names, type_names
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, ORANGE, RED, SKY
from edgegym.figures.table import Table

_NEAR, _DEEP = "uncached", "deep"
_WAITS_S = (0.0, 0.3, 0.6, 0.9)
_COLOURS = (BLUE, SKY, ORANGE, RED)
_REACH_KM = 3.0


def compute(effort: Effort, report: Report) -> Table:
    """Return the farthest deep node that a request prefers to an uncached one, by its wait."""
    del report
    net = paper_network()
    near, deep = (profile_names().index(name) for name in (_NEAR, _DEEP))
    grid_km = np.linspace(0.0, _REACH_KM, max(effort.points, 31))
    rows: dict[str, list[Any]] = {
        "distance_to_uncached_node_km": [],
        "farthest_deep_node_km": [],
        "wait_at_deep_node_s": [],
        "request_type": [],
    }
    for q, name in enumerate(type_names()):
        for wait_s in _WAITS_S:
            waits = np.zeros(net.num_profiles)
            waits[deep] = wait_s
            boundary = partial(decision_boundary, net, request_type=q, wait_s=waits)
            # Closer to the uncached node than this, no deep node is preferred at all.
            nearest_km = float(boundary(0.0, profile=near, rival=deep))
            distance_km = np.concatenate([[nearest_km], grid_km[grid_km > nearest_km]])
            farthest = boundary(distance_km, profile=deep, rival=near)
            rows["distance_to_uncached_node_km"] += distance_km.tolist()
            rows["farthest_deep_node_km"] += farthest.tolist()
            rows["wait_at_deep_node_s"] += [wait_s] * len(distance_km)
            rows["request_type"] += [name] * len(distance_km)
    return Table(rows)


def draw(canvas: Any, table: Table) -> None:
    """Draw a panel per request type, a boundary per wait."""
    panels = canvas.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, reversed(table.distinct("request_type")), strict=True):
        rows = table.where(request_type=name)
        for wait_s, colour in zip(table.distinct("wait_at_deep_node_s"), _COLOURS, strict=True):
            line = rows.where(wait_at_deep_node_s=wait_s)
            axes.plot(
                line["distance_to_uncached_node_km"],
                line["farthest_deep_node_km"],
                color=colour,
                label=f"deep node with a wait of {wait_s:g} s",
            )
        axes.plot([0, _REACH_KM], [0, _REACH_KM], color="black", linewidth=0.8, linestyle=":")
        axes.set_title(f"{name} requests")
        axes.set_xlabel("distance to the uncached node, km")
        axes.set_xlim(0, _REACH_KM)
        axes.set_ylim(0, 3.6)
    panels[0].set_ylabel("distance to the deep node, km")
    panels[1].legend(loc="upper left", title="preferred below the line", title_fontsize=9)


def caption(table: Table) -> Caption:
    """Describe the reach of a deep node, with and without a queue."""
    rows = table.where(request_type="long")
    waits = rows.distinct("wait_at_deep_node_s")

    def reach(wait_s: float, near_km: float) -> float:
        line = rows.where(wait_at_deep_node_s=wait_s)
        return float(
            np.interp(near_km, line["distance_to_uncached_node_km"], line["farthest_deep_node_km"])
        )

    return Caption(
        paper=(
            "A sketch of the pairwise rule [46] for two candidate nodes: the boundary is curved, a "
            "deep node wins even from much farther away, and that advantage collapses as its queue "
            "grows. No numbers are printed."
        ),
        here=(
            f"A long request beside an uncached node (0 km) goes up to {reach(waits[0], 0.0):.2f} "
            f"km to a deep node without a queue, and {reach(waits[2], 0.0):.2f} km when requests "
            f"wait {waits[2]:g} s there. With the uncached node at 2 km the reach falls from "
            f"{reach(waits[0], 2.0):.2f} to {reach(waits[2], 2.0):.2f} km: the farther both are, "
            "the less the saved prefill buys, as radio latency grows with the square of the "
            "distance. A short request saves little, so most waits turn it away."
        ),
        difference=(
            "None in shape; values can't be compared, as the paper prints none. On the dotted line "
            "both nodes are equally far."
        ),
    )


FIGURE = Figure(
    name="fig03",
    title="Fig. 3: decision boundary between two candidate nodes",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(8.0, 4.0),
)
