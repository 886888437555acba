"""Sending requests to stations, once or again."""

import numpy as np

from edgegym.simulator.accounting import accrue_slots, release_record
from edgegym.simulator.columns import (
    ARRIVAL_S,
    ARRIVALS,
    COUNTED,
    FAMILY_ARRIVALS,
    FREE_RECORD,
    IN_FLIGHT,
    IN_SLOTS,
    JOIN_S,
    MARK,
    NEXT,
    NODE,
    NUM_RECORDS,
    ON_RADIO,
    REJECTED,
    SLOTS,
    STATUS,
    TYPE,
    USED_RECORDS,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.events import LANDING, push_event, request_item
from edgegym.simulator.full.columns import (
    FETCHED_BYTES,
    FIRST_REQUEST,
    FLOW,
    FORCED_REQUEST,
    FORCED_STATION,
    HIT_DEPTH,
    HIT_TOKENS,
    INPUT_TOKENS,
    NEAREST,
    NOBODY,
    OUTPUT_TOKENS,
    PREDICTED_S,
    REDISPATCHES,
    REQUEST,
    RESTORE_S,
    RUNNER_UP,
    RUNNER_UP_S,
    SERVER_WAIT_S,
    SPILLED,
    SPILLED_NODE,
    SPILLED_ORIGIN,
    STALL_S,
    TRANSFER_WAIT_S,
    X_KM,
    Y_KM,
)
from edgegym.simulator.full.counting import count_decision
from edgegym.simulator.full.counts import (
    ORIGIN_ARRIVALS,
    SPILLED_TO_NODE,
    SPILLED_TO_ORIGIN,
    count,
)
from edgegym.simulator.full.fetching import consider_fetch
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.log import log_rejected
from edgegym.simulator.full.routing import Decision, route, way_s
from edgegym.simulator.full.slots import append, take_slot
from edgegym.simulator.lane import Records
from edgegym.simulator.telemetry import note_routed

_MOST_DISPATCHES = 16
"""A request that is sent more often than this is rejected: nobody can serve it."""


@inlined
def has_room(records: Records, requests: int) -> bool:
    """Return whether there is room for so many more requests."""
    scalars = records.scalars
    if requests <= 1 and scalars[FREE_RECORD] >= 0:
        return True
    return scalars[USED_RECORDS] + requests <= scalars[NUM_RECORDS]


@inlined
def new_record(records: Records) -> int:
    """Take a free record."""
    record = records.scalars[FREE_RECORD]
    if record >= 0:
        records.scalars[FREE_RECORD] = records.info[record, NEXT]
        return record
    record = records.scalars[USED_RECORDS]
    records.scalars[USED_RECORDS] = record + 1
    return record


@helper
def admit(fleet: FullLane, position: int, time: float) -> int:
    """Write the record of the request at a position of the loaded block; return it."""
    core, desk, requests = fleet.core, fleet.desk, fleet.requests
    record = new_record(core.records)
    info, num, real = core.records.info, desk.tasks.num, desk.tasks.real
    core.records.time[record, ARRIVAL_S] = time
    core.records.time[record, MARK] = requests.mark[position]
    info[record, TYPE] = requests.type[position]
    info[record, COUNTED] = 0
    num[record, REQUEST] = fleet.scalars[FIRST_REQUEST] + position
    num[record, INPUT_TOKENS] = fleet.lengths.input_tokens[position]
    num[record, OUTPUT_TOKENS] = fleet.lengths.output_tokens[position]
    num[record, REDISPATCHES] = 0
    real[record, X_KM] = requests.x_km[position]
    real[record, Y_KM] = requests.y_km[position]
    core.window.counters[ARRIVALS] += 1
    core.window.families[FAMILY_ARRIVALS, core.types.family[requests.type[position]]] += 1
    return record


@helper
def _forget_service(fleet: FullLane, record: int) -> None:
    """Begin a request's service from nothing."""
    num, real = fleet.desk.tasks.num, fleet.desk.tasks.real
    num[record, HIT_TOKENS] = -1
    num[record, HIT_DEPTH] = 0
    num[record, FLOW] = -1
    num[record, FETCHED_BYTES] = 0
    real[record, STALL_S] = 0.0
    real[record, RESTORE_S] = 0.0
    real[record, SERVER_WAIT_S] = 0.0
    real[record, TRANSFER_WAIT_S] = 0.0


@helper
def reject(fleet: FullLane, record: int) -> None:
    """Let a request go unserved."""
    core, desk = fleet.core, fleet.desk
    core.window.counters[REJECTED] += 1
    count_decision(desk, record, False)
    tasks = desk.tasks
    log_rejected(desk.log, core.records.time, core.records.info, tasks.real, tasks.num, record)
    release_record(core.records, record)


@helper
def _decide(fleet: FullLane, record: int, now: float) -> Decision:
    """Route a request, unless its station is given."""
    num = fleet.desk.tasks.num
    decision = route(fleet, record, now)
    if num[record, REQUEST] != fleet.scalars[FORCED_REQUEST] or num[record, REDISPATCHES] > 0:
        return decision
    return Decision(
        fleet.scalars[FORCED_STATION],
        decision.nearest,
        decision.predicted_s,
        decision.runner_up,
        decision.runner_up_s,
        0,
    )


@helper
def dispatch(fleet: FullLane, record: int, now: float) -> None:
    """Send a request on its way to a station."""
    core, desk = fleet.core, fleet.desk
    num, real = desk.tasks.num, desk.tasks.real
    _forget_service(fleet, record)
    decision = _decide(fleet, record, now)
    num[record, NEAREST] = decision.nearest
    num[record, RUNNER_UP] = decision.runner_up
    num[record, SPILLED] = decision.spilled
    real[record, PREDICTED_S] = decision.predicted_s
    real[record, RUNNER_UP_S] = decision.runner_up_s
    station = decision.node
    if station == NOBODY or num[record, REDISPATCHES] > _MOST_DISPATCHES:
        reject(fleet, record)
        return
    core.records.info[record, STATUS] = IN_FLIGHT
    core.records.info[record, NODE] = station
    note_routed(core.signals, core.nodes, station)
    core.nodes.work[station, ON_RADIO] += 1
    if decision.spilled == SPILLED_NODE:
        count(desk.counts, SPILLED_TO_NODE, 1)
    elif decision.spilled == SPILLED_ORIGIN:
        count(desk.counts, SPILLED_TO_ORIGIN, 1)
    if station == desk.origin:
        count(desk.counts, ORIGIN_ARRIVALS, 1)
    join = now + way_s(fleet, record, station)
    if join > now:
        push_event(core.queue, join, LANDING, request_item(station, record))
    else:
        # It would be the next event anyway.
        land(fleet, station, record, now)


@helper
def land(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request reach its station."""
    core = fleet.core
    work = core.nodes.work
    work[station, ON_RADIO] -= 1
    core.records.time[record, JOIN_S] = now
    consider_fetch(fleet, station, record, now)
    if work[station, IN_SLOTS] >= work[station, SLOTS]:
        append(core.nodes, core.records, station, record)
        return
    accrue_slots(work, station, now)
    work[station, IN_SLOTS] += 1
    take_slot(fleet, station, record, now)


@helper
def send_again(fleet: FullLane, record: int, now: float) -> None:
    """Send a request whose station failed, its clock running."""
    fleet.desk.tasks.num[record, REDISPATCHES] += 1
    dispatch(fleet, record, now)
