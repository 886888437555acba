"""Moves: a node gives up one profile for another."""

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.backhaul import begin_transfer, bucket_level
from edgegym.simulator.catalogue import refresh_node
from edgegym.simulator.columns import DRAINING, HOLDS, IN_SLOTS, PENDING_BYTES, PENDING_MOVES, SLOTS
from edgegym.simulator.compiling import borrow
from edgegym.simulator.lane import Lane
from edgegym.simulator.nodes import fill_slots
from edgegym.simulator.state import Bools, FleetState
from edgegym.world.compiled import World
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache


class IllegalMove(ValueError):
    """A move that the rules forbid; the message names the node, the profile and the rule."""


def legal_moves(world: World, state: FleetState, b: int) -> Bools:
    """Return which moves are legal now.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets.
    b : int
        Which fleet.

    Returns
    -------
    ndarray
        ``[N, S]`` bool: the node is up and receives nothing, the profile is another than its own,
        fits its memory, and its missing bytes cost no more than the bucket holds.
    """
    profile = state.profile[b]
    movable = state.up[b] & ~state.receiving[b]
    affordable = world.move_bytes[profile] <= bucket_level(world, state, b)
    other = profile[:, None] != np.arange(world.num_profiles)
    return movable[:, None] & other & affordable & (state.slots[b] > 0)


def why_illegal(
    scenario: Scenario, state: FleetState, b: int, node: int, profile: int
) -> str | None:
    """Return the rule that a move breaks.

    Parameters
    ----------
    scenario : Scenario
        The world.
    state : FleetState
        State of B fleets.
    b, node, profile : int
        Fleet, node and the node's new profile.

    Returns
    -------
    str or None
        A sentence with the node and the profile; None for a legal move.
    """
    world, count = scenario.compile(), state.node_count.item(b)
    if not 0 <= node < count:
        return f"node {node}: this fleet has nodes 0 to {count - 1}"
    if not 0 <= profile < world.num_profiles:
        return f"profile {profile} for node {node}: profiles are 0 to {world.num_profiles - 1}"
    current = state.profile.item(b, node)
    price, level = world.move_bytes.item(current, profile), bucket_level(world, state, b)
    if isinstance(scenario.cache, LruCache):
        rule = "with cache.kind = 'lru' nodes hold what they compute, and nothing can be moved"
    elif not state.up.item(b, node):
        rule = "the node is down"
    elif state.receiving.item(b, node):
        rule = f"it is still receiving profile '{scenario.profile_names[current]}'"
    elif profile == current:
        rule = "it already has this profile"
    elif state.slots.item(b, node, profile) < 1:
        rule = "the profile leaves no room for a single sequence in its memory"
    elif price > level:
        rule = f"costs {price} bytes, the budget holds {level:.0f}"
    else:
        return None
    return f"node {node} to profile '{scenario.profile_names[profile]}': {rule}"


def charge_move(world: World, state: FleetState, b: int, price_bytes: int) -> None:
    """Take the price of a move from the bucket and count it for the coming window.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets, changed in place.
    b : int
        Which fleet.
    price_bytes : int
        Bytes that the move transfers.
    """
    state.bucket_bytes[b] = bucket_level(world, state, b) - price_bytes
    state.bucket_time_s[b] = state.now[b]
    state.scalars[b, PENDING_MOVES] += 1
    state.scalars[b, PENDING_BYTES] += price_bytes


@kernel
def change_profile(lane: Lane, node: int, profile: int, kept: int, missing_bytes: int) -> None:
    """Give a node another profile.

    At once the node keeps what the two profiles share and its slots become those of the new one. A
    shrink drains: running requests keep their slots, and the missing bytes flow when no more than
    the new slots are in use. A move without bytes is complete at once.

    Parameters
    ----------
    lane : Lane
        The fleet, changed in place.
    node, profile : int
        A legal move.
    kept : int
        Holding that the two profiles share.
    missing_bytes : int
        Bytes that only the new profile has.
    """
    fleet = borrow(lane)
    nodes, transfers, now = fleet.core.nodes, fleet.transfers, fleet.now_s[0]
    accrue_slots(nodes.work, node, now)
    fleet.catalogue.profile[node] = profile
    nodes.work[node, HOLDS] = kept if missing_bytes > 0 else profile
    refresh_node(fleet.catalogue, nodes, fleet.core.signals.backlog, node)
    if missing_bytes > 0:
        transfers.receiving[node] = True
        transfers.bytes_total[node] = missing_bytes
        transfers.start_s[node] = np.inf
        transfers.end_s[node] = np.inf
        if nodes.work[node, IN_SLOTS] <= nodes.work[node, SLOTS]:
            begin_transfer(transfers, nodes.work, fleet.core.queue, node, now)
        else:
            nodes.work[node, DRAINING] = 1
    fill_slots(fleet.core, node, now)
