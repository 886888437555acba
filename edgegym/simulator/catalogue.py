"""What follows from a node's profile and from what it really holds; always live."""

import numpy as np

from edgegym.simulator.columns import (
    HOLDS,
    HOLDS_SHIFT,
    PLACE,
    REQUEST_S_BITS,
    SITE_BITS,
    SITE_WAIT_S,
    SLOTS,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.lane import Catalogue, Nodes
from edgegym.simulator.telemetry import advertise_backlog


@inlined
def advertise_holding(nodes: Nodes, node: int) -> None:
    """Let routers see what a node really holds."""
    bits = (nodes.work[node, HOLDS] << HOLDS_SHIFT) + node
    nodes.sites[nodes.work[node, PLACE], SITE_BITS] = np.int64(bits).view(np.float64)


@helper
def refresh_node(catalogue: Catalogue, nodes: Nodes, backlog: bool, node: int) -> None:
    """Bring what follows from a node's profile and holding up to date."""
    holding, profile = nodes.work[node, HOLDS], catalogue.profile[node]
    slots = catalogue.slots[node, profile]
    nodes.work[node, SLOTS] = slots
    request_s = 1.0 / (slots * catalogue.slot_service_rate[holding])
    nodes.work[node, REQUEST_S_BITS] = np.float64(request_s).view(np.int64)
    advertise_holding(nodes, node)
    if backlog:
        advertise_backlog(nodes, node)
    elif catalogue.advertises_tier:
        nodes.sites[nodes.work[node, PLACE], SITE_WAIT_S] = catalogue.tier_wait_s[profile]
