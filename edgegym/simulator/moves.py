"""Moves: a node gives up one profile for another."""

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots, ticks
from edgegym.simulator.backhaul import begin_transfer, bucket_level
from edgegym.simulator.nodes import fill_slots
from edgegym.simulator.state import PENDING_BYTES, PENDING_MOVES, FleetState, Lane, lane_of
from edgegym.simulator.telemetry import refresh_catalogue
from edgegym.world.compiled import World

LEGAL = 0
NO_SUCH_NODE = 1
NO_SUCH_PROFILE = 2
NODE_DOWN = 3
NODE_RECEIVING = 4
SAME_PROFILE = 5
DOES_NOT_FIT = 6
TOO_EXPENSIVE = 7


class IllegalMove(ValueError):
    """A move that the rules forbid; the message names the node, the profile and the rule."""


@kernel
def move_rule(
    world: World, state: FleetState, b: int, node: int, profile: int, level_bytes: float
) -> int:
    """Return LEGAL, or which rule forbids a move.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets.
    b, node, profile : int
        Fleet, node and the node's new profile.
    level_bytes : float
        Level of the token bucket (:func:`~edgegym.simulator.backhaul.bucket_level`).

    Returns
    -------
    int
        LEGAL or one of the other constants of this module.
    """
    if node < 0 or node >= state.node_count[b]:
        return NO_SUCH_NODE
    if profile < 0 or profile >= world.num_profiles:
        return NO_SUCH_PROFILE
    if not state.up[b, node]:
        return NODE_DOWN
    if state.receiving[b, node]:
        return NODE_RECEIVING
    current = state.profile[b, node]
    if profile == current:
        return SAME_PROFILE
    if state.slots[b, node, profile] < 1:
        return DOES_NOT_FIT
    if world.move_bytes[current, profile] > level_bytes:
        return TOO_EXPENSIVE
    return LEGAL


@kernel
def write_legal_moves(world: World, state: FleetState, b: int, legal) -> None:
    """Write whether each move is legal now into ``legal``, a bool array ``[N, S]``."""
    level = bucket_level(world, state, b)
    for node in range(legal.shape[0]):
        for profile in range(legal.shape[1]):
            legal[node, profile] = move_rule(world, state, b, node, profile, level) == LEGAL


@kernel
def start_move(world: World, state: FleetState, b: int, node: int, profile: int) -> int:
    """Start a move if it is legal, else change nothing.

    At once the node keeps what the two profiles share and its slots become those of the new one. A
    shrink drains: running requests keep their slots, and the missing bytes flow when no more than
    the new slots are in use. A move without bytes is complete at once.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets, changed in place.
    b, node, profile : int
        Fleet, node and the node's new profile.

    Returns
    -------
    int
        LEGAL, or the constant of the rule that forbids it.
    """
    level = bucket_level(world, state, b)
    rule = move_rule(world, state, b, node, profile, level)
    if rule != LEGAL:
        return rule
    lane = lane_of(state, b)
    now = lane.now[0]
    current = lane.profile[node]
    price = world.move_bytes[current, profile]
    lane.bucket_bytes[0] = level - price
    lane.bucket_time_s[0] = now
    lane.scalars[PENDING_MOVES] += 1
    lane.scalars[PENDING_BYTES] += price

    accrue_slots(lane, node, ticks(now))
    lane.profile[node] = profile
    lane.holding[node] = world.meet[current, profile] if price > 0 else profile
    refresh_catalogue(world, lane, node)
    if price > 0:
        lane.receiving[node] = True
        lane.move_bytes_total[node] = price
        lane.transfer_start_s[node] = float("inf")
        lane.transfer_end_s[node] = float("inf")
        if lane.active[node] <= lane.node_slots[node]:
            begin_transfer(world, lane, node, now)
    fill_slots(world, lane, node, now)
    return LEGAL


@kernel(forceinline=True)
def complete_move(world: World, lane: Lane, node: int) -> None:
    """Let a node hold its profile: all bytes have arrived."""
    lane.receiving[node] = False
    lane.holding[node] = lane.profile[node]
    refresh_catalogue(world, lane, node)
