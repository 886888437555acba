"""A study: when a request should fetch its prefix over a shared link, and who decides."""

from typing import Any

import numpy as np

from edgegym.figures.fetch_runs import (
    CONTENDERS,
    Length,
    alone_s,
    fetch_scenario,
    filling_rate_per_s,
    run,
    spared_s,
)
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREEN, GREY, ORANGE, RED
from edgegym.figures.table import Table
from edgegym.figures.words import percent

_RATES_PER_S = (1.0, 2.0, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 8.0, 10.0)
_SECONDS_PER_REQUEST = 6e-5
_STYLES: dict[str, dict[str, Any]] = {
    "never": {"color": GREY, "marker": "."},
    "always": {"color": RED, "marker": "v"},
    "independent": {"color": ORANGE, "marker": "s"},
    "joint": {"color": BLUE, "marker": "o"},
    "joint, half the target": {"color": GREEN, "marker": "^"},
}


def compute(effort: Effort, report: Report) -> Table:
    """Return what comes of each controller at each rate of requests."""
    count = max(3, min(len(_RATES_PER_S), effort.points // 6))
    chosen = np.linspace(0, len(_RATES_PER_S) - 1, count).round().astype(int)
    counted_s = min(max(effort.requests * _SECONDS_PER_REQUEST, 60.0), 600.0)
    length = Length(counted_s, seeds=max(1, min(5, effort.points // 12)), samples=40)
    target_s = fetch_scenario("never", 1.0).objective.ttft_target_s
    rows: list[dict[str, Any]] = []
    for rate in (_RATES_PER_S[k] for k in chosen):
        for contender in CONTENDERS:
            report(f"{contender}, {rate:g} requests/s")
            came = run(contender, rate, length)
            rows.append(
                {
                    "controller": contender,
                    "requests_per_s": rate,
                    "coverage": came.coverage,
                    "coverage_error": came.coverage_error,
                    "median_ttft_s": _finite(came.median_ttft_s),
                    "fetch_share": came.fetch_share,
                    "link_busy_share": came.link_busy_share,
                    "transfers": came.flows,
                    "saved_s": came.saved_s,
                    "imposed_s": came.imposed_s,
                    "target_s": target_s,
                    "alone_s": alone_s(),
                    "spared_s": spared_s(),
                    "filling_requests_per_s": filling_rate_per_s(),
                }
            )
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def _finite(seconds: float) -> float:
    """Return NaN, which is not drawn, for what never came."""
    return seconds if np.isfinite(seconds) else np.nan


def draw(canvas: Any, table: Table) -> None:
    """Draw coverage, median TTFT, transfers at once, and what a fetch saves and costs."""
    axes = canvas.subplots(2, 2, sharex=True)
    coverage, ttft, transfers, worth = axes.flat
    for name, style in _STYLES.items():
        rows = table.where(controller=name)
        rate = rows["requests_per_s"]
        coverage.plot(rate, rows["coverage"], label=name, **style)
        ttft.plot(rate, rows["median_ttft_s"], **style)
        if name == "never":
            continue
        transfers.plot(rate, rows["transfers"], **style)
        worth.plot(rate, rows["saved_s"], **style)
        worth.plot(rate, rows["imposed_s"], linestyle="--", markerfacecolor="white", **style)
    target_s, break_even = table["target_s"][0], table["spared_s"][0] / table["alone_s"][0]
    coverage.set_ylabel(f"coverage (TTFT within {target_s:g} s)")
    coverage.set_ylim(-0.02, 1.02)
    ttft.set_ylabel("median TTFT, s")
    ttft.set_ylim(0.0, 6.0)
    ttft.axhline(target_s, color=GREY, linestyle=":", linewidth=1.2)
    ttft.annotate("target", (10.0, target_s), ha="right", va="top", color=GREY, fontsize=8.5)
    transfers.set_ylabel("transfers at once, mean")
    transfers.set_yscale("log")
    transfers.set_ylim(0.2, 4000.0)
    transfers.axhline(break_even, color=GREY, linestyle=":", linewidth=1.2)
    transfers.annotate(
        "above: slower\nthan computing",
        (0.9, 1.15 * break_even),
        va="bottom",
        color=GREY,
        fontsize=8.5,
    )
    worth.set_ylabel("a fetch saves its request (solid),\ndelays others (dashed), s")
    worth.set_ylim(-5.0, 8.0)
    worth.axhline(0.0, color="0.3", linewidth=0.8)
    for axis in axes.flat:
        axis.axvline(table["filling_requests_per_s"][0], color="0.75", linewidth=1.0)
    for axis in axes[1]:
        axis.set_xlabel("requests/s of the fleet")
    canvas.legend(*coverage.get_legend_handles_labels(), loc="outside upper center", ncols=5)


def caption(table: Table) -> Caption:
    """Say where each controller saturates the link, and what its fetches cost others."""
    rates = np.unique(table["requests_per_s"])
    filling = float(table["filling_requests_per_s"][0])
    beyond = float(rates[rates > filling][0])
    most = float(rates[-1])

    def at(name: str, rate: float, column: str) -> float:
        return float(table.where(controller=name, requests_per_s=rate)[column][0])

    alone, spared = float(table["alone_s"][0]), float(table["spared_s"][0])
    return Caption(
        paper=(
            "A request reaches a node that lacks its prefix: should the prefix come over the "
            "backhaul, or be computed anew, and who should decide? Sixteen L4 nodes hold one of "
            "four prefixes of 8192 tokens (1 GiB) each and take the requests near them, so that "
            "three quarters miss. One prefix takes "
            f"{alone:.2f} s alone on the shared 25 Gb/s and spares {spared:.2f} s of prefill; the "
            f"target is {table['target_s'][0]:g} s. Prefixes fetched at every miss fill the link "
            f"at {filling:.1f} requests/s (grey line)."
        ),
        here=(
            f"`always` saturates it there: at {beyond:g} requests/s "
            f"{at('always', beyond, 'transfers'):.0f} transfers are under way in the mean, and "
            f"coverage is {at('always', beyond, 'coverage'):.2f}, where it is "
            f"{at('never', beyond, 'coverage'):.2f} without any fetch. `independent` controllers "
            "all read the same bandwidth, up to ten seconds old, and start together or not at "
            f"all: {at('independent', beyond, 'transfers'):.1f} transfers at {beyond:g} and "
            f"{at('independent', most, 'transfers'):.0f} at {most:g} requests/s, though the link "
            f"is idle {percent(1.0 - at('independent', most, 'link_busy_share'))} of the time; "
            f"coverage falls to {at('independent', most, 'coverage'):.2f}, below that of no fetch "
            f"({at('never', most, 'coverage'):.2f}). `joint` keeps "
            f"{at('joint', beyond, 'transfers'):.1f} and {at('joint', most, 'transfers'):.1f} "
            f"transfers, covers {at('joint', beyond, 'coverage'):.2f} and "
            f"{at('joint', most, 'coverage'):.2f}, and with half the target as its budget "
            f"{at('joint, half the target', beyond, 'coverage'):.2f} and "
            f"{at('joint, half the target', most, 'coverage'):.2f}. What a fetch costs the others "
            f"that are there: at {most:g} requests/s "
            f"{at('independent', most, 'imposed_s'):.1f} s with `independent`, whose own requests "
            f"lose {-at('independent', most, 'saved_s'):.1f} s by it; "
            f"{at('joint', most, 'imposed_s'):.2f} s with `joint`, which saves its request "
            f"{at('joint', most, 'saved_s'):.2f} s."
        ),
        difference=(
            "A fetch is weighed against the transfers that are there when it begins: those that "
            "come later delay it too, and may carry it past its target. A budget below the target "
            "keeps room for them. Costs count the transfers present only, exactly. Nodes compute "
            "any number of prompts at once here (`service: deterministic`), which favours "
            "computing; requests go to their nearest node, so no router sends them to where the "
            "prefix is, as `load_aware` would."
        ),
    )


FIGURE = Figure(
    name="fetch",
    title="Study: fetch a prefix, or compute it anew",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.2, 6.6),
    study=True,
    fitted=False,
)
