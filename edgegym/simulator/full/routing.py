"""Where a request goes, and what the router takes note of.

The loop asks :func:`route`, and tells what happens:

* ``note_sent``, ``note_landed``, ``note_lost``, ``note_left``: a request is sent to a station,
  lands there, is lost on its way, leaves the station;
* :func:`~edgegym.simulator.full.admission.note_load` after active, queued, slots, profile or
  health of a node have changed, ``note_requests`` there where it was only the first two;
* :func:`~edgegym.simulator.full.margin.note_error` at each first token;
* ``publish_tokens`` at each report.

These keep what is kept only here; :mod:`edgegym.simulator.telemetry` counts requests and waits.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.admission import is_open
from edgegym.simulator.full.candidates import gather
from edgegym.simulator.full.columns import DOWN, NOT_SPILLED, REFUSED, SPILLED_NODE, SPILLED_ORIGIN
from edgegym.simulator.full.exact import search_exactly
from edgegym.simulator.full.margin import margin_s, note_gap
from edgegym.simulator.full.routers.dispatch import pick
from edgegym.simulator.full.routing_columns import (
    DISTANCE_SQUARED_KM2,
    FETCH_S,
    NODE,
    PREFILL_S,
    RADIO_S,
    REJECT,
    SPILL_TO_ORIGIN,
    TOKENS_ON_WAY,
    TOKENS_REPORTED,
    TOKENS_THERE,
    WAIT_S,
)
from edgegym.simulator.full.routing_groups import Ask, Decision, Routing
from edgegym.simulator.full.sight import origin_expected_s
from edgegym.simulator.routers.dispatch import LOAD_AWARE


class _Choice(NamedTuple):
    """What a rule chose among the nodes."""

    node: int  # −1 for none
    squared_km2: float
    expected_s: float
    nearest: int
    closest_km2: float
    other: int  # the best open node besides it, −1 for none
    other_s: float


@inlined
def _choose_exactly(routing: Routing, ask: Ask, now: float, only_open: bool) -> _Choice:
    found = search_exactly(routing, ask, now, only_open)
    other, other_s = found.first, found.first_s
    if other == found.node:
        other, other_s = found.second, found.second_s
    return _Choice(
        found.node,
        found.squared_km2,
        found.expected_s,
        found.nearest,
        found.closest_km2,
        other,
        other_s,
    )


@inlined
def _choose_candidate(routing: Routing, ask: Ask, now: float, only_open: bool) -> _Choice:
    gathered = gather(routing, ask, now, only_open)
    table = routing.state.candidates
    taken = -1
    if gathered.candidates > 0:
        taken = pick(routing, gathered.candidates)
    node, squared, expected = -1, np.inf, np.inf
    other, other_s = -1, np.inf
    for row in range(gathered.candidates):
        seconds = table[row, RADIO_S] + (table[row, PREFILL_S] + table[row, WAIT_S])
        seconds += table[row, FETCH_S]
        here = int(table[row, NODE])
        if row == taken:
            node, squared, expected = here, table[row, DISTANCE_SQUARED_KM2], seconds
        elif seconds < other_s and is_open(routing, here, now):
            other, other_s = here, seconds
    return _Choice(node, squared, expected, gathered.nearest, gathered.closest_km2, other, other_s)


@helper
def _choose(routing: Routing, ask: Ask, now: float, only_open: bool) -> _Choice:
    """Let the rule choose among all nodes that can serve a request, or among the open ones."""
    if routing.params.rule.kind <= LOAD_AWARE:
        return _choose_exactly(routing, ask, now, only_open)
    return _choose_candidate(routing, ask, now, only_open)


@inlined
def _with_margin_s(routing: Routing, station: int, expected_s: float, now: float) -> float:
    if station >= 0 and routing.params.margin.used:
        return expected_s + margin_s(routing, station, now)
    return expected_s


@inlined
def _reject(choice: _Choice, other: int, other_s: float, spilled: int) -> Decision:
    return Decision(-1, choice.nearest, np.inf, np.inf, other_s, other, spilled)


@helper
def route(routing: Routing, ask: Ask, now: float) -> Decision:
    """Decide where a request goes.

    The rule chooses a node. The origin, when it is up, takes its place where its own predicted time
    (with margin) is less, where no node can serve the request, and for outputs longer than it lets
    the edge serve. Where the chosen node is closed, the request spills: to the node that the rule
    chooses among the open ones, or to the origin, or nowhere. Nobody who has no up node to reach is
    served.
    """
    base_s = routing.area.radio_base_s
    choice = _choose(routing, ask, now, False)
    has_origin, origin_s, with_margin = False, np.inf, np.inf
    station = routing.origin_station
    if station >= 0 and choice.nearest >= 0 and routing.faults.num[station, DOWN] == 0:
        has_origin = True
        origin_s = origin_expected_s(routing, ask, choice.closest_km2)
        with_margin = _with_margin_s(routing, station, origin_s, now)
    to_origin = has_origin and (
        ask.output_tokens > routing.origin.output_cap_tokens
        or with_margin < _with_margin_s(routing, choice.node, choice.expected_s, now)
    )
    spilled = NOT_SPILLED
    if not to_origin and choice.node >= 0 and not is_open(routing, choice.node, now):
        spill = routing.params.admission.spill
        if spill == REJECT:
            other, other_s = choice.other, choice.other_s
            if origin_s < other_s:
                other, other_s = station, origin_s
            return _reject(choice, other, base_s + other_s, REFUSED)
        spilled = SPILLED_NODE
        if spill == SPILL_TO_ORIGIN and has_origin:
            to_origin = True
        else:
            choice = _choose(routing, ask, now, True)
            to_origin = has_origin and with_margin < _with_margin_s(
                routing, choice.node, choice.expected_s, now
            )
    if to_origin:
        other, other_s = choice.node, choice.expected_s
        if other < 0 or not is_open(routing, other, now) or choice.other_s < other_s:
            other, other_s = choice.other, choice.other_s
        return Decision(
            station,
            choice.nearest,
            choice.closest_km2,
            base_s + origin_s,
            base_s + other_s,
            other,
            NOT_SPILLED if spilled == NOT_SPILLED else SPILLED_ORIGIN,
        )
    other, other_s = choice.other, choice.other_s
    if origin_s < other_s:
        other, other_s = station, origin_s
    if choice.node < 0:
        refused = NOT_SPILLED if spilled == NOT_SPILLED else REFUSED
        return _reject(choice, other, base_s + other_s, refused)
    return Decision(
        choice.node,
        choice.nearest,
        choice.squared_km2,
        base_s + choice.expected_s,
        base_s + other_s,
        other,
        spilled,
    )


@inlined
def must_move_on(routing: Routing, station: int, now: float) -> bool:
    """Return whether a request that lands at a station is sent on, because it has closed."""
    return routing.params.admission.redirect and not is_open(routing, station, now)


@inlined
def _counts_tokens(routing: Routing) -> bool:
    """Return whether the rule may look at the tokens that stations have in use."""
    return routing.params.rule.kind > LOAD_AWARE


@inlined
def note_sent(routing: Routing, station: int, tokens: int, now: float) -> None:
    """Take note of a request with so many input and output tokens sent to a station."""
    if _counts_tokens(routing):
        sums = routing.state.station_sums
        sums[station, TOKENS_ON_WAY] += tokens
        if routing.signals.predicts:
            sums[station, TOKENS_REPORTED] += tokens
    note_gap(routing, station, now)


@inlined
def note_landed(routing: Routing, station: int, tokens: int) -> None:
    """Take note of a request that reached its station."""
    if _counts_tokens(routing):
        sums = routing.state.station_sums
        sums[station, TOKENS_ON_WAY] -= tokens
        sums[station, TOKENS_THERE] += tokens


@inlined
def note_lost(routing: Routing, station: int, tokens: int) -> None:
    """Take note of a request that will not reach its station."""
    if _counts_tokens(routing):
        sums = routing.state.station_sums
        sums[station, TOKENS_ON_WAY] -= tokens
        if routing.signals.live:
            sums[station, TOKENS_REPORTED] -= tokens


@inlined
def note_left(routing: Routing, station: int, tokens: int) -> None:
    """Take note of a request that left its station, served or not."""
    if _counts_tokens(routing):
        sums = routing.state.station_sums
        sums[station, TOKENS_THERE] -= tokens
        if routing.signals.live:
            sums[station, TOKENS_REPORTED] -= tokens


@helper
def publish_tokens(routing: Routing, num_stations: int) -> None:
    """Let every station report the tokens it has in use."""
    if not _counts_tokens(routing):
        return
    sums = routing.state.station_sums
    for station in range(num_stations):
        unseen = sums[station, TOKENS_ON_WAY] if routing.signals.predicts else 0
        sums[station, TOKENS_REPORTED] = sums[station, TOKENS_THERE] + unseen
