"""Fig. 8: coverage by load under three routing policies."""

from typing import Any

from edgegym.analytic import capacity_intensity, critical_intensity, lp_intensity
from edgegym.figures.published import published
from edgegym.figures.scenario import (
    POLICIES,
    paper_network,
    prefill_load,
    solved,
    sweep,
)
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import GREY, mark_published
from edgegym.figures.style import POLICIES as STYLES
from edgegym.figures.table import Table
from edgegym.figures.words import small

_LEAST, _MOST = 0.25, 11.0
_MARKS = (1.0, 3.0, 4.0)
_LIMITS = {
    "critical_intensity": critical_intensity,
    "lp_intensity": lp_intensity,
    "capacity_intensity": capacity_intensity,
}


def compute(effort: Effort, report: Report) -> Table:
    """Return coverage by load, and what else the captions need of the load-aware fleet."""
    del report
    loads = sweep(_LEAST, _MOST, effort.points, including=_MARKS)
    columns: dict[str, list[float]] = {"request_intensity_per_s_km2": loads.tolist()}
    columns |= {f"coverage_{policy}": [] for policy in POLICIES}
    columns |= {f"stable_{policy}": [] for policy in POLICIES}
    columns |= {"coverage_without_queues": [], "busiest_prefill_gpu_s_per_s": []}
    for load in loads:
        net = paper_network(request_intensity=float(load))
        for policy in POLICIES:
            equilibrium, performance = solved(net, policy)
            columns[f"coverage_{policy}"].append(performance.coverage)
            columns[f"stable_{policy}"].append(float(equilibrium.stable))
            if policy == "load_aware":
                columns["coverage_without_queues"].append(performance.coverage_no_queue)
                columns["busiest_prefill_gpu_s_per_s"].append(
                    float(prefill_load(net, equilibrium).max())
                )
    fleet = paper_network()
    for name, limit in _LIMITS.items():
        columns[f"{name}_per_s_km2"] = [limit(fleet)] * len(loads)
    return Table(columns)


def draw(canvas: Any, table: Table) -> None:
    """Draw a line per policy, the bound without queues, and the printed values."""
    axes = canvas.subplots()
    load = table["request_intensity_per_s_km2"]
    for policy in POLICIES:
        axes.plot(load, table[f"coverage_{policy}"], **STYLES[policy])
    axes.plot(
        load,
        table["coverage_without_queues"],
        color=GREY,
        linestyle=":",
        label="load-aware, if nobody waited",
    )
    critical = table["critical_intensity_per_s_km2"][0]
    axes.axvline(critical, color="black", linewidth=0.8, linestyle=":")
    axes.annotate(
        f"no equilibrium\nbeyond {critical:.2f}",
        (critical, 0.5),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        fontsize=8.5,
    )
    mark_published(axes, published("fig08"), table)
    axes.set_xlabel("load, requests/s/km²")
    axes.set_ylabel("coverage (TTFT within 0.8 s)")
    axes.set_ylim(0, 0.85)
    canvas.legend(loc="outside upper center", ncols=3)


def caption(table: Table) -> Caption:
    """Compare with every printed value, and say where the load-aware fleet gives out."""

    def at(load: float, policy: str) -> float:
        return table.value(f"coverage_{policy}", request_intensity_per_s_km2=load)

    worst = max(
        abs(table.value(point.column, request_intensity_per_s_km2=point.at) - point.value)
        for point in published("fig08")
    )
    loads = table["request_intensity_per_s_km2"]
    prefill = table.value("busiest_prefill_gpu_s_per_s", request_intensity_per_s_km2=3.0)
    critical, best, capacity = (table[f"{name}_per_s_km2"][0] for name in _LIMITS)
    unaware = loads[table["stable_queue_unaware"] > 0].max()
    light = abs(at(1.0, "load_aware") - at(1.0, "queue_unaware"))
    behind = loads[table["coverage_load_aware"] < table["coverage_nearest"]]
    return Caption(
        paper=(
            "At light load both prefix-aware policies are almost identical. At 3 requests/s/km² "
            "load-aware routing covers about 0.69 against 0.55 without queue awareness, at 4 about "
            "0.63 against 0.23; the nearest node gives about 0.52 throughout."
        ),
        here=(
            f"At 1 request/s/km² the two differ by {small(light)}. At 3: load-aware "
            f"{at(3.0, 'load_aware'):.3f}, queue-unaware {at(3.0, 'queue_unaware'):.3f}, nearest "
            f"{at(3.0, 'nearest'):.3f}. At 4: {at(4.0, 'load_aware'):.3f}, "
            f"{at(4.0, 'queue_unaware'):.3f}, {at(4.0, 'nearest'):.3f}. The largest difference to "
            f"a printed value is {worst:.3f}. The largest load drawn that queue-unaware routing "
            f"carries without an unstable tier is {unaware:.2f}. Load-aware routing has an "
            f"equilibrium below {critical:.2f}; the necessary capacity condition [35] alone would "
            f"allow {capacity:.1f}, and a planner who chose each request's tier freely {best:.2f}."
            + (
                f" From {behind[0]:.2f} on the nearest node covers more, with unstable tiers."
                if len(behind)
                else ""
            )
        ),
        difference=(
            "The parameters were fitted to exactly these values, so that their agreement is no "
            "evidence by itself; the rest of the curves is. Two limits of the model: it lets every "
            f"slot prefill at full speed (at 3 requests/s/km² the busiest nodes do {prefill:.1f} "
            "GPU-seconds of prefill per second), and it gives all nodes of a tier the same load, "
            "which nodes with cells of different size don't have."
        ),
    )


FIGURE = Figure(
    name="fig08",
    title="Fig. 8: coverage by load",
    compute=compute,
    draw=draw,
    caption=caption,
)
