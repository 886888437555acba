"""The switch between the routing rules (an if-chain: it inlines and caches across processes)."""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.routers import load_aware, nearest, prefix_aware
from edgegym.world.compiled import ROUTER_KINDS

NEAREST = ROUTER_KINDS.index("nearest")
PREFIX_AWARE = ROUTER_KINDS.index("prefix_aware")
LOAD_AWARE = ROUTER_KINDS.index("load_aware")

_nearest_score, _nearest_least = nearest.score, nearest.least_beyond_radio
_prefix_score, _prefix_least = prefix_aware.score, prefix_aware.least_beyond_radio
_load_score, _load_least = load_aware.score, load_aware.least_beyond_radio


@inlined
def score(kind: int, radio_s: float, prefill_s: float, wait_s: float) -> float:
    """Return the score of a node under a routing rule; the least wins.

    ``radio_s`` is without the base latency, which all nodes share.
    """
    if kind == NEAREST:
        return _nearest_score(radio_s)
    if kind == PREFIX_AWARE:
        return _prefix_score(radio_s, prefill_s)
    return _load_score(radio_s, prefill_s, wait_s)


@inlined
def least_beyond_radio(kind: int, least_prefill_s: float) -> float:
    """Return the least that any node's score has beyond its radio latency."""
    if kind == NEAREST:
        return _nearest_least()
    if kind == PREFIX_AWARE:
        return _prefix_least(least_prefill_s)
    return _load_least(least_prefill_s)
