"""A study: what small GPUs near the users gain and lose against fast ones far away."""

from typing import Any

import numpy as np

from edgegym.figures.origin_runs import (
    CAP_TOKENS,
    CONTENDERS,
    LONG_TOKENS,
    PATHS,
    SHORT_TOKENS,
    Length,
    crossing_tokens,
    idle_s,
    origin_scenario,
    run,
    simulate_idle,
)
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREEN, GREY, ORANGE, RED, SKY
from edgegym.figures.table import Table
from edgegym.figures.words import percent

_RATES = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
_MOST_TOKENS = 1024
_SECONDS_PER_REQUEST = 3e-5
_PATH_STYLES: dict[str, dict[str, Any]] = {
    "edge, prefix held": {"color": BLUE},
    "edge, prefix not held": {"color": SKY, "linestyle": "--"},
    "origin": {"color": ORANGE},
    "origin, new connection": {"color": RED, "linestyle": "--"},
}
_STYLES: dict[str, dict[str, Any]] = {
    "edge alone": {"color": GREY, "marker": "."},
    "least predicted TTFT": {"color": BLUE, "marker": "o"},
    "spill to neighbours": {"color": SKY, "marker": "^"},
    "spill to the origin": {"color": GREEN, "marker": "s"},
    "output cap": {"color": ORANGE, "marker": "D"},
    "origin alone": {"color": RED, "marker": "v"},
}
_IDLE, _LOAD = "idle", "load"
_EDGE = "edge, prefix held"


def compute(effort: Effort, report: Report) -> Table:
    """Return the times of requests alone, and what comes of each contender at each load."""
    target_s = origin_scenario({}, 1.0).objective.ttft_target_s
    rows = [row | {"target_s": target_s} for row in (*_idle(effort), *_loads(effort, report))]
    names = dict.fromkeys(name for row in rows for name in row)
    return Table({name: [row.get(name, np.nan) for row in rows] for name in names})


def _idle(effort: Effort) -> list[dict[str, Any]]:
    """Return the times of requests alone, by the formula and, at powers of 2, simulated."""
    points = np.geomspace(1.0, _MOST_TOKENS, max(2, effort.points // 2)).round()
    powers = 2.0 ** np.linspace(1, 10, max(3, min(10, effort.points // 6))).round()
    requests = max(5, min(50, effort.points))
    rows: list[dict[str, Any]] = []
    for path in PATHS:
        simulated = {length: simulate_idle(path, int(length), requests) for length in powers}
        _, radio_s = simulated[powers[0]]
        crossing = crossing_tokens(_EDGE, path) if path.startswith("origin") else np.nan
        for length in np.unique(np.concatenate([points, powers])):
            rows.append(
                {
                    "part": _IDLE,
                    "case": path,
                    "output_tokens": length,
                    "formula_s": idle_s(path, length, radio_s),
                    "simulated_s": simulated.get(length, (np.nan, np.nan))[0],
                    "crossing_tokens": crossing,
                }
            )
    return rows


def _loads(effort: Effort, report: Report) -> list[dict[str, Any]]:
    count = max(3, min(len(_RATES), effort.points // 6))
    chosen = np.linspace(0, len(_RATES) - 1, count).round().astype(int)
    counted_s = min(max(effort.requests * _SECONDS_PER_REQUEST, 60.0), 300.0)
    length = Length(counted_s, seeds=max(1, min(4, effort.points // 12)))
    rows: list[dict[str, Any]] = []
    for rate in (_RATES[k] for k in chosen):
        for contender in CONTENDERS:
            report(f"{contender}, {rate:g} requests/s and node")
            came = run(contender, rate, length)
            rows.append(
                {
                    "part": _LOAD,
                    "case": contender,
                    "requests_per_s_and_node": rate,
                    "origin_share": came.origin_share,
                    "origin_load": came.origin_load,
                    "coverage": came.coverage,
                    "coverage_error": came.coverage_error,
                    "short_p99_s": came.short_p99_s,
                    "long_p99_s": came.long_p99_s,
                }
            )
    return rows


def draw(canvas: Any, table: Table) -> None:
    """Draw the times of requests alone, and under load who serves, how well, and how late."""
    axes = canvas.subplots(2, 3)
    alone, share, load, coverage, short, long = axes.flat
    _draw_idle(alone, table)
    loaded = table.where(part=_LOAD)
    for name, style in _STYLES.items():
        rows = loaded.where(case=name)
        rate = rows["requests_per_s_and_node"]
        for axis, column in (
            (share, "origin_share"),
            (load, "origin_load"),
            (coverage, "coverage"),
            (short, "short_p99_s"),
            (long, "long_p99_s"),
        ):
            label = name if axis is share else None
            axis.plot(rate, rows[column], label=label, markersize=5, **style)
    target_s = table["target_s"][0]
    share.set_ylabel("first tokens from the origin, share")
    load.set_ylabel("origin: slots in use, share")
    coverage.set_ylabel(f"coverage (TTFT within {target_s:g} s)")
    for axis in (share, load, coverage):
        axis.set_ylim(-0.02, 1.02)
    short.set_ylabel(f"last of {SHORT_TOKENS} tokens, p99, s")
    long.set_ylabel(f"last of {LONG_TOKENS} tokens, p99, s")
    for axis in (short, long):
        axis.set_yscale("log")
    for axis in (share, load, coverage, short, long):
        axis.set_xlabel("requests/s of each node")
    canvas.legend(*share.get_legend_handles_labels(), loc="outside upper center", ncols=6)


def _draw_idle(axis: Any, table: Table) -> None:
    idle = table.where(part=_IDLE)
    for path, style in _PATH_STYLES.items():
        rows = idle.where(case=path)
        axis.plot(rows["output_tokens"], rows["formula_s"], label=path, **style)
        axis.plot(
            rows["output_tokens"],
            rows["simulated_s"],
            marker="o",
            markersize=3.5,
            linestyle="none",
            color=style["color"],
        )
        crossing = rows["crossing_tokens"][0]
        if crossing > 1.0:
            height = np.interp(crossing, rows["output_tokens"], rows["formula_s"])
            axis.plot([crossing], [height], marker="o", markersize=9, color="0.2", fillstyle="none")
            axis.annotate(
                f"{crossing:.1f}", (crossing, height), (4, -13), textcoords="offset points"
            )
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_xlabel("output tokens")
    axis.set_ylabel("last token of a request alone, s")
    axis.legend(loc="upper left", fontsize=8.0)


def caption(table: Table) -> Caption:
    """Say what the edge gains and loses, and what each way to share the load does."""
    idle, loaded = table.where(part=_IDLE), table.where(part=_LOAD)
    rates = loaded.distinct("requests_per_s_and_node")
    least, most = rates[0], rates[-1]
    far_away = origin_scenario({}, 1.0).origin
    assert far_away is not None
    edge, far, new = (idle.where(case=path) for path in (_EDGE, "origin", "origin, new connection"))

    def at(case: str, rate: float, column: str) -> float:
        return loaded.value(column, case=case, requests_per_s_and_node=rate)

    stuck = next((rate for rate in rates if at("edge alone", rate, "coverage") < 0.5), most)
    ends = {name: rows["formula_s"][-1] for name, rows in (("edge", edge), ("far", far))}
    return Caption(
        paper=(
            "A model runs on small GPUs near the users and on fast ones far away: which answers "
            "should the edge give, and what should become of its peaks? Twelve L4 nodes hold the "
            "2048-token prefix of all prompts (64 new tokens); the origin, four H100 with 32 "
            f"sequences each, is {far_away.rtt_s:g} s away, three times that on the "
            f"{percent(far_away.new_connection_share)} of requests that open a connection. A "
            f"quarter of the answers has {LONG_TOKENS} tokens, the others {SHORT_TOKENS}; the TTFT "
            f"target is {table['target_s'][0]:g} s."
        ),
        here=(
            f"Alone, the first token comes {far['formula_s'][0] - edge['formula_s'][0]:.3f} s "
            f"sooner from the edge ({new['formula_s'][0] - edge['formula_s'][0]:.3f} s on a new "
            f"connection), and the last one later from {far['crossing_tokens'][0]:.1f} tokens on "
            f"({new['crossing_tokens'][0]:.1f}): {ends['edge']:.1f} against {ends['far']:.1f} s at "
            f"{_MOST_TOKENS}. An edge that lacks the prefix is behind in both. Under load, the "
            f"edge alone collapses at {stuck:g} requests/s of each node (coverage "
            f"{at('edge alone', stuck, 'coverage'):.2f}). An origin that takes what it starts "
            f"sooner keeps coverage at {at('least predicted TTFT', stuck, 'coverage'):.2f} with "
            f"{percent(at('least predicted TTFT', stuck, 'origin_share'))} of the requests there, "
            f"and at {at('least predicted TTFT', most, 'coverage'):.2f} at {most:g} requests/s; "
            "but long answers stay slow, p99 "
            f"{at('least predicted TTFT', stuck, 'long_p99_s'):.0f} s. Nodes that close above 90 % "
            "of their slots send more away, "
            f"{percent(at('spill to the origin', stuck, 'origin_share'))}, and cover "
            f"{at('spill to the origin', stuck, 'coverage'):.2f}, or "
            f"{at('spill to neighbours', stuck, 'coverage'):.2f} when neighbours come first. An "
            f"edge that serves at most {CAP_TOKENS} tokens brings the long answers down to "
            f"{at('output cap', least, 'long_p99_s'):.1f} s and keeps short ones at "
            f"{at('output cap', stuck, 'short_p99_s'):.2f} s; it covers "
            f"{at('output cap', stuck, 'coverage'):.2f}, because new connections to the origin "
            "miss the target, until the long answers alone fill the origin."
        ),
        difference=(
            "Roofline figures of Llama-3.1-8B, fp8 on the L4 and bf16 on the H100, with the decode "
            "pace of 32 sequences at the origin whatever its load, and no floor of its prefill. "
            "TTFT says nothing about decode: the router, which goes by predicted TTFT, never sends "
            "a long answer to the faster GPU for its own sake. An overloaded edge has no steady "
            "state: a longer run finds longer times. Nodes prefill before they decode "
            "(`schedule: fifo`)."
        ),
    )


FIGURE = Figure(
    name="origin",
    title="Study: near and slow, or far and fast",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(12.0, 7.0),
    study=True,
    fitted=False,
)
