"""How long a request holds its slot."""

from edgegym.simulator.accounting import count_first_token, release_record
from edgegym.simulator.columns import (
    ACTIVE,
    COMPLETED,
    COUNTED,
    FIRST_TOKEN_COUNTED,
    FIRST_TOKEN_S,
    HOLDING,
    HOLDS,
    MARK,
    SLOT_FREED,
    START_S,
    STATUS,
    TYPE,
)
from edgegym.simulator.compiling import inlined
from edgegym.simulator.lane import Nodes, Records, Types, Window
from edgegym.simulator.state import Ints
from edgegym.world.compiled import SERVICE_KINDS

EXPONENTIAL = SERVICE_KINDS.index("exponential")
LOGNORMAL = SERVICE_KINDS.index("lognormal")


@inlined
def take_slot(
    types: Types, nodes: Nodes, records: Records, node: int, record: int, now: float
) -> float:
    """Give a request its slot and return when it leaves it.

    Exponential service holds the slot for exactly (prefill + decode) · mark, as the paper's M/M/c
    does; the first token, at slot start + prefill, can then come after the slot is free. The other
    laws hold the slot at least until the first token.
    """
    request_type = records.info[record, TYPE]
    holding = nodes.work[node, HOLDS]
    prefill_s = types.prefill_s[holding, request_type]
    decode_s = types.decode_s[request_type]
    mark = records.time[record, MARK]
    records.info[record, STATUS] = ACTIVE
    records.info[record, HOLDING] = holding
    records.time[record, START_S] = now
    records.time[record, FIRST_TOKEN_S] = now + prefill_s
    if types.service_kind == EXPONENTIAL:
        return now + (prefill_s + decode_s) * mark
    return now + (prefill_s + decode_s * mark)


@inlined
def leave_slot(
    types: Types, records: Records, window: Window, work: Ints, record: int, until: float
) -> None:
    """Count and forget a request that leaves its slot in an advance to ``until``.

    A request whose first token comes later than that keeps its record until then.
    """
    window.counters[COMPLETED] += 1
    if records.time[record, FIRST_TOKEN_S] > until:
        records.info[record, STATUS] = SLOT_FREED
        return
    if not records.info[record, COUNTED] & FIRST_TOKEN_COUNTED:
        count_first_token(types, records, window, work, record)
    release_record(records, record)
