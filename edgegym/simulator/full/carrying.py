"""What nodes hold changes: moves and refreshes begin, bytes arrive, contents expire."""

import numpy as np

from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.columns import DRAINING, HOLDS, IN_SLOTS, NODE, SLOTS
from edgegym.simulator.compiling import helper
from edgegym.simulator.events import EXPIRY, push_event
from edgegym.simulator.full.admission import note_load
from edgegym.simulator.full.columns import NODE_FLOW, NODE_FLOW_KIND
from edgegym.simulator.full.counts import REFRESH_BYTES, count
from edgegym.simulator.full.expiry import bytes_to_fetch, next_change_s
from edgegym.simulator.full.fetching import fetch_arrived
from edgegym.simulator.full.flows import FETCH, FLOW_BYTES, FLOW_ITEM, FLOW_KIND, MOVE, REFRESH
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import add_flow, bytes_left, cancel_flow, extend_flow, pop_flow
from edgegym.simulator.full.lru import lru_clear, lru_expire
from edgegym.simulator.full.slots import fill_slots
from edgegym.simulator.full.stations import hold, refresh_node


@helper
def let_flow(fleet: FullLane, node: int, now: float) -> None:
    """Let the bytes that a node lacks flow to it."""
    transfers, flows = fleet.transfers, fleet.node_flows.num
    fleet.core.nodes.work[node, DRAINING] = 0
    transfers.start_s[node] = now
    flows[node, NODE_FLOW] = add_flow(
        fleet.link_params,
        fleet.link,
        now,
        flows[node, NODE_FLOW_KIND],
        node,
        -1,
        node,
        transfers.bytes_total[node],
    )
    if not fleet.link_params.shared:
        transfers.end_s[node] = now + transfers.bytes_total[node] / fleet.link_params.bytes_per_s


@helper
def receive(fleet: FullLane, node: int, row: int, size_bytes: int, kind: int, now: float) -> None:
    """Let a node hold a row until the bytes that its profile lacks have come.

    They flow when no more than its slots are in use: a shrink drains, it never kills.
    """
    transfers, work = fleet.transfers, fleet.core.nodes.work
    accrue_slots(work, node, now)
    hold(fleet, node, row)
    refresh_node(fleet, node)
    if size_bytes > 0:
        transfers.receiving[node] = True
        transfers.bytes_total[node] = size_bytes
        transfers.start_s[node] = np.inf
        transfers.end_s[node] = np.inf
        fleet.node_flows.num[node, NODE_FLOW_KIND] = kind
        if work[node, IN_SLOTS] <= work[node, SLOTS]:
            let_flow(fleet, node, now)
        else:
            work[node, DRAINING] = 1
    fill_slots(fleet, node, now)
    note_load(fleet.routing, node, now)


@helper
def drop_node_flow(fleet: FullLane, node: int, now: float) -> None:
    """Let nothing more come to a node."""
    transfers, flows = fleet.transfers, fleet.node_flows.num
    if flows[node, NODE_FLOW] >= 0:
        cancel_flow(fleet.link_params, fleet.link, now, flows[node, NODE_FLOW])
        flows[node, NODE_FLOW] = -1
    transfers.receiving[node] = False
    transfers.start_s[node] = np.inf
    transfers.end_s[node] = np.inf
    fleet.core.nodes.work[node, DRAINING] = 0


@helper
def lose_state(fleet: FullLane, node: int, now: float) -> None:
    """Let a node that fails hold nothing."""
    drop_node_flow(fleet, node, now)
    if fleet.life.lru:
        lru_clear(fleet.lru, node)
    else:
        hold(fleet, node, fleet.holdings.empty_row[fleet.holdings.node_class[node]])


@helper
def end_flow(fleet: FullLane, now: float) -> None:
    """Let the flow end that is the first to."""
    link = fleet.link
    flow = pop_flow(fleet.link_params, link, now)
    item = link.flow[flow, FLOW_ITEM]
    if link.flow[flow, FLOW_KIND] == FETCH:
        fetch_arrived(fleet, flow, item, fleet.core.records.info[item, NODE], now)
        return
    fleet.node_flows.num[item, NODE_FLOW] = -1
    fleet.transfers.receiving[item] = False
    base = fleet.holdings.node_class[item] * fleet.holdings.num_holdings
    hold(fleet, item, base + fleet.catalogue.profile[item])
    refresh_node(fleet, item)


@helper
def expire(fleet: FullLane, vertex: int, now: float) -> None:
    """Let the content of an expiring vertex change."""
    params = fleet.expiry_params
    fleet.expiry.version[vertex] += 1
    if fleet.life.lru:
        lru_expire(fleet.lru_params, fleet.lru, params.lru_vertex[vertex], now)
    else:
        for node in range(fleet.area.num_nodes):
            if fleet.catalogue.up[node]:
                _expire_at(fleet, vertex, node, now)
    push_event(fleet.core.queue, next_change_s(params, fleet.expiry, vertex), EXPIRY, vertex)


@helper
def _expire_at(fleet: FullLane, vertex: int, node: int, now: float) -> None:
    """Let a node lose what expires, and fetch it anew."""
    work, holdings, transfers = fleet.core.nodes.work, fleet.holdings, fleet.transfers
    base = holdings.node_class[node] * holdings.num_holdings
    held = work[node, HOLDS] - base
    draining = work[node, DRAINING] == 1
    size = bytes_to_fetch(
        fleet.expiry_params, vertex, held, fleet.catalogue.profile[node], draining
    )
    left = fleet.expiry_params.left[held, vertex]
    if size == 0:
        return
    count(fleet.desk.counts, REFRESH_BYTES, size)
    if not transfers.receiving[node]:
        receive(fleet, node, base + left, size, REFRESH, now)
        return
    hold(fleet, node, base + left)
    refresh_node(fleet, node)
    transfers.bytes_total[node] += size
    flow = fleet.node_flows.num[node, NODE_FLOW]
    if flow >= 0:
        extend_flow(fleet.link_params, fleet.link, now, flow, size)
        if not fleet.link_params.shared:
            transfers.end_s[node] += size / fleet.link_params.bytes_per_s


@helper
def note_progress(fleet: FullLane, now: float) -> None:
    """Write how far the bytes of each receiving node are, for whoever looks between windows.

    On a shared link nobody knows when a flow will end: start and end are such that the share of
    time that is left is the share of bytes that is left.
    """
    if not fleet.link_params.shared:
        return
    for node in range(fleet.area.num_nodes):
        flow = fleet.node_flows.num[node, NODE_FLOW]
        if flow >= 0:
            total = fleet.link.flow[flow, FLOW_BYTES]
            left = bytes_left(fleet.link_params, fleet.link, now, flow) / total
            fleet.transfers.start_s[node] = now - (1.0 - left)
            fleet.transfers.end_s[node] = now + left


@helper
def change_profile(fleet: FullLane, node: int, profile: int, kept: int, missing_bytes: int) -> None:
    """Give a node another profile, as :func:`edgegym.simulator.moves.change_profile` does."""
    fleet.catalogue.profile[node] = profile
    row = fleet.holdings.node_class[node] * fleet.holdings.num_holdings
    row += kept if missing_bytes > 0 else profile
    receive(fleet, node, row, missing_bytes, MOVE, fleet.now_s[0])
