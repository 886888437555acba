"""Bytes on their way to a node, and the token bucket that pays for them."""

from edgegym.simulator.columns import DRAINING
from edgegym.simulator.compiling import helper
from edgegym.simulator.events import FLOW_END, push_event
from edgegym.simulator.lane import Queue, Transfers
from edgegym.simulator.state import FleetState, Ints
from edgegym.world.compiled import World


def bucket_level(world: World, state: FleetState, b: int) -> float:
    """Return the bytes that moves may cost now.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets.
    b : int
        Which of them.

    Returns
    -------
    float
        Level of the token bucket in bytes, at most the burst.
    """
    elapsed_s = state.now.item(b) - state.bucket_time_s.item(b)
    level = state.bucket_bytes.item(b) + world.budget_bytes_per_s * elapsed_s
    return min(float(world.burst_bytes), level)


@helper
def begin_transfer(transfers: Transfers, work: Ints, queue: Queue, node: int, now: float) -> None:
    """Let the bytes of a node's move flow, each transfer at the fixed backhaul rate."""
    end = now + transfers.bytes_total[node] / transfers.bytes_per_s
    transfers.start_s[node] = now
    transfers.end_s[node] = end
    work[node, DRAINING] = 0
    push_event(queue, end, FLOW_END, node)
