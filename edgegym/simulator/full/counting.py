"""What the full loop counts when a request gets its first token, is decided, or ends.

The same moments and columns as in :mod:`edgegym.simulator.accounting`, and those of
:mod:`edgegym.simulator.full.counts` besides.
"""

import numpy as np

from edgegym.simulator.accounting import release_record, ticks
from edgegym.simulator.columns import (
    ACTIVE,
    ARRIVAL_S,
    CAPACITY_TICKS,
    COLD_PREFILL_TICKS,
    COUNTED,
    DECIDED,
    DECISION_COUNTED,
    FAMILY_DECIDED,
    FAMILY_HITS,
    FIRST_TOKEN_COUNTED,
    FIRST_TOKEN_S,
    FIRST_TOKENS,
    FREE,
    GOODPUT_TOKENS,
    HITS,
    JOIN_S,
    NODE,
    NODE_CLASS,
    PREFILL_TICKS,
    PREFILL_TIME_TICKS,
    RADIO_TICKS,
    SLOT_FREED,
    SPILLED_SHIFT,
    START_S,
    STATUS,
    TYPE,
    USED_RECORDS,
    WAIT_TICKS,
)
from edgegym.simulator.columns import BUSY_TICKS as NODE_BUSY_TICKS
from edgegym.simulator.columns import HIT_TOKENS as HIT_TOKENS_COUNT
from edgegym.simulator.compiling import helper, inlined, prefetch
from edgegym.simulator.full.columns import (
    END_S,
    FETCHED_BYTES,
    HIT_DEPTH,
    HIT_TOKENS,
    INPUT_TOKENS,
    LOST,
    NOT_SPILLED,
    OUTPUT_TOKENS,
    REQUEST,
    RESTORE_S,
    SERVER_WAIT_S,
    SPILLED_ORIGIN,
    STALL_S,
    X_KM,
)
from edgegym.simulator.full.counts import (
    FAMILY_FETCHED_BYTES,
    FAMILY_SPILLED,
    LINK_BUSY_TICKS,
    LINK_BYTES,
    ORIGIN_BUSY_TICKS,
    ORIGIN_CAPACITY_TICKS,
    SPILLED_TO_NODE,
    SPILLED_TO_ORIGIN,
    Counts,
    count,
    count_completed,
    count_first,
    count_of_family,
)
from edgegym.simulator.full.flows import (
    ABANDONED_BYTES,
    BUSY_TICKS,
    CARRIED_BYTES,
    NUM_FLOW_KINDS,
    LinkState,
)
from edgegym.simulator.full.lane import Desk
from edgegym.simulator.full.link import accrue_link
from edgegym.simulator.full.log import COMPLETED, log_served
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.full.timers import first_station, first_time, set_timer
from edgegym.simulator.histogram import histogram_bin


@inlined
def count_decision(desk: Desk, record: int, hit: bool) -> None:
    """Count that a request met or missed its target, once."""
    info, counters = desk.records.info, desk.window.counters
    if info[record, COUNTED] & DECISION_COUNTED:
        return
    info[record, COUNTED] |= DECISION_COUNTED
    family = desk.types.family[info[record, TYPE]]
    counters[DECIDED] += 1
    desk.window.families[FAMILY_DECIDED, family] += 1
    if hit:
        counters[HITS] += 1
        desk.window.families[FAMILY_HITS, family] += 1
        counters[GOODPUT_TOKENS] += desk.tasks.num[record, OUTPUT_TOKENS]


@inlined
def _count_spill(counts: Counts, family: int, spilled: int) -> None:
    """Count a first token of a request that did not get to its best node."""
    if spilled != NOT_SPILLED:
        count_of_family(counts, family, FAMILY_SPILLED, 1)
        count(counts, SPILLED_TO_ORIGIN if spilled == SPILLED_ORIGIN else SPILLED_TO_NODE, 1)


@helper
def count_first_token(desk: Desk, record: int) -> None:
    """Count a first token that falls into the window; the times add up to the TTFT in ticks."""
    info, times = desk.records.info, desk.records.time
    real, num, counters = desk.tasks.real, desk.tasks.num, desk.window.counters
    request_type, station = info[record, TYPE], info[record, NODE]
    arrival, join = times[record, ARRIVAL_S], times[record, JOIN_S]
    start, first = times[record, START_S], times[record, FIRST_TOKEN_S]
    count_decision(desk, record, first <= arrival + desk.types.target_s[request_type])
    info[record, COUNTED] |= FIRST_TOKEN_COUNTED
    stall, restore = ticks(real[record, STALL_S]), ticks(real[record, RESTORE_S])
    server = ticks(real[record, SERVER_WAIT_S])
    prefill = ticks(first - start) - stall - restore - server
    counters[FIRST_TOKENS] += 1
    counters[RADIO_TICKS] += ticks(join - arrival)
    counters[WAIT_TICKS] += ticks(start - join) + server
    counters[PREFILL_TICKS] += prefill
    counters[COLD_PREFILL_TICKS] += ticks(
        prefill_seconds(
            desk.coefficients, desk.work[station, NODE_CLASS], float(num[record, INPUT_TOKENS]), 0.0
        )
    )
    counters[HIT_TOKENS_COUNT] += num[record, HIT_TOKENS]
    if not desk.has_engine or station == desk.origin:
        desk.work[station, PREFILL_TIME_TICKS] += prefill
    desk.window.histogram[histogram_bin(first - arrival)] += 1
    family = desk.types.family[request_type]
    _count_spill(desk.counts, family, info[record, COUNTED] >> SPILLED_SHIFT)
    fetched_bytes = num[record, FETCHED_BYTES]
    count_of_family(desk.counts, family, FAMILY_FETCHED_BYTES, fetched_bytes)
    count_first(
        desk.counts,
        family,
        first - arrival,
        num[record, INPUT_TOKENS],
        num[record, HIT_TOKENS],
        num[record, HIT_DEPTH],
        real[record, STALL_S],
        real[record, RESTORE_S],
        station == desk.origin,
    )


@helper
def log_end(desk: Desk, record: int, outcome: int) -> None:
    """Count and log that a request ends whose first token has been counted."""
    times, info = desk.records.time, desk.records.info
    end = max(desk.tasks.real[record, END_S], times[record, FIRST_TOKEN_S])
    if outcome == COMPLETED:
        family = desk.types.family[info[record, TYPE]]
        output = desk.tasks.num[record, OUTPUT_TOKENS]
        count_completed(desk.counts, family, end - times[record, ARRIVAL_S], output)
    log_served(
        desk.log,
        times,
        info,
        desk.tasks.real,
        desk.tasks.num,
        record,
        outcome,
        end,
        desk.origin,
    )


@inlined
def close_request(desk: Desk, record: int) -> None:
    """Count, log and forget a request that is complete."""
    log_end(desk, record, COMPLETED)
    release_record(desk.records, record)
    # The next request gets this record, and needs the other lines of it.
    prefetch(desk.tasks.num, record, REQUEST)
    prefetch(desk.tasks.real, record, X_KM)


@helper
def _settle_one(desk: Desk, record: int, until: float) -> None:
    """Count the first token and the decision of a request, if they fall into the time before."""
    indices, times = desk.records.info, desk.records.time
    status = indices[record, STATUS]
    if status in (FREE, LOST) or indices[record, COUNTED] & FIRST_TOKEN_COUNTED:
        return
    if status in (ACTIVE, SLOT_FREED) and times[record, FIRST_TOKEN_S] <= until:
        count_first_token(desk, record)
        if status == SLOT_FREED:
            close_request(desk, record)
    elif times[record, ARRIVAL_S] + desk.types.target_s[indices[record, TYPE]] <= until:
        count_decision(desk, record, False)


@helper
def settle(desk: Desk, until: float) -> None:
    """Count the first tokens and decisions up to ``until`` of requests still in the system."""
    for record in range(desk.records.scalars[USED_RECORDS]):
        _settle_one(desk, record, until)


@helper
def expect(desk: Desk, record: int) -> None:
    """Note when a request is next to be counted; again whenever that may have become earlier.

    A time that has passed by otherwise is no harm: nothing is counted then.
    """
    info, times = desk.records.info, desk.records.time
    status, counted = info[record, STATUS], info[record, COUNTED]
    due = np.inf
    if status not in (FREE, LOST) and not counted & FIRST_TOKEN_COUNTED:
        if not counted & DECISION_COUNTED:
            due = times[record, ARRIVAL_S] + desk.types.target_s[info[record, TYPE]]
        if status in (ACTIVE, SLOT_FREED):
            due = min(due, times[record, FIRST_TOKEN_S])
    set_timer(desk.dues, record, due)


@helper
def expect_all(desk: Desk) -> None:
    """Note of all requests in the system when they are next to be counted."""
    for record in range(desk.records.scalars[USED_RECORDS]):
        expect(desk, record)


@helper
def settle_due(desk: Desk, until: float) -> None:
    """Do what :func:`settle` does, looking only at requests whose time has come."""
    while first_time(desk.dues) <= until:
        record = first_station(desk.dues)
        _settle_one(desk, record, until)
        expect(desk, record)


@helper
def count_origin(desk: Desk) -> None:
    """Write into the window how busy the origin was, once its slot time has been added."""
    if desk.origin >= 0:
        count(desk.counts, ORIGIN_BUSY_TICKS, desk.work[desk.origin, NODE_BUSY_TICKS])
        count(desk.counts, ORIGIN_CAPACITY_TICKS, desk.work[desk.origin, CAPACITY_TICKS])


@helper
def count_link(counts: Counts, link: LinkState, until: float) -> None:
    """Move into the window what the link has carried since the last one, by flows that ended."""
    accrue_link(link, until)
    count(counts, LINK_BUSY_TICKS, link.num[BUSY_TICKS])
    link.num[BUSY_TICKS] = 0
    count(counts, LINK_BYTES, link.num[ABANDONED_BYTES])
    link.num[ABANDONED_BYTES] = 0
    for kind in range(NUM_FLOW_KINDS):
        count(counts, LINK_BYTES, link.num[CARRIED_BYTES + kind])
        link.num[CARRIED_BYTES + kind] = 0
