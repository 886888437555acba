"""Random fleet states, without simulating: what the interface reads is set by hand."""

import numpy as np

from edgegym.simulator.state import FleetState, allocate
from edgegym.world import Scenario


def random_state(
    scenario: Scenario, rng: np.random.Generator, node_count: int | None = None
) -> FleetState:
    """Return a fleet in which nodes are down, draining, receiving, loaded or idle at random."""
    world = scenario.compile()
    count = world.max_nodes if node_count is None else node_count
    state = allocate(world)
    state.now[0] = 100.0
    state.node_count[0] = count
    state.node_x[0, :count] = rng.uniform(0.0, world.width_km, count)
    state.node_y[0, :count] = rng.uniform(0.0, world.height_km, count)
    state.slots[0] = world.slots
    state.up[0, :count] = rng.random(count) < 0.8
    state.profile[0, :count] = rng.integers(0, world.num_profiles, count)
    state.receiving[0, :count] = rng.random(count) < 0.3
    flowing = state.receiving[0, :count] & (rng.random(count) < 0.7)
    state.transfer_start_s[0, :count][flowing] = rng.uniform(90.0, 100.0, flowing.sum())
    state.transfer_end_s[0, :count][flowing] = rng.uniform(100.001, 130.0, flowing.sum())
    scale = rng.choice([1, 30, 10**9])
    for name in ("active", "queued", "in_flight"):
        getattr(state, name)[0, :count] = rng.integers(0, scale, count)
    state.bucket_bytes[0] = rng.choice([0.0, world.burst_bytes * rng.random(), world.burst_bytes])
    state.bucket_time_s[0] = 100.0
    return state
