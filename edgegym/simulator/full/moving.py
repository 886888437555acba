"""What a station holds changes: moves, refreshes, failures."""

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.columns import (
    DRAINING,
    HOLDS,
    HOLDS_SHIFT,
    IN_SLOTS,
    PLACE,
    REQUEST_S_BITS,
    SITE_BITS,
    SITE_WAIT_S,
    SLOTS,
)
from edgegym.simulator.compiling import borrow, helper, inlined
from edgegym.simulator.full.lane import Catalogue, FullLane
from edgegym.simulator.full.slots import fill_slots
from edgegym.simulator.lane import Nodes
from edgegym.simulator.telemetry import advertise_backlog

_NEVER_S = 1e300
"""Time between the requests of a station without slots: finite, so that 0 times it is 0."""


@inlined
def advertise_holding(nodes: Nodes, node: int) -> None:
    """Let routers see what a node really holds."""
    bits = (nodes.work[node, HOLDS] << HOLDS_SHIFT) + node
    nodes.sites[nodes.work[node, PLACE], SITE_BITS] = np.int64(bits).view(np.float64)


@helper
def refresh_node(catalogue: Catalogue, nodes: Nodes, backlog: bool, node: int) -> None:
    """Bring what follows from a node's profile, holding and state of repair up to date."""
    row, profile = nodes.work[node, HOLDS], catalogue.profile[node]
    slots = catalogue.slots[node, profile] if catalogue.up[node] else 0
    nodes.work[node, SLOTS] = slots
    request_s = _NEVER_S
    if slots > 0:
        request_s = 1.0 / (slots * catalogue.row_service_rate[row])
    nodes.work[node, REQUEST_S_BITS] = np.float64(request_s).view(np.int64)
    if catalogue.live:
        advertise_holding(nodes, node)
    if backlog:
        advertise_backlog(nodes, node)
    elif catalogue.advertises_tier:
        nodes.sites[nodes.work[node, PLACE], SITE_WAIT_S] = catalogue.tier_wait_s[profile]


@helper
def let_flow(fleet: FullLane, node: int, now: float) -> None:
    """Let the bytes of a node's move flow."""
    fleet.core.nodes.work[node, DRAINING] = 0
    begin_flow(fleet, MOVE, node, node, fleet.transfers.bytes_total[node], now)


@helper
def receive(fleet: FullLane, node: int, row: int, missing_bytes: int, now: float) -> None:
    """Let a node hold a row until the bytes that its profile lacks have come.

    The missing bytes flow when no more than its slots are in use: a shrink drains, it never kills.
    """
    core, transfers = fleet.core, fleet.transfers
    work = core.nodes.work
    accrue_slots(work, node, now)
    work[node, HOLDS] = row
    refresh_node(fleet.catalogue, core.nodes, core.signals.backlog, node)
    if missing_bytes > 0:
        transfers.receiving[node] = True
        transfers.bytes_total[node] = missing_bytes
        transfers.start_s[node] = np.inf
        transfers.end_s[node] = np.inf
        if work[node, IN_SLOTS] <= work[node, SLOTS]:
            let_flow(fleet, node, now)
        else:
            work[node, DRAINING] = 1
    fill_slots(fleet, node, now)


@kernel
def change_profile(lane: FullLane, node: int, profile: int, kept: int, missing_bytes: int) -> None:
    """Give a node another profile, as :func:`edgegym.simulator.moves.change_profile` does.

    Parameters
    ----------
    lane : FullLane
        The fleet, changed in place.
    node, profile : int
        A legal move.
    kept : int
        Holding that the two profiles share.
    missing_bytes : int
        Bytes that only the new profile has.
    """
    fleet = borrow(lane)
    fleet.catalogue.profile[node] = profile
    row = fleet.catalogue.node_class[node] * fleet.catalogue.num_holdings
    row += kept if missing_bytes > 0 else profile
    receive(fleet, node, row, missing_bytes, fleet.now_s[0])
