"""Contents change: what stations hold of them becomes void, and nodes fetch the new version."""

from edgegym.simulator.columns import DRAINING, HOLDS
from edgegym.simulator.compiling import helper
from edgegym.simulator.events import EXPIRY, push_event
from edgegym.simulator.full.columns import NODE_FLOW
from edgegym.simulator.full.counts import REFRESH_BYTES, count
from edgegym.simulator.full.expiry import bytes_to_fetch, next_change_s
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.link import extend_flow
from edgegym.simulator.full.lru import lru_expire
from edgegym.simulator.full.moving import receive
from edgegym.simulator.full.stations import refresh_node


@helper
def await_changes(fleet: FullLane) -> None:
    """Schedule the first change of every content that expires."""
    for vertex in range(fleet.expiry_params.lifetime_s.size):
        when = next_change_s(fleet.expiry_params, fleet.expiry, vertex)
        push_event(fleet.core.queue, when, EXPIRY, vertex)


@helper
def expire(fleet: FullLane, vertex: int, now: float) -> None:
    """Let the content of an expiring vertex, by its number, change, and schedule the next time."""
    params = fleet.expiry_params
    fleet.expiry.version[vertex] += 1
    push_event(fleet.core.queue, next_change_s(params, fleet.expiry, vertex), EXPIRY, vertex)
    if fleet.life.lru:
        lru_expire(fleet.lru_params, fleet.lru, params.lru_vertex[vertex], now)
        return
    for node in range(fleet.area.num_nodes):
        if fleet.catalogue.up[node]:
            _void(fleet, node, vertex, now)


@helper
def _void(fleet: FullLane, node: int, vertex: int, now: float) -> None:
    """Take from an up node what it holds of a content that changed, and let it fetch the new one.

    What a node awaits already is extended; see :mod:`edgegym.simulator.full.expiry` for the rule.
    """
    work, params, transfers = fleet.core.nodes.work, fleet.expiry_params, fleet.transfers
    holding = work[node, HOLDS] % fleet.holdings.num_holdings
    base = work[node, HOLDS] - holding
    left = params.left[holding, vertex]
    draining = work[node, DRAINING] != 0
    need = bytes_to_fetch(params, vertex, holding, fleet.catalogue.profile[node], draining)
    if need == 0:
        return
    count(fleet.desk.counts, REFRESH_BYTES, need)
    if transfers.receiving[node]:
        work[node, HOLDS] = base + left
        refresh_node(fleet, node)
        transfers.bytes_total[node] += need
        if not draining:
            flow = fleet.node_flows.num[node, NODE_FLOW]
            extend_flow(fleet.link_params, fleet.link, now, flow, need)
    else:
        receive(fleet, node, base + left, need, now)
