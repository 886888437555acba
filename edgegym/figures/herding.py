"""A study: what late reports of load cost, and what helps against herds."""

import math
from typing import Any

import numpy as np

from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREEN, GREY, RED
from edgegym.figures.table import Table
from edgegym.simulator import Fleet
from edgegym.world.presets import preset
from edgegym.world.scenario import Scenario

_NODES = 25
_RATE_PER_NODE = 4.5
_PERIODS_S = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
_FLEETS = 4
_WARM_UP_S = 60.0
_SHORTEST_S = 60.0

_LINES: dict[str, dict[str, Any]] = {
    "load_aware": {"routing": {"kind": "load_aware"}, "predict": False},
    "load_aware, predicting": {"routing": {"kind": "load_aware"}, "predict": True},
    "lmetric": {"routing": {"kind": "lmetric"}, "predict": False},
    "lmetric, predicting": {"routing": {"kind": "lmetric"}, "predict": True},
    "power_of_two": {"routing": {"kind": "power_of_two"}, "predict": False},
    "prefix_aware": {"routing": {"kind": "prefix_aware"}, "predict": False},
}
_STYLES: dict[str, dict[str, Any]] = {
    "load_aware": {"color": RED, "marker": "o"},
    "load_aware, predicting": {"color": BLUE, "marker": "o"},
    "lmetric": {"color": RED, "marker": "s", "linestyle": "--"},
    "lmetric, predicting": {"color": BLUE, "marker": "s", "linestyle": "--"},
    "power_of_two": {"color": GREEN, "marker": "^"},
    "prefix_aware": {"color": GREY, "linestyle": ":"},
}


def scenario(line: str, period_s: float) -> Scenario:
    """Return the world of one line of the study at one period of reports.

    Parameters
    ----------
    line : str
        A router, and whether it predicts.
    period_s : float
        Between reports; 0 is live.
    """
    settings = _LINES[line]
    return preset("stationary").with_overrides(
        {
            "demand.rate_per_node": _RATE_PER_NODE,
            "routing": settings["routing"],
            "telemetry.period_s": period_s,
            "telemetry.predict_on_route": settings["predict"],
        }
    )


def compute(effort: Effort, report: Report) -> Table:
    """Return coverage and waits by router and period; the effort's requests are shared evenly."""
    runs = len(_LINES) * len(_PERIODS_S) * _FLEETS
    counted_s = max(effort.requests / runs / (_NODES * _RATE_PER_NODE), _SHORTEST_S)
    rows: list[dict[str, Any]] = []
    for line in _LINES:
        report(line)
        for period_s in _PERIODS_S:
            windows = []
            for seed in range(_FLEETS):
                fleet = Fleet(scenario(line, period_s), seed)
                fleet.advance(_WARM_UP_S)
                windows.append(fleet.advance(counted_s))
            coverage = np.array([window.hits / window.decided for window in windows])
            rows.append(
                {
                    "router": line,
                    "telemetry_period_s": period_s,
                    "coverage": coverage.mean(),
                    "coverage_error": coverage.std(ddof=1) / math.sqrt(_FLEETS),
                    "mean_wait_s": np.mean([w.wait_sum_s / w.first_tokens for w in windows]),
                }
            )
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def draw(canvas: Any, table: Table) -> None:
    """Draw coverage and mean wait by the period of reports."""
    left, right = canvas.subplots(1, 2, sharex=True)
    for line, style in _STYLES.items():
        part = table.where(router=line)
        period = part["telemetry_period_s"]
        left.plot(period, part["coverage"], label=line, markersize=4.5, **style)
        right.plot(period, part["mean_wait_s"], markersize=4.5, **style)
    for axis in (left, right):
        axis.set_xscale("symlog", linthresh=0.25)
        axis.set_xticks([0, 0.25, 1, 4, 16], ["live", "0.25", "1", "4", "16"])
        axis.minorticks_off()
        axis.set_xlabel("time between reports, s")
    left.set_ylabel(f"coverage (TTFT within {preset('stationary').objective.ttft_target_s:g} s)")
    right.set_ylabel("mean wait in the queue, s")
    right.set_yscale("symlog", linthresh=0.1)
    right.set_ylim(bottom=0.0)
    canvas.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)


def _course(table: Table, line: str) -> str:
    part = table.where(router=line)["coverage"]
    return f"{part[0]:.2f} to {part[-1]:.2f}"


def _lost_by(table: Table, line: str) -> float:
    """Return the first period at which a router covers less than the one that sees no load."""
    blind = table.where(router="prefix_aware")["coverage"].mean()
    part = table.where(router=line)
    below = part["telemetry_period_s"][part["coverage"] < blind]
    return float(below[0]) if len(below) else math.inf


def caption(table: Table) -> Caption:
    """Say what late reports cost each router."""
    blind = table.where(router="prefix_aware")["coverage"].mean()
    lost = _lost_by(table, "load_aware")
    when = (
        f"with reports {lost:g} s apart it covers less"
        if lost < math.inf
        else "even with the oldest reports it covers more"
    )
    last = f"{table['telemetry_period_s'].max():g} s"
    error = table["coverage_error"].max()
    return Caption(
        paper=(
            "A router that acts on old reports of load sends all requests of one period to the "
            "nodes that looked best at its start: they herd. How much does that cost, and what "
            f"helps? {_NODES} nodes of the scenario `stationary` at {_RATE_PER_NODE:g} requests/s "
            "per node, routers that see queues only as often as nodes report them."
        ),
        here=(
            f"From live reports to one every {last}, coverage goes from "
            f"{_course(table, 'load_aware')} with `load_aware` and from "
            f"{_course(table, 'lmetric')} with `lmetric`; {when} than `prefix_aware`, which does "
            f"not look at load at all ({blind:.2f}). With `predict_on_route`, where the router "
            "adds what it has sent itself since the last report, it goes from "
            f"{_course(table, 'load_aware, predicting')} and "
            f"{_course(table, 'lmetric, predicting')}. The less loaded of two random candidates "
            f"(`power_of_two`) herds less, {_course(table, 'power_of_two')}, but looks neither at "
            "what nodes hold nor at how far they are."
        ),
        difference=(
            "One router that routes everything: several that don't know of each other's requests "
            "would predict less well. What a router adds stays until the next report, although "
            "requests leave meanwhile, so that with long periods it takes busy nodes for full. "
            f"Standard errors over {_FLEETS} fleets are at most {error:.3f}."
        ),
    )


FIGURE = Figure(
    name="herding",
    title="Study: routers with late reports",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.2, 4.2),
    study=True,
    fitted=False,
)
