"""What follows from what a station is to hold, really holds, and whether it is up."""

import numpy as np

from edgegym.simulator.catalogue import advertise_holding
from edgegym.simulator.columns import (
    HOLDS,
    PLACE,
    REQUEST_S_BITS,
    SITE_WAIT_S,
    SLOTS,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.telemetry import advertise_backlog

_NEVER_S = 1e300
"""Time between the requests of a station without slots: finite, so that 0 times it is 0."""


@inlined
def hold(fleet: FullLane, node: int, row: int) -> None:
    """Let a node really hold a row; not for nodes with radix caches."""
    work, holders = fleet.core.nodes.work, fleet.holdings.holders
    holders[work[node, HOLDS]] -= 1
    work[node, HOLDS] = row
    holders[row] += 1


@helper
def refresh_node(fleet: FullLane, node: int) -> None:
    """Bring what follows from a node's profile, holding and state of repair up to date."""
    catalogue, holdings, nodes = fleet.catalogue, fleet.holdings, fleet.core.nodes
    row, profile = nodes.work[node, HOLDS], catalogue.profile[node]
    slots = catalogue.slots[node, profile] if catalogue.up[node] else 0
    nodes.work[node, SLOTS] = slots
    request_s = _NEVER_S
    if slots > 0:
        # A radix cache comes and goes with the requests: what it spares is not counted on.
        held = holdings.empty_row[holdings.node_class[node]] if fleet.life.lru else row
        request_s = 1.0 / (slots * holdings.row_service_rate[held])
    nodes.work[node, REQUEST_S_BITS] = np.float64(request_s).view(np.int64)
    if catalogue.live:
        advertise_holding(nodes, node)
    if fleet.core.signals.backlog:
        advertise_backlog(nodes, node)
    elif catalogue.advertises_tier:
        nodes.sites[nodes.work[node, PLACE], SITE_WAIT_S] = catalogue.tier_wait_s[profile]


@helper
def publish_catalogue(fleet: FullLane) -> None:
    """Let routers see what all nodes hold now."""
    for node in range(fleet.area.num_nodes):
        advertise_holding(fleet.core.nodes, node)
        if fleet.life.lru:
            for request_type in range(fleet.holdings.num_types):
                seen = fleet.holdings.hit_tokens[node, request_type]
                fleet.holdings.seen_tokens[node, request_type] = seen
