"""What is counted, when, and how, so that windows add up to the same bits however they are cut.

A request is *decided* once: at its first token when that comes by its deadline (arrival + target),
else at the deadline. Its TTFT and the parts of it are counted at its first token. Neither is an
event of the heap: a request is counted when it leaves its slot, or by :func:`settle` at the end of
an advance, always in the window that holds the moment. Times are added as integer ticks.
"""

from edgegym.simulator.columns import (
    ACCRUED_TICK,
    ACTIVE,
    ARRIVAL_S,
    BUSY_TICKS,
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
    FREE_RECORD,
    GOODPUT_TOKENS,
    HIT_TOKENS,
    HITS,
    HOLDING,
    IN_SLOTS,
    JOIN_S,
    NEXT,
    NODE,
    NUM_RECORDS,
    PREFILL_TICKS,
    PREFILL_TIME_TICKS,
    RADIO_TICKS,
    SLOT_FREED,
    SLOTS,
    START_S,
    STATUS,
    TYPE,
    USED_RECORDS,
    WAIT_TICKS,
)
from edgegym.simulator.compiling import helper, inlined, prefetch
from edgegym.simulator.histogram import histogram_bin
from edgegym.simulator.lane import Records, Types, Window
from edgegym.simulator.state import Ints, to_ticks

ticks = inlined(to_ticks)

_RECORDS_AHEAD = 16


@inlined
def accrue_slots(work: Ints, node: int, now: float) -> None:
    """Add the slot time of a node since it was last added; call before active or slots change."""
    tick = ticks(now)
    elapsed = tick - work[node, ACCRUED_TICK]
    work[node, BUSY_TICKS] += work[node, IN_SLOTS] * elapsed
    work[node, CAPACITY_TICKS] += work[node, SLOTS] * elapsed
    work[node, ACCRUED_TICK] = tick


@inlined
def has_room(records: Records, requests: int) -> bool:
    """Return whether there is room for so many more requests."""
    scalars = records.scalars
    if requests <= 1 and scalars[FREE_RECORD] >= 0:
        return True
    return scalars[USED_RECORDS] + requests <= scalars[NUM_RECORDS]


@inlined
def new_record(records: Records) -> int:
    """Take a free record; there must be room for it."""
    record = records.scalars[FREE_RECORD]
    if record >= 0:
        records.scalars[FREE_RECORD] = records.info[record, NEXT]
        return record
    record = records.scalars[USED_RECORDS]
    records.scalars[USED_RECORDS] = record + 1
    return record


@inlined
def release_record(records: Records, record: int) -> None:
    """Return a record to the free list."""
    records.info[record, STATUS] = FREE
    records.info[record, NEXT] = records.scalars[FREE_RECORD]
    records.scalars[FREE_RECORD] = record


@inlined
def _count_decision(types: Types, window: Window, request_type: int, hit: bool) -> None:
    family = types.family[request_type]
    window.counters[DECIDED] += 1
    window.families[FAMILY_DECIDED, family] += 1
    if hit:
        window.counters[HITS] += 1
        window.families[FAMILY_HITS, family] += 1
        window.counters[GOODPUT_TOKENS] += int(types.output_tokens[request_type])


@helper
def count_first_token(
    types: Types, records: Records, window: Window, work: Ints, record: int
) -> None:
    """Count a request whose first token falls into the window, and its decision if still open."""
    request_type = records.info[record, TYPE]
    arrival, join = records.time[record, ARRIVAL_S], records.time[record, JOIN_S]
    start, first = records.time[record, START_S], records.time[record, FIRST_TOKEN_S]
    if not records.info[record, COUNTED] & DECISION_COUNTED:
        hit = first <= arrival + types.target_s[request_type]
        _count_decision(types, window, request_type, hit)
    counters = window.counters
    prefill = ticks(first - start)
    counters[FIRST_TOKENS] += 1
    counters[RADIO_TICKS] += ticks(join - arrival)
    counters[WAIT_TICKS] += ticks(start - join)
    counters[PREFILL_TICKS] += prefill
    counters[COLD_PREFILL_TICKS] += ticks(types.cold_prefill_s[request_type])
    counters[HIT_TOKENS] += int(types.hit_tokens[records.info[record, HOLDING], request_type])
    work[records.info[record, NODE], PREFILL_TIME_TICKS] += prefill
    window.histogram[histogram_bin(first - arrival)] += 1


@helper
def settle(types: Types, records: Records, window: Window, work: Ints, until: float) -> None:
    """Count the first tokens and decisions up to ``until`` of requests still in the system."""
    indices, times = records.info, records.time
    used = records.scalars[USED_RECORDS]
    for record in range(used):
        prefetch(work, indices[min(record + _RECORDS_AHEAD, used - 1), NODE], PREFILL_TIME_TICKS)
        status = indices[record, STATUS]
        if status == FREE or indices[record, COUNTED] & FIRST_TOKEN_COUNTED:
            continue
        has_slot = status in (ACTIVE, SLOT_FREED)
        if has_slot and times[record, FIRST_TOKEN_S] <= until:
            count_first_token(types, records, window, work, record)
            indices[record, COUNTED] = DECISION_COUNTED | FIRST_TOKEN_COUNTED
            if status == SLOT_FREED:
                release_record(records, record)
        elif not indices[record, COUNTED] & DECISION_COUNTED:
            request_type = indices[record, TYPE]
            if times[record, ARRIVAL_S] + types.target_s[request_type] <= until:
                _count_decision(types, window, request_type, False)
                indices[record, COUNTED] |= DECISION_COUNTED
