"""Requests on their way through a fetch, a station's engine, and its radix cache."""

from edgegym.simulator.columns import ARRIVAL_S, FIRST_TOKEN_S, START_S, STATUS, TYPE
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.columns import (
    FETCHED_BYTES,
    FLOW,
    HIT_TOKENS,
    IN_ENGINE,
    INPUT_TOKENS,
    KEPT_DEPTH,
    LOCAL_HIT_TOKENS,
    OUTPUT_TOKENS,
    PREDICTED_S,
    PREFILL_S,
    READY_S,
    SERVER_WAIT_S,
)
from edgegym.simulator.full.counting import count_first_token
from edgegym.simulator.full.counts import FETCHES_LOST, count
from edgegym.simulator.full.engine import engine_admit, engine_wait_s, set_restoring
from edgegym.simulator.full.engine_data import RESTORING as NUM_RESTORING
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import cancel_flow
from edgegym.simulator.full.lru import lru_insert, lru_leave
from edgegym.simulator.full.margin import note_error


@inlined
def begin_restoring(fleet: FullLane, station: int, now: float) -> None:
    """Let a station's engine unpack one more fetched prefix."""
    count = fleet.engine.state[station, NUM_RESTORING] + 1
    set_restoring(fleet.engine_params, fleet.engine, fleet.timers, station, count, now)


@helper
def end_restoring(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request go to the engine whose fetched prefix is unpacked."""
    count = fleet.engine.state[station, NUM_RESTORING] - 1
    set_restoring(fleet.engine_params, fleet.engine, fleet.timers, station, count, now)
    enter_engine(fleet, station, record, now)


@helper
def enter_engine(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request queue for its station's prefill server."""
    num, real = fleet.desk.tasks.num, fleet.desk.tasks.real
    fleet.core.records.info[record, STATUS] = IN_ENGINE
    new_tokens = float(num[record, INPUT_TOKENS] - num[record, HIT_TOKENS])
    decode_tokens = float(num[record, OUTPUT_TOKENS] - 1)
    engine_admit(
        fleet.engine_params,
        fleet.engine,
        fleet.timers,
        station,
        record,
        new_tokens,
        real[record, PREFILL_S],
        decode_tokens,
        now,
    )


@helper
def take_first_token(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let the prompt of a request be prefilled."""
    times, real = fleet.core.records.time, fleet.desk.tasks.real
    times[record, FIRST_TOKEN_S] = now
    real[record, SERVER_WAIT_S] = engine_wait_s(fleet.engine, record, real[record, READY_S])
    real[record, PREFILL_S] = now - real[record, READY_S] - real[record, SERVER_WAIT_S]
    count_first_token(fleet.desk, record)
    ttft_s = now - times[record, ARRIVAL_S]
    note_error(fleet.routing, station, ttft_s - real[record, PREDICTED_S], now)
    keep_computed(fleet, station, record)


@helper
def keep_computed(fleet: FullLane, station: int, record: int) -> None:
    """Let a radix cache keep what a request has computed with its first token."""
    if fleet.life.lru and station != fleet.desk.origin:
        num, records = fleet.desk.tasks.num, fleet.core.records
        num[record, KEPT_DEPTH] = lru_insert(
            fleet.lru_params,
            fleet.lru,
            station,
            records.info[record, TYPE],
            num[record, KEPT_DEPTH],
            records.time[record, START_S],
        )


@helper
def leave_cache(fleet: FullLane, station: int, record: int) -> None:
    """Let a request release what it kept in a radix cache, and leave its own state there."""
    if fleet.life.lru and station != fleet.desk.origin:
        num, request_type = fleet.desk.tasks.num, fleet.core.records.info[record, TYPE]
        tokens = num[record, INPUT_TOKENS] + num[record, OUTPUT_TOKENS]
        rest = max(tokens - fleet.holdings.path_tokens[request_type], 0)
        rest_bytes = rest * fleet.holdings.bytes_per_token[fleet.holdings.node_class[station]]
        lru_leave(
            fleet.lru_params, fleet.lru, station, request_type, num[record, KEPT_DEPTH], rest_bytes
        )


@helper
def drop_fetch(fleet: FullLane, record: int, now: float) -> None:
    """Give up a request's fetch, if it has one: it is going to compute instead."""
    num = fleet.desk.tasks.num
    if num[record, FLOW] < 0:
        return
    cancel_flow(fleet.link_params, fleet.link, now, num[record, FLOW])
    num[record, FLOW] = -1
    num[record, HIT_TOKENS] = num[record, LOCAL_HIT_TOKENS]
    num[record, FETCHED_BYTES] = 0
    count(fleet.desk.counts, FETCHES_LOST, 1)
