"""Queues and slots of a station, and what a request does in its slot."""

import numpy as np

from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.columns import (
    ACTIVE,
    ARRIVAL_S,
    COMPLETED,
    COUNTED,
    FIRST_TOKEN_COUNTED,
    FIRST_TOKEN_S,
    HOLDING,
    HOLDS,
    IN_SLOTS,
    JOIN_S,
    NODE_CLASS,
    SLOT_FREED,
    SLOTS,
    START_S,
    STATUS,
    TYPE,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.events import LANDING, READY, SLOT_END, push_event, request_item
from edgegym.simulator.full.admission import note_requests
from edgegym.simulator.full.columns import (
    ASKS,
    END_S,
    FETCHED_BYTES,
    FLOW,
    HIT_DEPTH,
    HIT_TOKENS,
    INPUT_TOKENS,
    KEPT_DEPTH,
    LOCAL_HIT_TOKENS,
    OUTPUT_TOKENS,
    PREDICTED_S,
    PREFILL_S,
    PREFILLING,
    READY_S,
    RESTORE_S,
    RESTORING,
    STALL_S,
    STALLED,
    TURNED_AWAY,
)
from edgegym.simulator.full.counting import close_request, count_first_token, expect
from edgegym.simulator.full.fetch import exposed_stall_s
from edgegym.simulator.full.holding import local_hit, slot_seconds
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.lru import lru_pin
from edgegym.simulator.full.margin import note_error
from edgegym.simulator.full.restoring import (
    begin_restoring,
    drop_fetch,
    end_restoring,
    enter_engine,
    keep_computed,
    leave_cache,
)
from edgegym.simulator.full.routing import note_left as note_left_tokens
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.nodes import append, take_first
from edgegym.simulator.telemetry import note_left, note_wait


@helper
def take_slot(fleet: FullLane, station: int, record: int, now: float) -> bool:
    """Give a request the slot that the caller has counted as taken.

    Returns whether it can stay: not where its station lacks what it can't do without.
    """
    core, num = fleet.core, fleet.desk.tasks.num
    info, times = core.records.info, core.records.time
    hit, depth = local_hit(fleet, station, record)
    if hit < 0:
        return False
    times[record, START_S] = now
    info[record, HOLDING] = core.nodes.work[station, HOLDS]
    note_wait(core.signals, core.nodes, station, now, now - times[record, JOIN_S])
    if hit < num[record, LOCAL_HIT_TOKENS]:
        # What was fetched continues what the node has given up since: it is of no use.
        drop_fetch(fleet, record, now)
        num[record, HIT_TOKENS] = hit
    num[record, LOCAL_HIT_TOKENS] = hit
    if num[record, FLOW] >= 0:
        info[record, STATUS] = STALLED
        times[record, FIRST_TOKEN_S] = np.inf
        return True
    if hit >= num[record, HIT_TOKENS]:
        # Nothing was fetched, or the node has meanwhile got as much itself.
        num[record, HIT_TOKENS], num[record, HIT_DEPTH] = hit, depth
        fleet.desk.tasks.real[record, RESTORE_S] = 0.0
    if fleet.life.lru and station != fleet.desk.origin:
        lru_pin(fleet.lru_params, fleet.lru, station, info[record, TYPE], depth)
        num[record, KEPT_DEPTH] = depth
    begin_service(fleet, station, record, now)
    return True


@helper
def begin_service(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request in its slot go on once its state is there."""
    core, tasks = fleet.core, fleet.desk.tasks
    info, times = core.records.info, core.records.time
    restore_s = tasks.real[record, RESTORE_S]
    prefill_s = prefill_seconds(
        fleet.desk.coefficients,
        core.nodes.work[station, NODE_CLASS],
        float(tasks.num[record, INPUT_TOKENS]),
        float(tasks.num[record, HIT_TOKENS]),
    )
    stall_s, ready = now - times[record, START_S], now + restore_s
    layers = fleet.link_params.layers
    if layers > 1 and tasks.num[record, FETCHED_BYTES] > 0:
        begin, start, busy_s = times[record, JOIN_S], times[record, START_S], restore_s + prefill_s
        stall_s = exposed_stall_s(layers, begin, now, start, busy_s)
        ready = start + stall_s + restore_s
    tasks.real[record, STALL_S] = stall_s
    tasks.real[record, PREFILL_S] = prefill_s
    tasks.real[record, READY_S] = ready
    if fleet.life.has_engine and station != fleet.desk.origin:
        times[record, FIRST_TOKEN_S] = np.inf
        info[record, STATUS] = RESTORING
        if restore_s > 0.0:
            begin_restoring(fleet, station, now)
            push_event(core.queue, ready, READY, request_item(station, record))
        else:
            enter_engine(fleet, station, record, now)
        return
    first = ready + prefill_s
    # With layers, prefill may have begun before now.
    end = max(now, ready + slot_seconds(fleet, station, record, prefill_s))
    times[record, FIRST_TOKEN_S] = first
    tasks.real[record, END_S] = end
    info[record, STATUS] = ACTIVE
    if fleet.life.lru and first < end:
        # Its station's radix cache gets what it computes with its first token.
        info[record, STATUS] = PREFILLING
        push_event(core.queue, first, READY, request_item(station, record))
    else:
        push_event(core.queue, end, SLOT_END, request_item(station, record))
        if fleet.scalars[ASKS]:
            expect(fleet.desk, record)


@helper
def become_ready(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request be restored, or get the first token that a radix cache waits for."""
    if fleet.core.records.info[record, STATUS] == PREFILLING:
        fleet.core.records.info[record, STATUS] = ACTIVE
        keep_computed(fleet, station, record)
        end = fleet.desk.tasks.real[record, END_S]
        push_event(fleet.core.queue, end, SLOT_END, request_item(station, record))
        if fleet.scalars[ASKS]:
            expect(fleet.desk, record)
    else:
        end_restoring(fleet, station, record, now)


@helper
def end_service(fleet: FullLane, station: int, record: int, now: float, until: float) -> None:
    """Let a request leave its slot in an advance to ``until``.

    A request whose first token comes later than that keeps its record until then.
    """
    core, desk = fleet.core, fleet.desk
    info, num = core.records.info, desk.tasks.num
    core.window.counters[COMPLETED] += 1
    desk.tasks.real[record, END_S] = now
    if core.records.time[record, FIRST_TOKEN_S] >= now:
        keep_computed(fleet, station, record)
    leave_cache(fleet, station, record)
    note_left_tokens(fleet.routing, station, num[record, INPUT_TOKENS] + num[record, OUTPUT_TOKENS])
    first = core.records.time[record, FIRST_TOKEN_S]
    if not fleet.life.has_engine or station == desk.origin:
        error_s = (
            first - core.records.time[record, ARRIVAL_S] - desk.tasks.real[record, PREDICTED_S]
        )
        note_error(fleet.routing, station, error_s, now)
    if first > until:
        info[record, STATUS] = SLOT_FREED
    else:
        if not info[record, COUNTED] & FIRST_TOKEN_COUNTED:
            count_first_token(desk, record)
        close_request(desk, record)
    note_left(core.signals, core.nodes, station)


@inlined
def turn_away(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request be sent on that its station can't take."""
    tokens = (
        fleet.desk.tasks.num[record, INPUT_TOKENS] + fleet.desk.tasks.num[record, OUTPUT_TOKENS]
    )
    note_left_tokens(fleet.routing, station, tokens)
    fleet.core.records.info[record, STATUS] = TURNED_AWAY
    note_left(fleet.core.signals, fleet.core.nodes, station)
    push_event(fleet.core.queue, now, LANDING, request_item(station, record))


@helper
def fill_slots(fleet: FullLane, station: int, now: float) -> None:
    """Start queued requests while slots are free."""
    core = fleet.core
    work = core.nodes.work
    accrue_slots(work, station, now)
    while work[station, WAITING] > 0 and work[station, IN_SLOTS] < work[station, SLOTS]:
        record = take_first(core.nodes, core.records, station)
        work[station, IN_SLOTS] += 1
        if not take_slot(fleet, station, record, now):
            work[station, IN_SLOTS] -= 1
            turn_away(fleet, station, record, now)


@helper
def leave_slot(fleet: FullLane, station: int, record: int, now: float, until: float) -> None:
    """Let a request leave its slot, and the first in the queue take it."""
    end_service(fleet, station, record, now, until)
    accrue_slots(fleet.core.nodes.work, station, now)
    fleet.core.nodes.work[station, IN_SLOTS] -= 1
    fill_slots(fleet, station, now)
    note_requests(fleet.routing, station, now)


@helper
def queue_up(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request wait for a slot, or take one that is free."""
    core = fleet.core
    work = core.nodes.work
    if work[station, IN_SLOTS] >= work[station, SLOTS]:
        append(core.nodes, core.records, station, record)
    else:
        accrue_slots(work, station, now)
        work[station, IN_SLOTS] += 1
        if not take_slot(fleet, station, record, now):
            work[station, IN_SLOTS] -= 1
            turn_away(fleet, station, record, now)
    note_requests(fleet.routing, station, now)
