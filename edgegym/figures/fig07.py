"""Fig. 7: how deep a prefix every node should hold, at three loads."""

from dataclasses import replace
from typing import Any

import numpy as np

from edgegym.analytic import TieredNetwork
from edgegym.figures.scenario import coverage, paper_network, profile_names, sweep
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, GREEN, RED
from edgegym.figures.table import Table
from edgegym.world.presets import preset

_LOADS = (2.0, 4.0, 8.0)
_LOAD_NAMES = ("light", "moderate", "heavy")
_COLOURS = ((BLUE, "-"), (GREEN, "--"), (RED, "-."))
_PRICES = (1.0, 2.0)
_GIB = 2**30


def deep_price_bytes() -> float:
    """Return the bytes per cached token of the preset's deep profile, all of its state counted."""
    net = paper_network()
    deep = profile_names().index("deep")
    assert net.state_bytes is not None
    return float(net.state_bytes[deep] / net.hit_tokens[deep].max())


def _memory_bytes() -> tuple[int, int]:
    """Return a node's memory, and what a running request takes of it."""
    hardware = preset("paper").hardware
    assert hardware.runtime_bytes_per_sequence is not None
    return hardware.memory_bytes, hardware.runtime_bytes_per_sequence


def uniform_network(
    load: float, depth_tokens: float, bytes_per_token: float
) -> TieredNetwork | None:
    """Return a fleet whose nodes all hold a prefix of this depth for every request type.

    Parameters
    ----------
    load : float
        Requests/s/km².
    depth_tokens : float
        Cached tokens of each prompt; the last token of a shorter prompt is still computed.
    bytes_per_token : float
        Price of the state; what it takes is missing for running requests.

    Returns
    -------
    TieredNetwork or None
        None if the state leaves no room for a single request.
    """
    memory_bytes, runtime_bytes = _memory_bytes()
    slots = (memory_bytes - int(depth_tokens * bytes_per_token)) // runtime_bytes
    if slots < 1:
        return None
    net = paper_network()
    hits = np.minimum(depth_tokens, net.input_tokens - 1)
    return replace(
        net,
        request_intensity=load,
        profile_probabilities=[1.0],
        concurrency=[slots],
        hit_tokens=[hits],
        state_bytes=None,
    )


def compute(effort: Effort, report: Report) -> Table:
    """Return coverage by depth, load, and price of a cached token; 0 where nothing can run."""
    longest = float(paper_network().input_tokens.max()) - 1
    columns: dict[str, list[float]] = {
        name: []
        for name in (
            "depth_tokens",
            "request_intensity_per_s_km2",
            "state_gib_per_1024_tokens",
            "slots",
            "coverage",
        )
    }
    for price in _PRICES:
        bytes_per_token = price * deep_price_bytes()
        report(f"{1024 * bytes_per_token / _GIB:.3g} GiB per 1024 tokens")
        depths = sweep(0.0, longest, 2 * effort.points, including=_slot_edges(bytes_per_token))
        for load in _LOADS:
            for depth in depths:
                net = uniform_network(load, float(depth), bytes_per_token)
                columns["depth_tokens"].append(float(depth))
                columns["request_intensity_per_s_km2"].append(load)
                columns["state_gib_per_1024_tokens"].append(1024 * bytes_per_token / _GIB)
                columns["slots"].append(0 if net is None else int(net.concurrency[0]))
                columns["coverage"].append(0.0 if net is None else coverage(net))
    return Table(columns)


def _slot_edges(bytes_per_token: float) -> list[float]:
    """Return the deepest prefix for each number of slots, and one token more."""
    memory_bytes, runtime_bytes = _memory_bytes()
    longest = paper_network().input_tokens.max() - 2
    edges = [
        float(slots * runtime_bytes // bytes_per_token)
        for slots in range(1, memory_bytes // runtime_bytes)
    ]
    return [edge + more for edge in edges if edge <= longest for more in (0.0, 1.0)]


def best_depth(table: Table, load: float, price: float) -> tuple[float, float]:
    """Return the best depth in tokens at a load and price, and its coverage."""
    rows = table.where(request_intensity_per_s_km2=load, state_gib_per_1024_tokens=price)
    best = int(rows["coverage"].argmax())
    return float(rows["depth_tokens"][best]), float(rows["coverage"][best])


def draw(canvas: Any, table: Table) -> None:
    """Draw a panel per price, a line per load, the best depth marked."""
    panels = canvas.subplots(1, 2, sharey=True)
    for axes, price in zip(panels, table.distinct("state_gib_per_1024_tokens"), strict=True):
        for load, name, (colour, dashes) in zip(_LOADS, _LOAD_NAMES, _COLOURS, strict=True):
            rows = table.where(request_intensity_per_s_km2=load, state_gib_per_1024_tokens=price)
            axes.plot(
                rows["depth_tokens"],
                rows["coverage"],
                color=colour,
                linestyle=dashes,
                label=f"{name}: {load:g} requests/s/km²",
            )
            axes.plot(*best_depth(table, load, price), "o", color=colour, markersize=7)
        axes.set_title(f"{price:.3g} GiB of state per 1024 tokens")
        axes.set_xlabel("depth of the prefix that every node holds, tokens")
    panels[0].set_ylabel("coverage (TTFT within 0.8 s)")
    panels[0].set_ylim(-0.03, 1.05)
    panels[0].legend(loc="lower right", title="dots: best depth", title_fontsize=9)


def caption(table: Table) -> Caption:
    """Say how the best depth moves with the load at each price."""
    cheap, dear = table.distinct("state_gib_per_1024_tokens")

    def depths(price: float) -> str:
        return ", ".join(f"{best_depth(table, load, price)[0]:,.0f}" for load in _LOADS)

    deepest = table["depth_tokens"].max()

    def at_the_end(load: float, price: float) -> float:
        return table.value(
            "coverage",
            request_intensity_per_s_km2=load,
            state_gib_per_1024_tokens=price,
            depth_tokens=deepest,
        )

    heavy = _LOADS[-1]
    return Caption(
        paper=(
            "Coverage against one cached depth for all nodes, with fewer slots the deeper it is. "
            "Deeper helps first at light load; at moderate and heavy load the best depth is "
            "shallower, and beyond it coverage falls fast. No numbers are printed."
        ),
        here=(
            f"All nodes are alike and hold a prefix for both request types; a hit is at most the "
            f"prompt less one token; slots are what state leaves of 16 GiB at 1 GiB each. Left, "
            f"with the preset's deep profile as the price of a token ({cheap:.3g} GiB per 1024), "
            f"the best depth at {', '.join(f'{load:g}' for load in _LOADS)} requests/s/km² is "
            f"{depths(cheap)} tokens; at heavy load holding everything costs "
            f"{best_depth(table, heavy, cheap)[1] - at_the_end(heavy, cheap):.2f} of coverage "
            f"against the best depth. Right, at twice that price, it is {depths(dear)} tokens, and "
            "beyond the best depth the queues become unstable."
        ),
        difference=(
            "The direction is the paper's: the heavier the load, the shallower the best depth. How "
            "far it moves hangs on the price of a token, which is not in the text, hence the two "
            "panels. Memory is not the only thing at stake: a deeper hit also shortens the time in "
            "the slot, so that at the lower price it can raise capacity although slots are lost. "
            "Steps in the lines are whole slots."
        ),
    )


FIGURE = Figure(
    name="fig07",
    title="Fig. 7: coverage by cached depth",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(8.6, 4.0),
)
