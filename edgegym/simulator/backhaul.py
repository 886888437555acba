"""Bytes on their way to a node, and the token bucket that pays for them."""

from edgegym.jit import kernel
from edgegym.simulator.events import FLOW_END, push_event
from edgegym.simulator.state import DRAINING, FleetState, Heap
from edgegym.world.compiled import World


@kernel(forceinline=True)
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
    elapsed_s = state.now[b] - state.bucket_time_s[b]
    return min(
        float(world.burst_bytes), state.bucket_bytes[b] + world.budget_bytes_per_s * elapsed_s
    )


@kernel(forceinline=True)
def begin_transfer(
    world: World, state: FleetState, heap: Heap, b: int, node: int, now: float
) -> None:
    """Let the bytes of a node's move flow, each transfer at the fixed backhaul rate."""
    end = now + state.move_bytes_total[b, node] / world.backhaul_bytes_per_s
    state.transfer_start_s[b, node] = now
    state.transfer_end_s[b, node] = end
    state.node_work[b, node, DRAINING] = 0
    push_event(heap, end, FLOW_END, node)
