"""Queues and slots of a station, and what a request does in its slot."""

from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.columns import (
    ACTIVE,
    COMPLETED,
    COUNTED,
    FIRST_TOKEN_COUNTED,
    FIRST_TOKEN_S,
    HEAD,
    HOLDING,
    HOLDS,
    IN_SLOTS,
    JOIN_S,
    MARK,
    NEXT,
    QUEUED,
    SLOT_FREED,
    SLOTS,
    START_S,
    STATUS,
    TAIL,
    TYPE,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.events import READY, SLOT_END, push_event, request_item
from edgegym.simulator.full.columns import (
    END_S,
    FLOW,
    HIT_DEPTH,
    HIT_TOKENS,
    INPUT_TOKENS,
    LOCAL_HIT_TOKENS,
    OUTPUT_TOKENS,
    PREFILL_S,
    READY_S,
    RESTORE_S,
    RESTORING,
    SERVER_WAIT_S,
    STALL_S,
    STALLED,
)
from edgegym.simulator.full.counting import close_request, count_first_token
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.service import local_hit, prefill_seconds, slot_seconds
from edgegym.simulator.lane import Nodes, Records
from edgegym.simulator.telemetry import note_left, note_wait


@inlined
def append(nodes: Nodes, records: Records, station: int, record: int) -> None:
    """Put a request at the end of a queue."""
    records.info[record, STATUS] = QUEUED
    records.info[record, NEXT] = -1
    if nodes.work[station, WAITING] == 0:
        nodes.work[station, HEAD] = record
    else:
        records.info[nodes.work[station, TAIL], NEXT] = record
    nodes.work[station, TAIL] = record
    nodes.work[station, WAITING] += 1


@inlined
def take_first(nodes: Nodes, records: Records, station: int) -> int:
    """Take the first request out of a queue that is not empty."""
    record = nodes.work[station, HEAD]
    nodes.work[station, HEAD] = records.info[record, NEXT]
    nodes.work[station, WAITING] -= 1
    return record


@helper
def take_slot(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Give a request the slot that the caller has counted as taken."""
    core, desk = fleet.core, fleet.desk
    info, times, num = core.records.info, core.records.time, desk.tasks.num
    times[record, START_S] = now
    info[record, HOLDING] = core.nodes.work[station, HOLDS]
    hit, depth = local_hit(fleet, station, record)
    num[record, LOCAL_HIT_TOKENS] = hit
    note_wait(core.signals, core.nodes, station, now, now - times[record, JOIN_S])
    if num[record, FLOW] >= 0:
        info[record, STATUS] = STALLED
        times[record, FIRST_TOKEN_S] = np.inf
        return
    if hit >= num[record, HIT_TOKENS]:
        # Nothing was fetched, or the node has meanwhile got as much itself.
        num[record, HIT_TOKENS], num[record, HIT_DEPTH] = hit, depth
        desk.tasks.real[record, RESTORE_S] = 0.0
    begin_service(fleet, station, record, now)


@helper
def begin_service(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request in its slot go on once its state is there."""
    core, tasks = fleet.core, fleet.desk.tasks
    info, times = core.records.info, core.records.time
    request_type = info[record, TYPE]
    restore_s = tasks.real[record, RESTORE_S]
    ready = now + restore_s
    prefill_s = prefill_seconds(
        fleet.desk.coefficients,
        fleet.desk.station_class[station],
        float(tasks.num[record, INPUT_TOKENS]),
        float(tasks.num[record, HIT_TOKENS]),
    )
    tasks.real[record, STALL_S] = now - times[record, START_S]
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
    info[record, STATUS] = ACTIVE
    times[record, FIRST_TOKEN_S] = ready + prefill_s
    end = ready + slot_seconds(fleet, station, record, request_type, prefill_s)
    tasks.real[record, END_S] = end
    push_event(core.queue, end, SLOT_END, request_item(station, record))


@helper
def leave_slot(fleet: FullLane, station: int, record: int, now: float, until: float) -> None:
    """Let a request leave its slot in an advance to ``until``, and the next in the queue take it.

    A request whose first token comes later than that keeps its record until then.
    """
    core, desk = fleet.core, fleet.desk
    info, work = core.records.info, core.nodes.work
    core.window.counters[COMPLETED] += 1
    desk.tasks.real[record, END_S] = now
    if core.records.time[record, FIRST_TOKEN_S] > until:
        info[record, STATUS] = SLOT_FREED
    else:
        if not info[record, COUNTED] & FIRST_TOKEN_COUNTED:
            count_first_token(desk, record)
        close_request(desk, record)
    note_left(core.signals, core.nodes, station)
    if work[station, WAITING] > 0 and work[station, IN_SLOTS] <= work[station, SLOTS]:
        take_slot(fleet, station, take_first(core.nodes, core.records, station), now)
        return
    accrue_slots(work, station, now)
    work[station, IN_SLOTS] -= 1


@helper
def fill_slots(fleet: FullLane, station: int, now: float) -> None:
    """Start queued requests while slots are free."""
    core = fleet.core
    work = core.nodes.work
    accrue_slots(work, station, now)
    while work[station, WAITING] > 0 and work[station, IN_SLOTS] < work[station, SLOTS]:
        record = take_first(core.nodes, core.records, station)
        work[station, IN_SLOTS] += 1
        take_slot(fleet, station, record, now)
