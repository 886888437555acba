"""The exact search for the node with the least score, row by row of the grid.

The same rules and bits as :mod:`edgegym.simulator.search` where that can do the search, and beyond
it: the request's own length, node classes, types that a node can't serve, closed nodes, margins,
and the runner-up where somebody reads it. A disc is searched beyond which no node could be nearer
than the nearest, better than the best, or the runner-up: ξ·(distance)^α + the least prefill is no
better. It is known from the first nodes, near the user, and shrinks with every better one.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import HOLDS_SHIFT, NODE_MASK, SITE_BITS, SITE_WAIT_S
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.admission import is_open
from edgegym.simulator.full.margin import margin_s
from edgegym.simulator.full.routing_groups import Ask, Routing
from edgegym.simulator.full.service import prefill_seconds
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
from edgegym.simulator.search import rows_around, run_of_span, seed_place, span_of

# A bound is computed with other roundings than a node's score: widen it by far more than those.
_MORE, _LESS = 1.0 + 1e-9, 1.0 - 1e-9


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


@inlined
def _look_plainly(routing: Routing, ask: Ask, found: Found, begin: int, end: int) -> Found:
    """Look at the nodes at some places where all are open and only the best is sought."""
    area, stock, kind = routing.area, routing.stock, routing.params.rule.kind
    node, cost, squared_best, expected = (
        found.node,
        found.cost_s,
        found.squared_km2,
        found.expected_s,
    )
    nearest, closest = found.nearest, found.closest_km2
    for place in range(begin, end):
        squared = squared_km2(area, place, ask.x_km, ask.y_km)
        bits = int(np.float64(area.sites[place, SITE_BITS]).view(np.int64))
        here, row = bits & NODE_MASK, bits >> HOLDS_SHIFT
        hit = min(stock.hit_tokens[row, ask.type], ask.input_tokens - 1.0)
        prefill_s = prefill_seconds(stock.coefficients, stock.row_class[row], ask.input_tokens, hit)
        radio_s, wait_s = radio_s_of(routing, ask, squared), area.sites[place, SITE_WAIT_S]
        value = score(kind, radio_s, prefill_s, wait_s) if hit >= 0.0 else np.inf
        # Conditional moves: which node is better is no branch that could be foreseen.
        nearer, better = squared < closest, value < cost
        tied_distance = squared == closest and here < nearest
        tied_score = value == cost and here < node
        closest = squared if nearer else closest
        nearest = here if nearer else nearest
        cost = value if better else cost
        node = here if better else node
        squared_best = squared if better else squared_best
        expected = radio_s + (prefill_s + wait_s) if better else expected
        if tied_distance:
            nearest = here
        if tied_score:
            node, squared_best, expected = here, squared, radio_s + (prefill_s + wait_s)
    return Found(
        node,
        cost,
        squared_best,
        expected,
        nearest,
        closest,
        found.first,
        found.first_s,
        found.second,
        found.second_s,
    )


@helper
def _look(
    routing: Routing, ask: Ask, found: Found, begin: int, end: int, now: float, only_open: bool
) -> Found:
    """Look at the nodes at some places."""
    if routing.looks_plainly:
        return _look_plainly(routing, ask, found, begin, end)
    area = routing.area
    kind, seeks_other = routing.params.rule.kind, routing.seeks_runner_up
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
        if seeks_other and takes and here != first and here != second:
            if seconds < first_s or (seconds == first_s and here < first):
                second, second_s = first, first_s
                first, first_s = here, seconds
            elif seconds < second_s or (seconds == second_s and here < second):
                second, second_s = here, seconds
    return Found(
        node, cost, squared_best, expected, nearest, closest, first, first_s, second, second_s
    )


@inlined
def _disc_squared_km2(routing: Routing, ask: Ask, found: Found, least_s: float) -> float:
    """Return the squared radius beyond which no node can change what was found."""
    area, radio_s = routing.area, 0.0
    if least_s < np.inf:
        beyond_s = least_beyond_radio(routing.params.rule.kind, least_s)
        radio_s = max(found.cost_s * _MORE - beyond_s * _LESS, 0.0)
        if routing.seeks_runner_up:
            radio_s = max(radio_s, found.second_s * _MORE - least_s * _LESS)
    squared = radio_s / (area.radio_xi * routing.params.xi_factor[ask.type])
    if area.radio_alpha != 2.0:
        squared = squared ** (2.0 / area.radio_alpha)
    return max(squared, found.closest_km2) * _MORE


@helper
def search_exactly(routing: Routing, ask: Ask, now: float, only_open: bool) -> Found:
    """Choose among all nodes, or all open ones."""
    area = routing.area
    found = Found(-1, np.inf, np.inf, np.inf, -1, np.inf, -1, np.inf, -1, np.inf)
    if area.cells_x == 0:
        return _look(routing, ask, found, 0, area.num_nodes, now, only_open)
    least_s = least_prefill_s(routing, ask)
    rows = rows_around(area, ask.x_km, ask.y_km)
    place, disc_squared = seed_place(area, rows), np.inf
    while disc_squared == np.inf and place < area.num_nodes:
        found = _look(routing, ask, found, place, place + 1, now, only_open)
        disc_squared = _disc_squared_km2(routing, ask, found, least_s)
        place += 1
    for ring in range(max(rows.below, rows.above) + 1):
        touched = False
        for side in range(2):
            span = span_of(area, rows, ring, side, disc_squared)
            for run in range(span.runs):
                touched = True
                begin, end = run_of_span(area, span, run)
                found = _look(routing, ask, found, begin, end, now, only_open)
        if not touched:
            break
        disc_squared = _disc_squared_km2(routing, ask, found, least_s)
    return found
