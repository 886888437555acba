"""Requests whose prefix comes over the backhaul while they wait."""

import numpy as np

from edgegym.simulator.columns import (
    ARRIVAL_S,
    HOLDS,
    IN_SLOTS,
    NODE,
    NODE_CLASS,
    PLACE,
    REQUEST_S_BITS,
    SITE_X_KM,
    SITE_Y_KM,
    SLOTS,
    STATUS,
    TYPE,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.columns import (
    BY_CONTROLLER,
    COMPUTE,
    DOWN,
    FETCH_ANYWAY,
    FETCH_ORDER,
    FETCHED_BYTES,
    FLOW,
    HIT_DEPTH,
    HIT_TOKENS,
    INPUT_TOKENS,
    LOCAL_HIT_TOKENS,
    RESTORE_S,
    STALLED,
    TRANSFER_WAIT_S,
)
from edgegym.simulator.full.counts import FETCHED_BYTES as FETCHED_BYTES_COUNT
from edgegym.simulator.full.counts import FETCHES, count
from edgegym.simulator.full.fetch import (
    NEVER,
    best_held_hit,
    can_fetch,
    choose_fetch,
    missing_prefix,
    restore_seconds,
)
from edgegym.simulator.full.flows import FETCH, FLOW_BEGIN_S, FLOW_ITEM, find_flow
from edgegym.simulator.full.forecast import alone_s
from edgegym.simulator.full.holding import local_hit
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import add_flow
from edgegym.simulator.full.restoring import drop_fetch
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.full.sight import squared_km2
from edgegym.simulator.full.slots import begin_service


@inlined
def _slot_wait_s(fleet: FullLane, station: int) -> float:
    """Return the wait for a slot that a request expects which joins a station now."""
    work = fleet.core.nodes.work
    ahead = work[station, WAITING] + work[station, IN_SLOTS] - work[station, SLOTS] + 1
    return max(0, ahead) * np.int64(work[station, REQUEST_S_BITS]).view(np.float64)


@helper
def _source_of(fleet: FullLane, station: int, request_type: int, hit_tokens: float) -> int:
    """Return the nearest node that is up and holds so much of a type's prefix, else the origin."""
    area, work = fleet.area, fleet.core.nodes.work
    x = area.sites[work[station, PLACE], SITE_X_KM]
    y = area.sites[work[station, PLACE], SITE_Y_KM]
    source, least = fleet.desk.origin, np.inf
    for node in range(area.num_nodes):
        if fleet.holdings.hit_tokens[work[node, HOLDS], request_type] >= hit_tokens:
            squared = squared_km2(area, work[node, PLACE], x, y)
            if squared < least:
                source, least = node, squared
    return source


@helper
def consider_fetch(fleet: FullLane, station: int, record: int, now: float) -> None:
    """Let a request that reaches a node fetch what the node lacks of its prefix, if that pays.

    One that was sent with an order does what that says.
    """
    params, info, num = fleet.fetch_params, fleet.core.records.info, fleet.desk.tasks.num
    order = num[record, FETCH_ORDER]
    undecided = order == BY_CONTROLLER and params.controller == NEVER
    if undecided or order == COMPUTE or station == fleet.desk.origin:
        return
    request_type = info[record, TYPE]
    local = local_hit(fleet, station, record)[0]
    if local < 0:
        return
    origin_up = fleet.faults.num[fleet.life.num_nodes, DOWN] == 0
    best = best_held_hit(
        params, fleet.holdings.hit_tokens, fleet.holdings.holders, request_type, origin_up
    )
    size, fetched = missing_prefix(params, request_type, float(local), best)
    if size == 0:
        return
    length = float(num[record, INPUT_TOKENS])
    whole, fetched = fetched, min(fetched, length - 1.0)
    node_class = fleet.core.nodes.work[station, NODE_CLASS]
    computed_s = prefill_seconds(fleet.desk.coefficients, node_class, length, float(local))
    fetched_s = prefill_seconds(fleet.desk.coefficients, node_class, length, fetched)
    pays = order == FETCH_ANYWAY and can_fetch(fleet.link, size, computed_s, fetched_s)
    if order == BY_CONTROLLER:
        pays = choose_fetch(
            params,
            fleet.link_params,
            fleet.link,
            now,
            station,
            request_type,
            size,
            _slot_wait_s(fleet, station),
            computed_s,
            fetched_s,
            now - fleet.core.records.time[record, ARRIVAL_S],
        ).fetch
    if not pays:
        return
    num[record, LOCAL_HIT_TOKENS] = local
    num[record, HIT_TOKENS] = int(fetched)
    num[record, FETCHED_BYTES] = size
    num[record, HIT_DEPTH] = _depth_of(fleet, request_type, fetched)
    source = _source_of(fleet, station, request_type, whole)
    num[record, FLOW] = add_flow(
        fleet.link_params, fleet.link, now, FETCH, record, source, station, size
    )
    count(fleet.desk.counts, FETCHES, 1)


@helper
def _depth_of(fleet: FullLane, request_type: int, hit_tokens: float) -> int:
    """Return how many vertices of a type's path a hit spans."""
    params, depth = fleet.fetch_params, 0
    for step in range(params.path_length[request_type]):
        if params.path_tokens[request_type, step] <= hit_tokens:
            depth = step + 1
    return depth


@helper
def fetch_arrived(fleet: FullLane, flow: int, record: int, station: int, now: float) -> None:
    """Let the prefix of a request be there."""
    num, real, link = fleet.desk.tasks.num, fleet.desk.tasks.real, fleet.link
    size = num[record, FETCHED_BYTES]
    num[record, FLOW] = -1
    took_s = now - link.flow_real[flow, FLOW_BEGIN_S]
    real[record, TRANSFER_WAIT_S] = max(0.0, took_s - alone_s(fleet.link_params, size))
    real[record, RESTORE_S] = restore_seconds(fleet.link_params, size)
    count(fleet.desk.counts, FETCHED_BYTES_COUNT, size)
    if fleet.core.records.info[record, STATUS] == STALLED:
        begin_service(fleet, station, record, now)


@helper
def drop_fetches(fleet: FullLane, source: int, now: float) -> None:
    """Give up the fetches from a station, or all with -1: these requests compute instead."""
    info, link = fleet.core.records.info, fleet.link
    flow = find_flow(link, 0, FETCH, -1, source)
    while flow >= 0:
        record = link.flow[flow, FLOW_ITEM]
        drop_fetch(fleet, record, now)
        if info[record, STATUS] == STALLED:
            begin_service(fleet, info[record, NODE], record, now)
        flow = find_flow(link, flow + 1, FETCH, -1, source)
