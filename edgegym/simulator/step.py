"""The event loop: advance one fleet."""

from typing import NamedTuple

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots, has_room, new_record, settle
from edgegym.simulator.backhaul import begin_transfer
from edgegym.simulator.catalogue import refresh_node
from edgegym.simulator.columns import (
    ARRIVAL_S,
    ARRIVALS,
    BUSY_TICKS,
    BYTES_MOVED,
    CAPACITY_TICKS,
    COUNTED,
    DECIDED,
    DRAINING,
    FAMILY_ARRIVALS,
    FAMILY_DECIDED,
    HOLDS,
    IN_FLIGHT,
    IN_SLOTS,
    MARK,
    MOVES_STARTED,
    NEXT_REQUEST,
    NODE,
    NUM_REQUESTS,
    ON_RADIO,
    PENDING_BYTES,
    PENDING_MOVES,
    PREFILL_TIME_TICKS,
    REJECTED,
    REPORTED,
    SIZE,
    SLOTS,
    STATUS,
    TYPE,
    WINDOW_OPEN,
)
from edgegym.simulator.compiling import borrow, helper, inlined, prefetch
from edgegym.simulator.events import (
    FLOW_END,
    LANDING,
    NO_WALK,
    SLOT_END,
    TELEMETRY,
    fetch_others,
    fetch_own,
    kind_of,
    next_entry,
    node_of,
    pop_event,
    push_event,
    record_of,
    replace_event,
    request_item,
    turn_page,
    walks_ahead,
)
from edgegym.simulator.lane import Core, Lane, Window
from edgegym.simulator.nodes import end_slot, join_node
from edgegym.simulator.search import (
    FETCHES_AHEAD_NODES,
    choose_node,
    fetch_for_requests,
    radio_beyond_base_s,
)
from edgegym.simulator.state import Ints
from edgegym.simulator.telemetry import note_routed, publish

DONE = 0
NEEDS_BLOCK = 1
NEEDS_RECORDS = 2


@helper
def open_window(
    window: Window, work: Ints, num_nodes: int, nearest_demand: Ints, scalars: Ints
) -> None:
    """Set the window's counters to zero, but for the moves started before it."""
    window.counters[:] = 0
    window.families[:] = 0
    window.histogram[:] = 0
    nearest_demand[:] = 0
    for node in range(num_nodes):
        work[node, BUSY_TICKS] = 0
        work[node, CAPACITY_TICKS] = 0
        work[node, PREFILL_TIME_TICKS] = 0
    window.counters[MOVES_STARTED] = scalars[PENDING_MOVES]
    window.counters[BYTES_MOVED] = scalars[PENDING_BYTES]
    scalars[PENDING_MOVES] = 0
    scalars[PENDING_BYTES] = 0
    scalars[WINDOW_OPEN] = 1


class _Behind(NamedTuple):
    """What of the last request is done later, when its memory has come; nodes −1 where nothing."""

    routed: int  # the node that it was sent to
    nearest: int
    family: int


_UP_TO_DATE = _Behind(-1, -1, 0)


@inlined
def _note_sent(core: Core, node: int) -> None:
    """Let the router know of a request sent to a node."""
    note_routed(core.signals, core.nodes, node)
    core.nodes.work[node, ON_RADIO] += 1


@inlined
def _catch_up(core: Core, nearest_demand: Ints, behind: _Behind) -> _Behind:
    """Do what is left of the last request."""
    if behind.routed >= 0:
        _note_sent(core, behind.routed)
    if behind.nearest >= 0:
        nearest_demand[behind.nearest, behind.family] += 1
    return _UP_TO_DATE


@inlined
def _send(
    core: Core, node: int, time: float, radio_s: float, request_type: int, mark: float
) -> bool:
    """Send a request to a node; return whether the router is still to know of it."""
    records = core.records
    record = new_record(records)
    records.time[record, ARRIVAL_S] = time
    records.time[record, MARK] = mark
    records.info[record, STATUS] = IN_FLIGHT
    records.info[record, TYPE] = request_type
    records.info[record, NODE] = node
    records.info[record, COUNTED] = 0
    join = time + radio_s
    if join > time:
        prefetch(core.nodes.work, node, REPORTED)
        push_event(core.queue, join, LANDING, request_item(node, record))
        return True
    # It would be the next event anyway.
    _note_sent(core, node)
    end = join_node(core, node, record, time)
    if end >= 0.0:
        push_event(core.queue, end, SLOT_END, request_item(node, record))
    return False


@inlined
def _land(core: Core, item: int, now: float) -> None:
    """Let the landing that is the first event happen."""
    end = join_node(core, node_of(item), record_of(item), now)
    if end < 0.0:
        pop_event(core.queue)
    else:
        replace_event(core.queue, end, SLOT_END, item)


@inlined
def _leave(core: Core, item: int, now: float, until: float) -> None:
    """Let the slot end that is the first event happen."""
    node = node_of(item)
    end, following = end_slot(core, node, record_of(item), now, until)
    if following < 0:
        pop_event(core.queue)
    else:
        replace_event(core.queue, end, SLOT_END, request_item(node, following))


@kernel
def advance_one(lane: Lane, until: float) -> int:
    """Let one fleet live until a time, or until it needs something that kernels cannot give.

    Parameters
    ----------
    lane : Lane
        The fleet, changed in place.
    until : float
        Time in seconds, not before the fleet's clock; events at this very time happen.

    Returns
    -------
    int
        DONE: the clock stands at ``until`` and the window's counters are complete. NEEDS_BLOCK:
        load the next stream block and call again. NEEDS_RECORDS: make room for more requests and
        call again.
    """
    fleet = borrow(lane)
    core, area, requests, catalogue = fleet.core, fleet.area, fleet.requests, fleet.catalogue
    nodes, queue, window, scalars = core.nodes, core.queue, core.window, core.scalars
    if scalars[WINDOW_OPEN] == 0:
        open_window(window, nodes.work, area.num_nodes, fleet.nearest_demand, scalars)
    behind, near, far = _UP_TO_DATE, NO_WALK, NO_WALK
    ahead = area.num_nodes >= FETCHES_AHEAD_NODES
    position, loaded = scalars[NEXT_REQUEST], scalars[NUM_REQUESTS]
    while True:
        if position == loaded and requests.end_s[0] <= until:
            scalars[NEXT_REQUEST] = position
            _catch_up(core, fleet.nearest_demand, behind)
            return NEEDS_BLOCK
        next_request = requests.time_s[position] if position < loaded else np.inf
        if queue.soon.num[SIZE] == 0:
            turn_page(queue, min(next_request, until))
            if ahead:
                near, far = walks_ahead(queue.calendar)
        if ahead:
            if far.entry < far.end:
                fetch_own(queue.calendar, nodes, core.records, far.entry)
                far = next_entry(queue.calendar, far)
            if near.entry < near.end:
                fetch_others(queue.calendar, nodes, core.records, near.entry)
                near = next_entry(queue.calendar, near)
        next_event = queue.soon.time[0]
        if min(next_event, next_request) > until:
            break
        if next_request < next_event:
            if not has_room(core.records, 1):
                scalars[NEXT_REQUEST] = position
                _catch_up(core, fleet.nearest_demand, behind)
                return NEEDS_RECORDS
            if ahead:
                fetch_for_requests(area, requests, position, loaded)
            request_type = requests.type[position]
            family = core.types.family[request_type]
            x_km, y_km = requests.x_km[position], requests.y_km[position]
            while True:
                choice = choose_node(area, x_km, y_km, request_type)
                # The last request can only have made its own node worse.
                again = behind.routed >= 0 and choice.node == behind.routed
                behind = _catch_up(core, fleet.nearest_demand, behind)
                if not again:
                    break
            window.counters[ARRIVALS] += 1
            window.families[FAMILY_ARRIVALS, family] += 1
            if choice.node >= 0:
                prefetch(fleet.nearest_demand, choice.nearest, family)
                radio_s = area.radio_base_s + radio_beyond_base_s(
                    area.radio_xi, area.radio_alpha, choice.distance_squared_km2
                )
                mark = requests.mark[position]
                waits = _send(core, choice.node, next_request, radio_s, request_type, mark)
                behind = _Behind(choice.node if waits else -1, choice.nearest, family)
            else:
                window.counters[REJECTED] += 1
                window.counters[DECIDED] += 1
                window.families[FAMILY_DECIDED, family] += 1
            position += 1
            continue
        kind, item = kind_of(queue.soon.order[0]), queue.soon.item[0]
        if kind not in (LANDING, SLOT_END) or node_of(item) == behind.routed:
            behind = _catch_up(core, fleet.nearest_demand, behind)
        if kind == LANDING:
            _land(core, item, next_event)
        elif kind == SLOT_END:
            node = node_of(item)
            _leave(core, item, next_event, until)
            if nodes.work[node, DRAINING] and nodes.work[node, IN_SLOTS] <= nodes.work[node, SLOTS]:
                begin_transfer(fleet.transfers, nodes.work, queue, node, next_event)
        elif kind == FLOW_END:
            pop_event(queue)
            fleet.transfers.receiving[item] = False
            nodes.work[item, HOLDS] = catalogue.profile[item]
            refresh_node(catalogue, nodes, core.signals.backlog, item)
        elif kind == TELEMETRY:
            publish(core.signals, nodes, area.num_nodes, next_event)
            replace_event(queue, (item + 1) * core.signals.period_s, TELEMETRY, item + 1)
    scalars[NEXT_REQUEST] = position
    _catch_up(core, fleet.nearest_demand, behind)
    settle(core.types, core.records, window, nodes.work, until)
    for node in range(area.num_nodes):
        accrue_slots(nodes.work, node, until)
    fleet.now_s[0] = until
    scalars[WINDOW_OPEN] = 0
    return DONE
