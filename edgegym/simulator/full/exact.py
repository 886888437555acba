"""The exact search for the node with the least score, ring by ring.

The same rules and bits as :mod:`edgegym.simulator.search` where that can do the search, and beyond
it: the request's own length, node classes, types that a node can't serve, closed nodes, margins.
The search stops when no node that it has not seen could be nearer than the nearest, better than the
best, or the runner-up: T₀ + ξ·(ring distance)^α + the least prefill is no better.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.admission import is_open
from edgegym.simulator.full.margin import margin_s
from edgegym.simulator.full.rings import WIDER, Rings, rings_around, run_of, seen_squared_km2
from edgegym.simulator.full.routing_groups import Ask, Routing
from edgegym.simulator.full.sight import (
    advertised_hit,
    expected_s,
    least_prefill_s,
    node_at,
    radio_s_of,
    sight_of,
    squared_km2,
)
from edgegym.simulator.routers.dispatch import LOAD_AWARE, least_beyond_radio, score


class Found(NamedTuple):
    """The best of the nodes seen so far."""

    node: int  # -1 while there is none
    cost_s: float  # its score
    squared_km2: float
    expected_s: float
    nearest: int
    closest_km2: float
    first: int  # the open nodes with the least and second least expected time
    first_s: float
    second: int
    second_s: float


@helper
def _look(
    routing: Routing, ask: Ask, found: Found, begin: int, end: int, now: float, only_open: bool
) -> Found:
    """Look at the nodes at some places."""
    area = routing.area
    kind = routing.params.rule.kind
    node, cost, squared_best, expected, nearest, closest, first, first_s, second, second_s = found
    for place in range(begin, end):
        squared = squared_km2(area, place, ask.x_km, ask.y_km)
        if squared == np.inf:
            continue
        here = node_at(area, place)
        if squared < closest or (squared == closest and here < nearest):
            nearest, closest = here, squared
        hit = advertised_hit(routing, ask, place)
        if hit < 0.0:
            continue
        takes = is_open(routing, here, now)
        if only_open and not takes:
            continue
        sight = sight_of(routing, ask, place, squared, hit, now)
        value = score(kind, sight.radio_s, sight.prefill_s, sight.wait_s)
        if kind == LOAD_AWARE:
            value += sight.fetch_s + sight.imposed_s
            if routing.params.margin.used:
                value += margin_s(routing, here, now)
        seconds = expected_s(sight)
        if value < cost or (value == cost and here < node):
            node, cost, squared_best, expected = here, value, squared, seconds
        # In a region of few cells some are seen twice.
        if takes and here != first and here != second:
            if seconds < first_s or (seconds == first_s and here < first):
                second, second_s = first, first_s
                first, first_s = here, seconds
            elif seconds < second_s or (seconds == second_s and here < second):
                second, second_s = here, seconds
    return Found(
        node, cost, squared_best, expected, nearest, closest, first, first_s, second, second_s
    )


@inlined
def _is_complete(
    routing: Routing, ask: Ask, found: Found, rings: Rings, ring: int, least_s: float
) -> bool:
    """Return whether no node beyond a ring can change what was found."""
    seen = seen_squared_km2(rings, ring)
    if seen == np.inf:
        return True
    if found.closest_km2 > seen * WIDER:
        return False
    if least_s == np.inf:
        return True
    radio_s = radio_s_of(routing, ask, seen) * WIDER
    beyond_s = least_beyond_radio(routing.params.rule.kind, least_s)
    return found.cost_s < radio_s + beyond_s * WIDER and found.second_s < radio_s + least_s * WIDER


@helper
def search_exactly(routing: Routing, ask: Ask, now: float, only_open: bool) -> Found:
    """Choose among all nodes, or all open ones."""
    area = routing.area
    rings = rings_around(area, ask.x_km, ask.y_km)
    found = Found(-1, np.inf, np.inf, np.inf, -1, np.inf, -1, np.inf, -1, np.inf)
    least_s = least_prefill_s(routing, ask)
    for ring in range(rings.last + 1):
        for offset in range(-ring, ring + 1):
            for part in range(2):
                begin, end = run_of(area, rings, ring, offset, part)
                if end > begin:
                    found = _look(routing, ask, found, begin, end, now, only_open)
        if _is_complete(routing, ask, found, rings, ring, least_s):
            break
    return found
