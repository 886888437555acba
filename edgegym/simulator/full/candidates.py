"""The candidates of the rules that look at a few nodes: the nearest of each profile.

Of each profile the k nearest nodes that are up and can serve the request, ties to the lower index;
where nodes have no profiles (an LRU cache) the k · S nearest of all. They are written into a table,
in the order of their indices.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import PLACE, REPORTED, REQUEST_S_BITS
from edgegym.simulator.columns import SLOTS as WORK_SLOTS
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.admission import is_open
from edgegym.simulator.full.margin import margin_s
from edgegym.simulator.full.random import uniform_of
from edgegym.simulator.full.rings import WIDER, Rings, rings_around, run_of, seen_squared_km2
from edgegym.simulator.full.routing_columns import (
    DISTANCE_SQUARED_KM2,
    DRAW,
    DRAW_AMONG_OPEN,
    DRAW_OF_RULE,
    FAMILY,
    FETCH_S,
    HIT_TOKENS,
    INPUT_TOKENS,
    MARGIN_S,
    NODE,
    PREFILL_S,
    PROFILE,
    RADIO_S,
    REQUEST_S,
    REQUESTS,
    SLOTS,
    TIER_NODES,
    TOKENS_IN_USE,
    TOKENS_REPORTED,
    TYPE,
    WAIT_S,
)
from edgegym.simulator.full.routing_groups import Ask, Routing
from edgegym.simulator.full.sight import advertised_hit, node_at, sight_of, squared_km2


class Gathered(NamedTuple):
    """How many candidates there are, and the nearest up node."""

    candidates: int
    nearest: int
    closest_km2: float


@inlined
def _insert(routing: Routing, group: int, node: int, place: int, squared: float) -> None:
    """Put a node among the nearest of its group, if it is one of them."""
    state, quota = routing.state, routing.params.rule.quota
    distance, places = state.near_squared_km2, state.near_place
    count = state.near_count[group]
    spot = count
    while spot > 0:
        other = node_at(routing.area, places[group, spot - 1])
        if other == node:  # in a region of few cells some are seen twice
            return
        if distance[group, spot - 1] < squared:
            break
        if distance[group, spot - 1] == squared and other < node:
            break
        spot -= 1
    if spot >= quota:
        return
    last = min(count, quota - 1)
    for index in range(last, spot, -1):
        distance[group, index] = distance[group, index - 1]
        places[group, index] = places[group, index - 1]
    distance[group, spot], places[group, spot] = squared, place
    state.near_count[group] = min(count + 1, quota)


@helper
def _look_near(
    routing: Routing,
    ask: Ask,
    nearest: int,
    closest: float,
    begin: int,
    end: int,
    now: float,
    only_open: bool,
) -> tuple[int, float]:
    """Look at the nodes at some places; return the nearest so far and its squared distance."""
    area, grouped = routing.area, routing.params.rule.num_groups > 1
    for place in range(begin, end):
        squared = squared_km2(area, place, ask.x_km, ask.y_km)
        if squared == np.inf:
            continue
        node = node_at(area, place)
        if squared < closest or (squared == closest and node < nearest):
            nearest, closest = node, squared
        if advertised_hit(routing, ask, place) < 0.0:
            continue
        if only_open and not is_open(routing, node, now):
            continue
        _insert(routing, routing.profile[node] if grouped else 0, node, place, squared)
    return nearest, closest


@inlined
def _available(routing: Routing, ask: Ask, group: int) -> int:
    """Return how many up nodes of a group may be able to serve a request."""
    sums = routing.state.tier_sums
    if routing.params.rule.num_groups > 1:
        return sums[group, TIER_NODES] if routing.stock.tier_serves[group, ask.type] else 0
    count = 0
    for tier in range(routing.params.num_profiles):
        count += sums[tier, TIER_NODES]
    return count


@inlined
def _is_complete(routing: Routing, ask: Ask, closest: float, rings: Rings, ring: int) -> bool:
    """Return whether no node beyond a ring can be a candidate, or the nearest."""
    rule, state = routing.params.rule, routing.state
    seen = seen_squared_km2(rings, ring)
    if seen == np.inf:
        return True
    seen *= WIDER
    if closest > seen:
        return False
    for group in range(rule.num_groups):
        count = state.near_count[group]
        if count < min(rule.quota, _available(routing, ask, group)):
            return False
        if count > 0 and count == rule.quota and state.near_squared_km2[group, count - 1] > seen:
            return False
    return True


@inlined
def _by_index(routing: Routing) -> int:
    """Line the places of all groups up by node index, in the first group; return how many."""
    state, rule = routing.state, routing.params.rule
    table = state.candidates
    count = 0
    for group in range(rule.num_groups):
        for index in range(state.near_count[group]):
            node = float(node_at(routing.area, state.near_place[group, index]))
            spot = count
            while spot > 0 and table[spot - 1, NODE] > node:
                table[spot, NODE] = table[spot - 1, NODE]
                spot -= 1
            table[spot, NODE] = node
            count += 1
    return count


@inlined
def _describe(routing: Routing, ask: Ask, row: int, draw: float, now: float) -> None:
    """Write what the router knows of a candidate into its row."""
    table, work = routing.state.candidates, routing.nodes.work
    node = int(table[row, NODE])
    place = work[node, PLACE]
    squared = squared_km2(routing.area, place, ask.x_km, ask.y_km)
    hit = advertised_hit(routing, ask, place)
    sight = sight_of(routing, ask, place, squared, hit, now)
    table[row, PROFILE] = routing.profile[node]
    table[row, DISTANCE_SQUARED_KM2] = squared
    table[row, RADIO_S] = sight.radio_s
    table[row, PREFILL_S] = sight.prefill_s
    table[row, WAIT_S] = sight.wait_s
    table[row, FETCH_S] = sight.fetch_s
    table[row, MARGIN_S] = margin_s(routing, node, now) if routing.params.margin.used else 0.0
    table[row, REQUESTS] = work[node, REPORTED]
    table[row, SLOTS] = work[node, WORK_SLOTS]
    table[row, REQUEST_S] = np.int64(work[node, REQUEST_S_BITS]).view(np.float64)
    table[row, HIT_TOKENS] = hit
    table[row, INPUT_TOKENS] = ask.input_tokens
    table[row, TOKENS_IN_USE] = routing.state.station_sums[node, TOKENS_REPORTED]
    table[row, TYPE] = ask.type
    table[row, FAMILY] = routing.params.family[ask.type]
    table[row, DRAW] = draw


@helper
def gather(routing: Routing, ask: Ask, now: float, only_open: bool) -> Gathered:
    """Write the candidates of a request, or the open ones, into the table."""
    area, rule = routing.area, routing.params.rule
    rings = rings_around(area, ask.x_km, ask.y_km)
    nearest, closest = -1, np.inf
    for group in range(rule.num_groups):
        routing.state.near_count[group] = 0
    for ring in range(rings.last + 1):
        for offset in range(-ring, ring + 1):
            for part in range(2):
                begin, end = run_of(area, rings, ring, offset, part)
                if end > begin:
                    nearest, closest = _look_near(
                        routing, ask, nearest, closest, begin, end, now, only_open
                    )
        if _is_complete(routing, ask, closest, rings, ring):
            break
    count = _by_index(routing)
    draw = uniform_of(ask.key, ask.number, DRAW_AMONG_OPEN if only_open else DRAW_OF_RULE)
    for row in range(count):
        _describe(routing, ask, row, draw, now)
    return Gathered(count, nearest, closest)
