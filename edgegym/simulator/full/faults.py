"""Failures and recoveries of nodes, of the origin, and of the backhaul.

What fails is a *component*: nodes 0 … N − 1, the origin N, the link N + 1. A component is down
while there is a cause: a random failure, or an outage of the scenario. Random up and down times are
exponential, the k-th of a component a function of the seed, the component and k alone.

Requests at a failed station that have not had their first token are sent again at once, their clock
running; those that have are interrupted. A node comes back empty.
"""

import math

import numpy as np

from edgegym.simulator.accounting import accrue_slots, new_record, release_record
from edgegym.simulator.columns import (
    ACTIVE,
    COUNTED,
    FIRST_TOKEN_COUNTED,
    FIRST_TOKEN_S,
    FREE,
    HOLDS,
    IN_FLIGHT,
    IN_SLOTS,
    NEXT,
    NODE,
    NUM_RECORD_INDICES,
    NUM_RECORD_TIMES,
    ON_RADIO,
    PLACE,
    REPORTED,
    SITE_WAIT_S,
    SITE_X_KM,
    SLOT_FREED,
    SLOTS,
    STATUS,
    USED_RECORDS,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.events import FAULT, push_event
from edgegym.simulator.full.admission import note_load
from edgegym.simulator.full.carrying import lose_state, receive
from edgegym.simulator.full.columns import (
    ASKS,
    DOWN,
    END_S,
    FAULTS_KEY,
    IN_ENGINE,
    INPUT_TOKENS,
    LOST,
    NUM_TASK_NUMS,
    NUM_TASK_REALS,
    OUTPUT_TOKENS,
    PREFILLING,
    REQUEST,
    RESTORING,
    TOGGLES,
    TURNED_AWAY,
)
from edgegym.simulator.full.counting import count_first_token, expect, log_end
from edgegym.simulator.full.counts import (
    FAILURES,
    INTERRUPTED,
    REDISPATCHED,
    REFRESH_BYTES,
    count,
)
from edgegym.simulator.full.engine import engine_drop
from edgegym.simulator.full.fetching import drop_fetch, drop_fetches
from edgegym.simulator.full.flows import REFRESH
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import set_link_up
from edgegym.simulator.full.log import INTERRUPTED as INTERRUPTED_OUTCOME
from edgegym.simulator.full.random import uniform_of
from edgegym.simulator.full.routing import note_left, note_lost
from edgegym.simulator.full.sending import send_again
from edgegym.simulator.full.stations import refresh_node

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


@inlined
def component_kind(fleet: FullLane, component: int) -> int:
    """Return which row of the parameters a component has."""
    return max(component - fleet.life.num_nodes + 1, NODES)


@helper
def next_toggle_s(fleet: FullLane, component: int) -> float:
    """Return how long a component stays as it is until its next random failure or recovery."""
    kind: int = component_kind(fleet, component)
    params = fleet.fault_params
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
            set_link_up(fleet.link_params, fleet.link, now, False)
            drop_fetches(fleet, -1, now)
        else:
            _fail_station(fleet, component, now)
    elif not fails and num[component, DOWN] == 0:
        if component > fleet.life.num_nodes:
            set_link_up(fleet.link_params, fleet.link, now, True)
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
        lose_state(fleet, station, now)
    while engine_drop(fleet.engine, fleet.timers, station, now) >= 0:
        pass
    work[station, IN_SLOTS] = 0
    work[station, WAITING] = 0
    work[station, SLOTS] = 0
    if station < fleet.life.num_nodes:
        refresh_node(fleet, station)
    record = _line_up(fleet, station)
    while record >= 0:
        following = core.records.info[record, NEXT]
        _lose(fleet, station, record, now)
        record = following
    drop_fetches(fleet, station, now)
    work[station, ON_RADIO] = 0
    work[station, REPORTED] = 0
    note_load(fleet.routing, station, now)


@helper
def _line_up(fleet: FullLane, station: int) -> int:
    """Link the requests at a station in the order in which they were made, instead of its queue.

    Returns the record of the first, -1 without one.
    """
    info, num = fleet.core.records.info, fleet.desk.tasks.num
    first, last = -1, -1
    for record in range(fleet.core.records.scalars[USED_RECORDS]):
        status = info[record, STATUS]
        # One that has left its slot needs its station no more.
        if status in (FREE, LOST, SLOT_FREED) or info[record, NODE] != station:
            continue
        number, before = num[record, REQUEST], -1
        if last >= 0 and number > num[last, REQUEST]:
            before = last
        elif first >= 0 and number > num[first, REQUEST]:
            before = first
            while num[info[before, NEXT], REQUEST] < number:
                before = info[before, NEXT]
        following = first
        if before >= 0:
            following = info[before, NEXT]
            info[before, NEXT] = record
        else:
            first = record
        info[record, NEXT] = following
        if following < 0:
            last = record
    return first


@helper
def _lose(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Take a request off a failed station."""
    desk, records = fleet.desk, fleet.core.records
    num = desk.tasks.num
    status = records.info[record, STATUS]
    if status == TURNED_AWAY:
        # It is on its way elsewhere already.
        return
    tokens = num[record, INPUT_TOKENS] + num[record, OUTPUT_TOKENS]
    if status == IN_FLIGHT:
        note_lost(fleet.routing, station, tokens)
    else:
        note_left(fleet.routing, station, tokens)
    if status in (ACTIVE, IN_ENGINE) and records.time[record, FIRST_TOKEN_S] <= now:
        _interrupt(fleet, record, now)
        if status == ACTIVE:
            records.info[record, STATUS] = LOST
        else:
            release_record(records, record)
        return
    drop_fetch(fleet, record, now)
    count(desk.counts, REDISPATCHED, 1)
    again = record
    if status in (IN_FLIGHT, ACTIVE, RESTORING, PREFILLING):
        # Its event stays in the queue, and frees the old record when it comes.
        again = _copy_request(fleet, record)
        records.info[record, STATUS] = LOST
    send_again(fleet, again, now)
    if fleet.scalars[ASKS]:
        expect(fleet.desk, again)


@helper
def _interrupt(fleet: FullLane, record: int, now: float) -> None:
    """Let a request end whose first token has come."""
    desk = fleet.desk
    if not fleet.core.records.info[record, COUNTED] & FIRST_TOKEN_COUNTED:
        count_first_token(desk, record)
    desk.tasks.real[record, END_S] = now
    count(desk.counts, INTERRUPTED, 1)
    log_end(desk, record, INTERRUPTED_OUTCOME)


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
    # Nobody waits there: what it advertised before it failed, and its past waits, say nothing.
    core.nodes.measured[station, :] = 0.0
    core.nodes.sites[work[station, PLACE], SITE_WAIT_S] = 0.0
    if station == fleet.life.num_nodes:
        work[station, SLOTS] = fleet.origin.slots
        return
    catalogue, holdings = fleet.catalogue, fleet.holdings
    catalogue.up[station] = True
    core.nodes.sites[work[station, PLACE], SITE_X_KM] = catalogue.node_x_km[station]
    if fleet.fault_params.empty_profile >= 0:
        catalogue.profile[station] = fleet.fault_params.empty_profile
    if fleet.life.lru:
        refresh_node(fleet, station)
    else:
        row = work[station, HOLDS]
        held = row % holdings.num_holdings
        size = holdings.missing_bytes[held, catalogue.profile[station]]
        count(fleet.desk.counts, REFRESH_BYTES, size)
        receive(fleet, station, row, size, REFRESH, now)
    note_load(fleet.routing, station, now)
