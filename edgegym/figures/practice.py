"""A study: all routers, with placed prefixes and with the caches that serving engines have."""

import math
from typing import Any

import numpy as np

from edgegym.figures.practice_worlds import (
    AGENT_RATE_PER_NODE,
    CACHES,
    CANDIDATES,
    TRACES_VARIABLE,
    World,
    practice_worlds,
)
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREY, ORANGE
from edgegym.figures.table import Table
from edgegym.figures.words import percent
from edgegym.simulator import Fleet
from edgegym.world.compiled import ROUTER_KINDS

_AGENT_REQUESTS_PER_S = 50.0
_MOST_REQUESTS = 60_000  # two orbits of the users' places
_LEAST_DIFFERENCE = 0.02
_STYLES: dict[str, dict[str, Any]] = {
    "profiles": {"color": BLUE, "marker": "o", "label": "prefixes placed once"},
    "lru": {"color": ORANGE, "marker": "s", "label": "radix caches (LRU)"},
}


def compute(effort: Effort, report: Report) -> Table:
    """Return what each router achieves in each world with each kind of cache."""
    requests = min(effort.requests // 10, _MOST_REQUESTS)
    rows: list[dict[str, Any]] = []
    report("worlds: being built")
    with practice_worlds(requests / _AGENT_REQUESTS_PER_S) as worlds:
        for name, world in worlds.items():
            for cache in CACHES:
                for router in ROUTER_KINDS:
                    report(f"{name}: {router}, {cache}")
                    rows.append(_row(name, world, cache, router))
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def _row(name: str, world: World, cache: str, router: str) -> dict[str, Any]:
    """Simulate one fleet."""
    scenario = world.scenario(cache, router)
    fleet = Fleet(scenario, seed=0)
    fleet.advance(world.warmup_s)
    stats = fleet.advance(world.counted_s)
    deviation = math.sqrt(stats.coverage * (1.0 - stats.coverage) / max(stats.decided, 1))
    return {
        "world": name,
        "cache": cache,
        "router": router,
        "requests": stats.arrivals,
        "coverage": stats.coverage,
        "coverage_error": deviation,
        "ttft_p50_s": stats.ttft_quantile_s(0.5),
        "ttft_p99_s": stats.ttft_quantile_s(0.99),
        "hit_token_share": stats.hit_token_share,
        "prefill_utilization": float(stats.prefill_utilization.mean()),
        "target_s": float(scenario.objective.ttft_target_s),
    }


def draw(canvas: Any, table: Table) -> None:
    """Draw coverage and the share of spared prompt tokens of each router, a column per world."""
    worlds = table.distinct("world")
    axes = canvas.subplots(2, len(worlds), sharey=True, squeeze=False)
    routers = table.distinct("router")
    height = np.arange(len(routers))[::-1]
    for column, world in enumerate(worlds):
        for row, (quantity, label) in enumerate(
            (("coverage", "coverage"), ("hit_token_share", "prompt tokens spared"))
        ):
            axis = axes[row, column]
            values = {cache: table.where(world=world, cache=cache)[quantity] for cache in _STYLES}
            low, high = (edge(list(values.values()), axis=0) for edge in (np.min, np.max))
            axis.hlines(height, low, high, color=GREY, linewidth=1.0, alpha=0.6)
            for cache, style in _STYLES.items():
                axis.plot(values[cache], height, linestyle="none", **style)
            axis.set_xlim(-0.03, 1.03)
            axis.set_xlabel(label)
            axis.set_yticks(height, routers)
            axis.tick_params(axis="y", labelsize=8.5)
        axes[0, column].set_title(world)
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def best(table: Table, world: str, cache: str) -> tuple[str, float]:
    """Return the router that covers most in a world with a kind of cache, and how much."""
    rows = table.where(world=world, cache=cache)
    index = int(np.argmax(rows["coverage"]))
    return str(rows["router"][index]), float(rows["coverage"][index])


def _of_world(table: Table, world: str) -> str:
    parts = []
    for cache, words in (("profiles", "with placed prefixes"), ("lru", "with radix caches")):
        router, coverage = best(table, world, cache)
        rows = table.where(world=world, cache=cache)
        hit = table.value("hit_token_share", world=world, cache=cache, router=router)
        parts.append(
            f"{words} {rows['coverage'].min():.2f} to {coverage:.2f} of the requests get their "
            f"first token in time, most with {router}, which spares {percent(hit)} of the prompt "
            "tokens"
        )
    return f"{world}: {'; '.join(parts)}"


def _verdict(table: Table, world: str) -> str:
    """Say which cache serves a world better with its best router, if the difference is no noise."""
    gain = best(table, world, "profiles")[1] - best(table, world, "lru")[1]
    if abs(gain) < _LEAST_DIFFERENCE:
        return f"With the best router for each, the two are alike in {world} (within 0.02)"
    ahead = "placed prefixes are" if gain > 0 else "radix caches are"
    return f"With the best router for each, {ahead} ahead by {abs(gain):.2f} in {world}"


def caption(table: Table) -> Caption:
    """Say which router and which cache serve each world best."""
    worlds = table.distinct("world")
    verdict = ". ".join(_verdict(table, world) for world in worlds)
    missing = (
        ""
        if len(worlds) > 1
        else f" The replays of recorded traces are missing: {TRACES_VARIABLE} named no folder."
    )
    return Caption(
        paper=(
            "What do serving engines get today, with radix caches that fill by themselves and the "
            "routers of the field, and what do prefixes get that are placed once? Every router of "
            "the library with both, in the preset `toolagent` and on two recorded traces of the "
            "Mooncake service, replayed in order and with their own lengths."
        ),
        here=f"{'. '.join(_of_world(table, world) for world in worlds)}. {verdict}.{missing}",
        difference=(
            "One seed each, the same requests for all; a coverage has a standard error of at most "
            f"{table['coverage_error'].max():.3f}. Chunked prefill on an L40S. Placed: in "
            f"`toolagent` ({AGENT_RATE_PER_NODE:g} requests/s and node, a third above its own "
            "load) the mix that is best in the analytic model, while the users' places "
            "change all the time; on the traces the hottest prefixes that fit half a node's "
            "memory, on every node, chosen with knowledge of the whole trace. Nothing is moved: "
            "this is what a policy has to beat. A radix cache gets as much memory as the placed "
            "prefixes take, so both run as many requests at once. Routers see live load and "
            f"caches; those that choose among candidates get the {CANDIDATES} nearest nodes and do "
            "not look at the distance again, the others have their default parameters."
        ),
    )


FIGURE = Figure(
    name="practice",
    title="Study: routers and caches as in practice",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.6, 6.6),
    study=True,
    fitted=False,
)
