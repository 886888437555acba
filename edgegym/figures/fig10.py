"""Fig. 10: the best mix of profiles, by load."""

from dataclasses import replace
from typing import Any

import numpy as np

from edgegym.figures.mixes import best_mixes
from edgegym.figures.scenario import coverage, paper_network, profile_names, sweep
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import GREEN, PROFILES, RED
from edgegym.figures.table import Table
from edgegym.figures.words import percent, span

_LEAST, _MOST = 0.5, 10.5
_MARKS = (3.0, 7.0, 9.0)
_DEEP_CAP = 0.2
# To see whether dearer deep state would change the answer.
_FEWER = 2
# What the paper selects at high load: 15 % deep, 50 % shallow.
_PAPER_HIGH = {"uncached": 0.35, "shallow": 0.5, "deep": 0.15}


def compute(effort: Effort, report: Report) -> Table:
    """Return the best mix and its coverage by load, and that of the paper's high-load mix."""
    names = profile_names()
    loads = sweep(_LEAST, _MOST, (effort.points + 1) // 2, including=_MARKS)
    net = paper_network()
    found = best_mixes(net, loads, effort.mix_step, _DEEP_CAP, report)
    fewer = net.concurrency - _FEWER * (np.arange(len(names)) == names.index("deep"))
    dearer = replace(net, concurrency=fewer)
    found_dearer = best_mixes(dearer, loads, effort.mix_step, _DEEP_CAP, report)
    columns: dict[str, Any] = {"request_intensity_per_s_km2": loads}
    for tier, name in enumerate(names):
        columns[f"share_{name}"] = [best.mix[tier] for best in found]
        columns[f"share_{name}_if_deep_has_fewer_slots"] = [best.mix[tier] for best in found_dearer]
    columns["fewer_deep_slots"] = [_FEWER] * len(loads)
    columns["stable_if_deep_has_fewer_slots"] = [best.stable for best in found_dearer]
    columns["coverage_best_mix"] = [best.coverage for best in found]
    columns["stable"] = [best.stable for best in found]
    columns["coverage_of_preset_mix"] = [
        coverage(paper_network(request_intensity=float(load))) for load in loads
    ]
    high = [_PAPER_HIGH[name] for name in names]
    columns["coverage_of_papers_high_load_mix"] = [
        coverage(paper_network(request_intensity=float(load), profile_probabilities=high))
        for load in loads
    ]
    # Requests/s that a node of each profile would carry if it served all types alike.
    capacity = net.concurrency / (net.occupancy_s @ net.type_probabilities)
    for tier, name in enumerate(names):
        columns[f"capacity_of_{name}_node_per_s"] = [capacity[tier]] * len(loads)
    columns["candidates"] = [best.candidates for best in found]
    return Table(columns)


def draw(canvas: Any, table: Table) -> None:
    """Draw the shares as stacked areas, and what two fixed mixes lose against the best."""
    axes, losses = canvas.subplots(1, 2)
    load = table["request_intensity_per_s_km2"]
    names = ("deep", "shallow", "uncached")
    axes.stackplot(
        load,
        [table[f"share_{name}"] for name in names],
        colors=[PROFILES[name]["color"] for name in names],
        labels=names,
        alpha=0.75,
        step="mid",
    )
    axes.axhline(_DEEP_CAP, color="black", linewidth=1.0, linestyle=":")
    axes.annotate(
        "cap of the deep share",
        (load[0], _DEEP_CAP),
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=8.5,
    )
    axes.set_xlim(load[0], load[-1])
    axes.set_ylim(0, 1)
    axes.grid(visible=False)
    axes.set_xlabel("load, requests/s/km²")
    axes.set_ylabel("share of the nodes in the best mix")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.13), ncols=3)
    lines = (
        ("coverage_of_preset_mix", "the preset's (0.40, 0.40, 0.20)", GREEN, "-"),
        ("coverage_of_papers_high_load_mix", "the paper's at high load", RED, "--"),
    )
    stable = table["stable"] > 0
    for column, label, colour, dashes in lines:
        loss = (table["coverage_best_mix"] - table[column])[stable]
        losses.plot(load[stable], loss, color=colour, linestyle=dashes, label=label)
    losses.set_xlabel("load, requests/s/km²")
    losses.set_ylabel("coverage behind the best mix")
    losses.set_ylim(0, None)
    losses.legend(loc="upper left")


def caption(table: Table) -> Caption:
    """Say how the mix moves with the load, and what the paper's high-load mix would cost."""

    def mix_at(load: float) -> str:
        row = table.where(request_intensity_per_s_km2=load)
        shares = (f"{row[f'share_{name}'][0]:.2f}" for name in ("uncached", "shallow", "deep"))
        return f"({', '.join(shares)})"

    stable = table["stable"] > 0
    deep = table["share_deep"][stable]
    carried = table["stable_if_deep_has_fewer_slots"] > 0
    dearer = table["share_deep_if_deep_has_fewer_slots"][carried]
    shallow = table["share_shallow_if_deep_has_fewer_slots"][carried]
    costs = (table["coverage_best_mix"] - table["coverage_of_papers_high_load_mix"])[stable]
    worst = int(costs.argmax())
    loads = table["request_intensity_per_s_km2"][stable]
    capacities = ", ".join(
        f"{table[f'capacity_of_{name}_node_per_s'][0]:.1f}"
        for name in ("uncached", "shallow", "deep")
    )
    return Caption(
        paper=(
            "Among a feasible set of candidates, the best mix has 20 % deep nodes at light and "
            "moderate load; at high load 15 % deep and 50 % shallow."
        ),
        here=(
            f"Of {table['candidates'][0]:.0f} mixes (uncached, shallow, deep) with at most "
            f"{percent(_DEEP_CAP)} deep, the best is {mix_at(_MARKS[0])} at {_MARKS[0]:g} "
            f"requests/s/km², {mix_at(_MARKS[1])} at {_MARKS[1]:g} and {mix_at(_MARKS[2])} at "
            f"{_MARKS[2]:g}. The deep share is {span(deep)} at every load that some mix carries; "
            "what moves is mass between shallow and uncached. "
            f"The paper's high-load mix is {costs[worst]:.3f} of coverage behind the best one at "
            f"worst (at {loads[worst]:.2f}), {np.median(costs):.3f} in the middle."
        ),
        difference=(
            f"With the fitted values a node that served all types alike would carry "
            f"{capacities} requests/s uncached, shallow and deep. So deep state costs no capacity, "
            "as its shorter prefill makes up for the lost slots, while shallow state does: under "
            "load the uncached profile takes its place. Dearer deep state alone would not give the "
            f"paper's answer: with {table['fewer_deep_slots'][0]:.0f} slots fewer on a deep node, "
            f"the best deep share is {span(dearer)} and the best shallow share {span(shallow)} at "
            "every load carried. Neither the paper's own values nor its candidates are in its "
            "text: a short list without the mixes found here would do."
        ),
    )


FIGURE = Figure(
    name="fig10",
    title="Fig. 10: best mix of profiles by load",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.2, 4.0),
)
