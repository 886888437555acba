"""What a request finds at its station, and how long it keeps its slot there."""

from edgegym.simulator.columns import HOLDS, IN_SLOTS, MARK, NODE_CLASS, TYPE
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.columns import INPUT_TOKENS, ORIGIN_KEY, OUTPUT_TOKENS, REQUEST
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.lru import lru_hit_tokens
from edgegym.simulator.full.random import uniform_of
from edgegym.simulator.full.sight import DRAW_OF_REPLICA
from edgegym.simulator.full.tokens import decode_seconds
from edgegym.simulator.service import EXPONENTIAL
from edgegym.world.compiled import SERVICE_KINDS

TOKENS = SERVICE_KINDS.index("tokens")
ENGINE = SERVICE_KINDS.index("engine")

NOT_SERVED = -1
"""Hit of a request that its station can't serve."""


@helper
def local_hit(fleet: FullLane, station: int, record: int) -> tuple[int, int]:
    """Return the input tokens, and the vertices, of a request's prefix that its station holds.

    The last token is always computed. ``NOT_SERVED`` tokens where the station can't serve it.
    """
    num = fleet.desk.tasks.num
    request_type: int = fleet.core.records.info[record, TYPE]
    depth = fleet.holdings.path_length[request_type]
    if station == fleet.desk.origin:
        draw = uniform_of(fleet.scalars[ORIGIN_KEY], num[record, REQUEST], DRAW_OF_REPLICA)
        if draw >= fleet.origin.affinity:
            return 0, 0
        hit = fleet.origin.path_tokens[request_type]
    elif fleet.life.lru:
        hit, depth = lru_hit_tokens(fleet.lru_params, fleet.lru, station, request_type)
    else:
        row: int = fleet.core.nodes.work[station, HOLDS]
        hit = fleet.holdings.hit_tokens[row, request_type]
        depth = fleet.holdings.hit_depth[row, request_type]
    return int(min(hit, num[record, INPUT_TOKENS] - 1.0)), depth


@inlined
def _decode_seconds(fleet: FullLane, station: int, record: int) -> float:
    """Return the decode time of a request, before its mark."""
    output = float(fleet.desk.tasks.num[record, OUTPUT_TOKENS])
    node_class: int = fleet.core.nodes.work[station, NODE_CLASS]
    if station == fleet.desk.origin:
        return max(output - 1.0, 0.0) * fleet.origin.tpot_s
    if fleet.life.service_kind == TOKENS:
        active = min(fleet.core.nodes.work[station, IN_SLOTS], fleet.life.most_active)
        return decode_seconds(fleet.life.token_s, node_class, active, output)
    request_type: int = fleet.core.records.info[record, TYPE]
    decode_s = fleet.life.occupancy_s[node_class, request_type]
    usual = fleet.core.types.output_tokens[request_type]
    if output != usual and fleet.life.by_tokens[node_class]:
        decode_s *= output / usual
    return decode_s


@helper
def slot_seconds(fleet: FullLane, station: int, record: int, prefill_s: float) -> float:
    """Return how long a request keeps its slot from when its state is ready.

    Exponential service takes (prefill + decode) · mark, as the paper's M/M/c does; the first token
    can then come after the slot is free. The other laws keep the slot until the first token.
    """
    decode_s = _decode_seconds(fleet, station, record)
    mark = fleet.core.records.time[record, MARK]
    if fleet.life.service_kind == EXPONENTIAL:
        return (prefill_s + decode_s) * mark
    return prefill_s + decode_s * mark
