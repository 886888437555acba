"""Fig. 9: what happens to the tiers as long requests become more frequent."""

from typing import Any

from edgegym.figures.scenario import LONG, paper_network, profile_names, solved, sweep
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import GREEN, PROFILES, RED
from edgegym.figures.table import Table
from edgegym.figures.words import percent

_LEAST, _MOST = 0.05, 0.95
_PRESET = 0.6


def compute(effort: Effort, report: Report) -> Table:
    """Return shares, loads, saved prefill and distance by the share of long requests."""
    del report
    shares = sweep(_LEAST, _MOST, effort.points, including=[_PRESET])
    names = profile_names()
    columns: dict[str, list[float]] = {"long_request_share": shares.tolist()}
    columns |= {f"request_share_{name}": [] for name in names}
    columns |= {f"long_request_share_{name}": [] for name in names}
    columns |= {f"utilization_{name}": [] for name in names}
    columns |= {
        name: []
        for name in (
            "request_intensity_per_s_km2",
            "offloading_ratio",
            "offloading_ratio_long",
            "mean_distance_km",
            "mean_distance_to_deep_km",
            "coverage",
        )
    }
    for share in shares:
        net = paper_network(type_probabilities=[1.0 - share, share])
        equilibrium, performance = solved(net)
        served = equilibrium.association @ net.type_probabilities
        for tier, name in enumerate(names):
            columns[f"request_share_{name}"].append(served[tier])
            columns[f"long_request_share_{name}"].append(equilibrium.association[tier, LONG])
            columns[f"utilization_{name}"].append(equilibrium.utilization[tier])
        saved = equilibrium.association[:, LONG] @ net.saving_s[:, LONG]
        columns["request_intensity_per_s_km2"].append(net.request_intensity)
        columns["offloading_ratio"].append(performance.offloading_ratio)
        columns["offloading_ratio_long"].append(saved / net.cold_prefill_s[LONG])
        columns["mean_distance_km"].append(performance.mean_distance_km)
        columns["mean_distance_to_deep_km"].append(
            performance.conditional_mean_distance_km[names.index("deep"), LONG]
        )
        columns["coverage"].append(performance.coverage)
    return Table(columns)


def draw(canvas: Any, table: Table) -> None:
    """Draw shares of the long requests, tier loads, and saved prefill beside distance."""
    shares, loads, saved = canvas.subplots(1, 3)
    share = table["long_request_share"]
    for name in profile_names():
        shares.plot(share, table[f"long_request_share_{name}"], **PROFILES[name])
        loads.plot(share, table[f"utilization_{name}"], **PROFILES[name])
    shares.set_ylabel("share of the long requests served by")
    shares.set_ylim(0, 1)
    shares.legend()
    loads.set_ylabel("slots in use (utilisation)")
    loads.set_ylim(0, 1)
    saved.plot(share, table["offloading_ratio"], color=GREEN, label="offloading ratio")
    saved.plot(
        share,
        table["offloading_ratio_long"],
        color=GREEN,
        linestyle="--",
        label="of the long requests",
    )
    saved.plot(share, table["mean_distance_km"], color=RED, linestyle="-.", label="distance, km")
    saved.set_ylabel("share of prefill saved; mean distance, km")
    saved.set_ylim(0, 1)
    saved.legend()
    for axes in (shares, loads, saved):
        axes.set_xlabel("share of long requests")
        axes.set_xlim(0, 1)


def caption(table: Table) -> Caption:
    """Say what rises and what falls between the rarest and the most frequent long requests."""
    first, last = table.distinct("long_request_share")[0], table.distinct("long_request_share")[-1]

    def ends(column: str, digits: int = 2) -> str:
        low, high = (table.value(column, long_request_share=share) for share in (first, last))
        return f"{low:.{digits}f} to {high:.{digits}f}"

    ratio = table["offloading_ratio"]
    peak = int(ratio.argmax())
    return Caption(
        paper=(
            "As long requests become more frequent, the router makes more use of the fallback "
            "profiles with many slots, the offloading ratio falls because deep capacity doesn't "
            "grow, and the mean distance changes. No numbers are printed."
        ),
        here=(
            f"From {percent(first)} to {percent(last)} long requests at "
            f"{table['request_intensity_per_s_km2'][0]:g} requests/s/km²: the deep tier's "
            f"utilisation goes from {ends('utilization_deep')}, the uncached one's from "
            f"{ends('utilization_uncached')}; the share of long requests that reach a deep node "
            f"from {ends('long_request_share_deep')}. The offloading ratio of the long requests "
            f"goes from {ends('offloading_ratio_long')}. That of all requests starts at "
            f"{ratio[0]:.2f}, is largest, {ratio[peak]:.2f}, at "
            f"{percent(table['long_request_share'][peak])} long requests, and ends at "
            f"{ratio[-1]:.2f}. "
            f"The mean distance goes from {ends('mean_distance_km')} km."
        ),
        difference=(
            "The paper's fall is seen beyond that maximum and, for long requests by themselves, "
            "throughout. Where long requests are rare, more of them first raise the overall ratio: "
            "a long request saves a larger part of its prefill than a short one, and the deep tier "
            "still has room for it."
        ),
    )


FIGURE = Figure(
    name="fig09",
    title="Fig. 9: more long requests with the same mix",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.6, 3.8),
)
