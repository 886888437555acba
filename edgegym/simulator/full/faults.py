"""Failures and recoveries of nodes, of the origin, and of the backhaul.

What fails is a *component*: nodes 0 … N − 1, the origin N, the link N + 1. A component is down while
there is a cause: a random failure, or an outage of the scenario. Random up and down times are
exponential, the k-th of a component a function of the seed, the component and k alone.

Requests at a failed station that have not had their first token are sent again at once, their clock
running; those that have are interrupted. A node comes back empty.
"""

import math

import numpy as np

from edgegym.simulator.accounting import accrue_slots, release_record
from edgegym.simulator.columns import (
    ACTIVE,
    ARRIVAL_S,
    COUNTED,
    DRAINING,
    FIRST_TOKEN_COUNTED,
    FIRST_TOKEN_S,
    FREE,
    HOLDS,
    IN_FLIGHT,
    IN_SLOTS,
    NODE,
    ON_RADIO,
    PLACE,
    QUEUED,
    REPORTED,
    SITE_X_KM,
    SLOT_FREED,
    STATUS,
    USED_RECORDS,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.events import FAULT, push_event
from edgegym.simulator.full.columns import (
    DOWN,
    FAULTS_KEY,
    IN_ENGINE,
    LOST,
    NO_FETCH,
    RESTORING,
    STALLED,
    TOGGLES,
)
from edgegym.simulator.full.counting import close_request, count_first_token
from edgegym.simulator.full.counts import FAILURES, INTERRUPTED, REDISPATCHED, count
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.moving import receive, refresh_node
from edgegym.simulator.full.random import uniform_of
from edgegym.simulator.full.sending import send_again

# Kinds of components: rows of FaultParams.
NODES = 0
ORIGIN = 1
LINK = 2

# Codes in the upper part of an event's item.
TOGGLE = 0  # a random failure or recovery
OUTAGE_BEGINS = 1
OUTAGE_ENDS = 2
CODE_SHIFT = 32
COMPONENT_MASK = (1 << CODE_SHIFT) - 1

_INTERRUPTED_OUTCOME = 1


@inlined
def component_kind(fleet: FullLane, component: int) -> int:
    """Return which row of the parameters a component has."""
    return max(component - fleet.life.num_nodes + 1, NODES)


@helper
def next_toggle_s(fleet: FullLane, component: int) -> float:
    """Return how long a component stays as it is until its next random failure or recovery."""
    kind, params = component_kind(fleet, component), fleet.fault_params
    toggles = fleet.faults.num[component, TOGGLES]
    mean_s = params.mean_up_s[kind] if toggles % 2 == 0 else params.mean_down_s[kind]
    # uniform_of gives less than 1, so the logarithm is finite.
    return -mean_s * math.log1p(-uniform_of(fleet.scalars[FAULTS_KEY], component, toggles))


@helper
def requests_at_risk(fleet: FullLane, item: int) -> int:
    """Return how many requests a fault may send again."""
    component = item & COMPONENT_MASK
    if component > fleet.life.num_nodes:
        return 1
    work = fleet.core.nodes.work
    return work[component, IN_SLOTS] + work[component, WAITING] + work[component, ON_RADIO] + 1


@helper
def strike(fleet: FullLane, item: int, now: float) -> None:
    """Let something fail or recover."""
    component, code = item & COMPONENT_MASK, item >> CODE_SHIFT
    num = fleet.faults.num
    fails = code == OUTAGE_BEGINS
    if code == TOGGLE:
        fails = num[component, TOGGLES] % 2 == 0
        num[component, TOGGLES] += 1
        push_event(fleet.core.queue, now + next_toggle_s(fleet, component), FAULT, item)
    num[component, DOWN] += 1 if fails else -1
    if fails and num[component, DOWN] == 1:
        count(fleet.desk.counts, FAILURES, 1)
        if component > fleet.life.num_nodes:
            cut_link(fleet, now)
        else:
            _fail_station(fleet, component, now)
    elif not fails and num[component, DOWN] == 0:
        if component > fleet.life.num_nodes:
            mend_link(fleet, now)
        else:
            _recover_station(fleet, component, now)


@helper
def _fail_station(fleet: FullLane, station: int, now: float) -> None:
    """Empty a station and send its requests elsewhere, in the order in which they were made."""
    core, work = fleet.core, fleet.core.nodes.work
    accrue_slots(work, station, now)
    if station < fleet.life.num_nodes:
        fleet.catalogue.up[station] = False
        core.nodes.sites[work[station, PLACE], SITE_X_KM] = np.inf
        drop_state(fleet, station, now)
    drop_engine(fleet, station)
    work[station, IN_SLOTS] = 0
    work[station, WAITING] = 0
    work[station, ON_RADIO] = 0
    work[station, REPORTED] = 0
    if station < fleet.life.num_nodes:
        refresh_node(fleet.catalogue, core.nodes, core.signals.backlog, station)
    last = -1
    while True:
        record = _first_after(fleet, station, last)
        if record < 0:
            break
        last = fleet.desk.tasks.num[record, REQUEST]
        _lose(fleet, record, now)


@helper
def _first_after(fleet: FullLane, station: int, request: int) -> int:
    """Return the record of the first request at a station after another one, -1 without one."""
    info, num = fleet.core.records.info, fleet.desk.tasks.num
    found = -1
    for record in range(fleet.core.records.scalars[USED_RECORDS]):
        status = info[record, STATUS]
        # One that has left its slot needs its station no more.
        if status in (FREE, LOST, SLOT_FREED) or info[record, NODE] != station:
            continue
        number = num[record, REQUEST]
        if number > request and (found < 0 or number < num[found, REQUEST]):
            found = record
    return found


@helper
def _lose(fleet: FullLane, record: int, now: float) -> None:
    """Take a request off a failed station."""
    desk, records = fleet.desk, fleet.core.records
    status = records.info[record, STATUS]
    # Its event stays in the queue, and frees the record when it comes.
    awaited = status in (IN_FLIGHT, ACTIVE, RESTORING)
    if status in (ACTIVE, IN_ENGINE) and records.time[record, FIRST_TOKEN_S] <= now:
        if not records.info[record, COUNTED] & FIRST_TOKEN_COUNTED:
            count_first_token(desk, record)
        desk.tasks.real[record, END_S] = now
        count(desk.counts, INTERRUPTED, 1)
        log_end(desk, record, INTERRUPTED_OUTCOME)
        if not awaited:
            release_record(records, record)
    else:
        drop_fetch(fleet, record, now)
        again = record
        if awaited:
            again = _copy_request(fleet, record)
        count(desk.counts, REDISPATCHED, 1)
        send_again(fleet, again, now)
    if awaited:
        records.info[record, STATUS] = LOST


@helper
def _copy_request(fleet: FullLane, record: int) -> int:
    """Return a new record of the same request."""
    records, tasks = fleet.core.records, fleet.desk.tasks
    copied = new_record(records)
    for column in range(NUM_RECORD_TIMES):
        records.time[copied, column] = records.time[record, column]
    for column in range(NUM_RECORD_INDICES):
        records.info[copied, column] = records.info[record, column]
    for column in range(NUM_TASK_REALS):
        tasks.real[copied, column] = tasks.real[record, column]
    for column in range(NUM_TASK_NUMS):
        tasks.num[copied, column] = tasks.num[record, column]
    return copied


@helper
def _recover_station(fleet: FullLane, station: int, now: float) -> None:
    """Let a station come back, empty."""
    core, work = fleet.core, fleet.core.nodes.work
    accrue_slots(work, station, now)
    if station == fleet.life.num_nodes:
        work[station, SLOTS] = fleet.origin.slots
        return
    catalogue = fleet.catalogue
    catalogue.up[station] = True
    core.nodes.sites[work[station, PLACE], SITE_X_KM] = catalogue.node_x_km[station]
    if fleet.fault_params.empty_profile >= 0:
        catalogue.profile[station] = fleet.fault_params.empty_profile
    node_class = catalogue.node_class[station]
    row = empty_row(catalogue, station)
    missing_bytes = catalogue.missing_bytes[row % catalogue.num_holdings, profile]
    receive(fleet, station, row, missing_bytes, now)
