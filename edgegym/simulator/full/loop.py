"""The event loop of the full simulator."""

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots, has_room, release_record
from edgegym.simulator.columns import (
    DRAINING,
    IN_SLOTS,
    NEXT_REQUEST,
    NOTED_FAMILY,
    NOTED_NODE,
    NUM_REQUESTS,
    SIZE,
    SLOTS,
    STATUS,
    USED_RECORDS,
    WINDOW_OPEN,
)
from edgegym.simulator.compiling import helper, inlined, lend, prefetch
from edgegym.simulator.events import (
    CATALOGUE,
    EXPIRY,
    FAULT,
    FLOW_END,
    LANDING,
    NO_WALK,
    READY,
    SLOT_END,
    TELEMETRY,
    concerns_request,
    fetch_others,
    fetch_own,
    kind_of,
    neighbour_of,
    next_entry,
    node_of,
    pop_event,
    push_event,
    record_of,
    turn_page,
    walks_ahead,
)
from edgegym.simulator.full.carrying import (
    change_profile,
    end_flow,
    expire,
    let_flow,
    note_progress,
)
from edgegym.simulator.full.columns import (
    ASKS,
    FIRST_REQUEST,
    FORCED_FETCH,
    FORCED_REQUEST,
    FORCED_STATION,
    LOST,
    TURNED_AWAY,
)
from edgegym.simulator.full.counting import (
    count_link,
    count_origin,
    expect,
    expect_all,
    settle,
    settle_due,
)
from edgegym.simulator.full.counts import open_counts
from edgegym.simulator.full.engine import FINISHED, FIRST_TOKEN, engine_accrue, engine_fire
from edgegym.simulator.full.faults import requests_at_risk, strike
from edgegym.simulator.full.flows import has_flow_room
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import next_flow_end_s
from edgegym.simulator.full.log import has_log_room
from edgegym.simulator.full.lru import lru_has_room
from edgegym.simulator.full.opening import begin
from edgegym.simulator.full.restoring import take_first_token
from edgegym.simulator.full.routing import publish_tokens
from edgegym.simulator.full.sending import admit, dispatch, land, send_again
from edgegym.simulator.full.slots import become_ready, leave_slot
from edgegym.simulator.full.stations import publish_catalogue
from edgegym.simulator.full.timers import first_station, first_time
from edgegym.simulator.search import FETCHES_AHEAD_NODES, fetch_for_requests
from edgegym.simulator.step import DONE, NEEDS_BLOCK, NEEDS_RECORDS, open_window
from edgegym.simulator.telemetry import publish

NEEDS_FLUSH = 3
NEEDS_FLOWS = 4
NEEDS_LEAVES = 5
NEEDS_ANSWER = 6
RULE_HAS_FAILED = 7

# Tasks.
BEGIN = 0
CHANGE_PROFILE = 1
ADVANCE = 2
ANSWER = 3
CLOSE_WINDOW = 4
BEGIN_ASKING = 5


@helper
def _take_request(fleet: FullLane, position: int, time: float) -> None:
    """Let the request at a position of the loaded block be made."""
    record = admit(fleet, position, time)
    family = fleet.core.types.family[fleet.requests.type[position]]
    nearest = dispatch(fleet, record, time)
    if fleet.scalars[ASKS]:
        expect(fleet.desk, record)
    _count_nearest(fleet)
    # Counted one request late, when its memory has come.
    fleet.core.scalars[NOTED_NODE] = nearest
    fleet.core.scalars[NOTED_FAMILY] = family
    if nearest >= 0:
        prefetch(fleet.nearest_demand, nearest, family)


@inlined
def _count_nearest(fleet: FullLane) -> None:
    """Count the nearest node of the last request, if that is still to be done."""
    scalars = fleet.core.scalars
    if scalars[NOTED_NODE] >= 0:
        fleet.nearest_demand[scalars[NOTED_NODE], scalars[NOTED_FAMILY]] += 1
        scalars[NOTED_NODE] = -1


@helper
def _happen(fleet: FullLane, kind: int, item: int, now: float, until: float) -> None:
    """Let an event happen that has just been taken off the queue."""
    core = fleet.core
    if kind in (LANDING, SLOT_END, READY):
        _happen_to_request(fleet, kind, node_of(item), record_of(item), now, until)
    elif kind == FAULT:
        strike(fleet, item, now)
    elif kind == EXPIRY:
        expire(fleet, item, now)
    elif kind == TELEMETRY:
        publish(core.signals, core.nodes, fleet.desk.stations, now)
        publish_tokens(fleet.routing, fleet.desk.stations)
        push_event(core.queue, (item + 1) * core.signals.period_s, TELEMETRY, item + 1)
    elif kind == CATALOGUE:
        publish_catalogue(fleet)
        push_event(core.queue, (item + 1) * fleet.life.catalogue_s, CATALOGUE, item + 1)


@helper
def _happen_to_request(
    fleet: FullLane, kind: int, station: int, record: int, now: float, until: float
) -> None:
    records = fleet.core.records
    status = records.info[record, STATUS]
    if status == LOST:
        release_record(records, record)
    elif status == TURNED_AWAY:
        send_again(fleet, record, now)
    elif kind == LANDING:
        land(fleet, station, record, now)
    elif kind == READY:
        become_ready(fleet, station, record, now)
    else:
        leave_slot(fleet, station, record, now, until)
        _flow_when_drained(fleet, station, now)


@inlined
def _flow_when_drained(fleet: FullLane, station: int, now: float) -> None:
    """Let the bytes of a move flow if the node has drained enough."""
    work = fleet.core.nodes.work
    if work[station, DRAINING] and work[station, IN_SLOTS] <= work[station, SLOTS]:
        let_flow(fleet, station, now)


@helper
def _turn_engine(fleet: FullLane, station: int, now: float, until: float) -> None:
    """Let happen what is due at a station's engine."""
    while True:
        event, record = engine_fire(fleet.engine_params, fleet.engine, fleet.timers, station, now)
        if event == FIRST_TOKEN:
            take_first_token(fleet, station, record, now)
        elif event == FINISHED:
            leave_slot(fleet, station, record, now, until)
            _flow_when_drained(fleet, station, now)
        else:
            break


@helper
def _open_window(fleet: FullLane) -> None:
    core = fleet.core
    if core.scalars[WINDOW_OPEN] == 0:
        open_window(
            core.window, core.nodes.work, fleet.desk.stations, fleet.nearest_demand, core.scalars
        )
        open_counts(fleet.desk.counts)


@helper
def _close_window(fleet: FullLane, until: float) -> None:
    core = fleet.core
    _count_nearest(fleet)
    settle(fleet.desk, until)
    count_link(fleet.desk.counts, fleet.link, until)
    for station in range(fleet.desk.stations):
        accrue_slots(core.nodes.work, station, until)
        if fleet.life.has_engine:
            engine_accrue(fleet.engine, core.nodes.work, station, until)
    count_origin(fleet.desk)
    note_progress(fleet, until)
    fleet.now_s[0] = until
    core.scalars[WINDOW_OPEN] = 0


@helper
def _missing_room(fleet: FullLane, kind: int, item: int) -> int:
    """Return what an event needs more room for before it happens, DONE if nothing."""
    requests, flows = 1, 1
    if kind == FAULT:
        requests = requests_at_risk(fleet, item)
        flows += requests
    elif kind == EXPIRY:
        flows += fleet.area.num_nodes
    if not has_room(fleet.core.records, requests):
        return NEEDS_RECORDS
    if not has_flow_room(fleet.link, flows):
        return NEEDS_FLOWS
    # All sequences of a station may end at once.
    if fleet.life.lru and not lru_has_room(fleet.lru, fleet.life.most_active):
        return NEEDS_LEAVES
    if not has_log_room(fleet.desk.log, fleet.core.scalars[USED_RECORDS] + 1):
        return NEEDS_FLUSH
    return DONE


@inlined
def _fetch_own(fleet: FullLane, entry: int) -> None:
    """Ask for the node, the record and the task of an event to come."""
    core, calendar, tasks = fleet.core, fleet.core.queue.calendar, fleet.desk.tasks
    fetch_own(calendar, core.nodes, core.records, entry)
    if concerns_request(calendar.entries[entry, 1]):
        record = record_of(calendar.entries[entry, 2])
        prefetch(tasks.num, record, 0)
        prefetch(tasks.real, record, 0)


@inlined
def _fetch_others(fleet: FullLane, entry: int) -> None:
    """Ask for what else an event to come will touch."""
    core, calendar, tasks = fleet.core, fleet.core.queue.calendar, fleet.desk.tasks
    fetch_others(calendar, core.nodes, core.records, entry)
    neighbour = neighbour_of(calendar, core.nodes, entry)
    if neighbour >= 0 and kind_of(calendar.entries[entry, 1]) == SLOT_END:
        prefetch(tasks.num, neighbour, 0)
        prefetch(tasks.real, neighbour, 0)


@helper
def _advance(fleet: FullLane, until: float) -> int:
    """Let one fleet live until a time, or until it needs something that kernels cannot give."""
    core, requests, queue = fleet.core, fleet.requests, fleet.core.queue
    scalars, ahead = core.scalars, fleet.area.num_nodes >= FETCHES_AHEAD_NODES
    _open_window(fleet)
    near, far = NO_WALK, NO_WALK
    horizon = until
    rule_failed = fleet.routing.state.failed_count
    while True:
        if rule_failed[0] > 0:
            return RULE_HAS_FAILED
        position, loaded = scalars[NEXT_REQUEST], scalars[NUM_REQUESTS]
        if position == loaded and requests.end_s[0] <= until:
            return NEEDS_BLOCK
        next_request = requests.time_s[position] if position < loaded else np.inf
        if fleet.scalars[ASKS]:
            # It stops there, and nothing later is counted before.
            horizon = min(until, next_request)
        if queue.soon.num[SIZE] == 0:
            turn_page(queue, min(next_request, until))
            if ahead:
                near, far = walks_ahead(queue.calendar)
        if far.entry < far.end:
            _fetch_own(fleet, far.entry)
            far = next_entry(queue.calendar, far)
        if near.entry < near.end:
            _fetch_others(fleet, near.entry)
            near = next_entry(queue.calendar, near)
        next_event = queue.soon.time[0]
        next_timer, next_flow = first_time(fleet.timers), next_flow_end_s(fleet.link)
        if min(min(next_event, next_request), min(next_timer, next_flow)) > until:
            break
        kind = kind_of(queue.soon.order[0])
        missing = _missing_room(fleet, kind, queue.soon.item[0])
        if missing != DONE:
            return missing
        if next_timer <= min(min(next_event, next_request), next_flow):
            _turn_engine(fleet, first_station(fleet.timers), next_timer, horizon)
        elif next_flow <= next_request and (
            next_flow < next_event or (next_flow == next_event and kind >= FLOW_END)
        ):
            end_flow(fleet, next_flow)
        elif next_request < next_event:
            number = fleet.scalars[FIRST_REQUEST] + position
            if fleet.scalars[ASKS] and fleet.scalars[FORCED_REQUEST] != number:
                settle_due(fleet.desk, next_request)
                fleet.now_s[0] = next_request
                return NEEDS_ANSWER
            scalars[NEXT_REQUEST] = position + 1
            if ahead:
                fetch_for_requests(fleet.area, requests, position, loaded)
            _take_request(fleet, position, next_request)
        else:
            item = queue.soon.item[0]
            pop_event(queue)
            _happen(fleet, kind, item, next_event, horizon)
    if not has_log_room(fleet.desk.log, scalars[USED_RECORDS]):
        return NEEDS_FLUSH
    _close_window(fleet, until)
    return DONE


@kernel
def serve(
    lane: FullLane, task: int, until: float, node: int, profile: int, kept: int, missing_bytes: int
) -> int:
    """Do something with one fleet: one kernel for all, since what they call is much the same.

    Parameters
    ----------
    lane : FullLane
        The fleet, changed in place.
    task : int
        BEGIN: schedule what comes by itself, in a fleet that has its nodes and has not begun.
        CHANGE_PROFILE: give a node another profile. ADVANCE: let the fleet live. ANSWER: the same
        from the request at which it has stopped to ask. CLOSE_WINDOW: complete the counters there.
        BEGIN_ASKING: stop at each new request from now on.
    until : float
        Of ADVANCE and ANSWER: time in seconds, not before the fleet's clock; events at this very
        time happen.
        Of CLOSE_WINDOW: the fleet's clock.
    node, profile : int
        Of CHANGE_PROFILE: a legal move. Of ANSWER: where the request goes, as FORCED_STATION of
        the columns, and its FETCH_ORDER.
    kept : int
        Of CHANGE_PROFILE: holding that the two profiles share.
    missing_bytes : int
        Of CHANGE_PROFILE: bytes that only the new profile has.

    Returns
    -------
    int
        DONE: the clock stands at ``until`` and the window's counters are complete, or the other
        task is done. NEEDS_BLOCK: load the next stream block and call again. NEEDS_RECORDS: make
        room for more requests and call again. NEEDS_FLUSH: take the rows of the log and call
        again. NEEDS_FLOWS, NEEDS_LEAVES: make room for flows, for leaves of radix caches, and call
        again. NEEDS_ANSWER: the clock stands at a request that is next to be routed; say where it
        goes and call again. RULE_HAS_FAILED: a user's routing rule raised an exception; the fleet
        stands where that happened and can't go on.
    """
    fleet = lend(lane)
    if task == BEGIN:
        begin(fleet)
        return DONE
    if task == CHANGE_PROFILE:
        change_profile(fleet, node, profile, kept, missing_bytes)
        return DONE
    if task == CLOSE_WINDOW:
        _open_window(fleet)
        _close_window(fleet, until)
        return DONE
    if task == BEGIN_ASKING:
        fleet.scalars[ASKS] = 1
        expect_all(fleet.desk)
        return DONE
    if task == ANSWER:
        scalars = fleet.scalars
        scalars[FORCED_REQUEST] = scalars[FIRST_REQUEST] + fleet.core.scalars[NEXT_REQUEST]
        scalars[FORCED_STATION] = node
        scalars[FORCED_FETCH] = profile
    return _advance(fleet, until)
