"""The request that a fleet has stopped to ask about, and the nodes that may take it."""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import NEXT_REQUEST, NUM_REQUESTS
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.admission import is_open
from edgegym.simulator.full.columns import FIRST_REQUEST, ORIGIN_KEY, ROUTING_KEY
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.rings import WIDER, Rings, rings_around, run_of, seen_squared_km2
from edgegym.simulator.full.routing_groups import Ask, Routing
from edgegym.simulator.full.sight import advertised_hit, node_at, squared_km2
from edgegym.simulator.state import Floats, Ints


class Near(NamedTuple):
    """The nearest nodes that may take a request; scratch of a kernel's caller."""

    squared_km2: Floats  # [K] nearest first
    place: Ints  # [K] where in the sites they are


class Around(NamedTuple):
    """How many of them there are, and the nearest up node."""

    nodes: int
    nearest: int  # -1 when no node is up
    closest_km2: float  # squared


@inlined
def is_asking(fleet: FullLane) -> bool:
    """Return whether the clock stands at a request that is next to be routed."""
    position = fleet.core.scalars[NEXT_REQUEST]
    if position >= fleet.core.scalars[NUM_REQUESTS]:
        return False
    return bool(fleet.requests.time_s[position] == fleet.now_s[0])


@inlined
def next_ask(fleet: FullLane) -> Ask:
    """Return the request that is next, as the router sees it."""
    position = fleet.core.scalars[NEXT_REQUEST]
    requests, lengths = fleet.requests, fleet.lengths
    return Ask(
        float(requests.x_km[position]),
        float(requests.y_km[position]),
        int(requests.type[position]),
        float(lengths.input_tokens[position]),
        float(lengths.output_tokens[position]),
        fleet.scalars[FIRST_REQUEST] + position,
        fleet.scalars[ROUTING_KEY],
        fleet.scalars[ORIGIN_KEY],
    )


@inlined
def _insert(routing: Routing, near: Near, most: int, around: Around, place: int) -> int:
    """Put the node at a place among the nearest, if it is one of them; return how many are."""
    node, count, squared = node_at(routing.area, place), around.nodes, around.closest_km2
    spot = count
    while spot > 0:
        other = node_at(routing.area, near.place[spot - 1])
        if other == node:  # in a region of few cells some are seen twice
            return count
        before = near.squared_km2[spot - 1]
        if before < squared or (before == squared and other < node):
            break
        spot -= 1
    if spot >= most:
        return count
    for index in range(min(count, most - 1), spot, -1):
        near.squared_km2[index] = near.squared_km2[index - 1]
        near.place[index] = near.place[index - 1]
    near.squared_km2[spot], near.place[spot] = squared, place
    return min(count + 1, most)


@helper
def _look(
    routing: Routing,
    ask: Ask,
    near: Near,
    most: int,
    found: Around,
    begin: int,
    end: int,
    now: float,
) -> Around:
    """Look at the nodes at some places."""
    area = routing.area
    count, nearest, closest = found.nodes, found.nearest, found.closest_km2
    for place in range(begin, end):
        squared = squared_km2(area, place, ask.x_km, ask.y_km)
        if squared == np.inf:
            continue
        node = node_at(area, place)
        if squared < closest or (squared == closest and node < nearest):
            nearest, closest = node, squared
        if count == most and squared > near.squared_km2[count - 1]:
            continue
        if advertised_hit(routing, ask, place) >= 0.0 and is_open(routing, node, now):
            count = _insert(routing, near, most, Around(count, node, squared), place)
    return Around(count, nearest, closest)


@inlined
def _is_complete(near: Near, most: int, found: Around, rings: Rings, ring: int) -> bool:
    seen = seen_squared_km2(rings, ring)
    if seen == np.inf:
        return True
    seen *= WIDER
    return found.nodes == most and near.squared_km2[most - 1] <= seen and found.closest_km2 <= seen


@helper
def nodes_around(routing: Routing, ask: Ask, near: Near, most: int, now: float) -> Around:
    """Find the nearest nodes that are up, open and can serve a request; ties to the lower index.

    Parameters
    ----------
    routing : Routing
        Of the fleet.
    ask : Ask
        The request.
    near : Near
        Written, nearest first.
    most : int
        K, at least 1.
    now : float
        Time, s.
    """
    area = routing.area
    rings = rings_around(area, ask.x_km, ask.y_km)
    found = Around(0, -1, np.inf)
    for ring in range(rings.last + 1):
        for offset in range(-ring, ring + 1):
            for part in range(2):
                begin, end = run_of(area, rings, ring, offset, part)
                if end > begin:
                    found = _look(routing, ask, near, most, found, begin, end, now)
        if _is_complete(near, most, found, rings, ring):
            break
    return found
