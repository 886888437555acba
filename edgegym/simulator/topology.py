"""Where the nodes are and which profiles they start with."""

import numpy as np
from numpy.random import Generator

from edgegym.jit import kernel
from edgegym.simulator.catalogue import refresh_node
from edgegym.simulator.compiling import borrow
from edgegym.simulator.events import TELEMETRY, push_event
from edgegym.simulator.generators import stream_generator
from edgegym.simulator.lane import Lane, lane_of
from edgegym.simulator.search import build_grid, grid_shape
from edgegym.simulator.state import FleetState
from edgegym.world.compiled import World
from edgegym.world.rounding import largest_remainder


def draw_node_count(generator: Generator, mean: float, most: int) -> int:
    """Draw a Poisson number of nodes given that there is at least one and at most ``most``.

    Parameters
    ----------
    generator : numpy.random.Generator
        Source of randomness.
    mean : float
        Mean of the Poisson law.
    most : int
        Largest number.

    Returns
    -------
    int
        The law of redrawing until the number fits, without redrawing.
    """
    numbers = np.arange(1, most + 1)
    log_weight = np.cumsum(np.log(mean / numbers))
    weight = np.exp(log_weight - log_weight.max())
    return int(generator.choice(numbers, p=weight / weight.sum()))


@kernel
def refresh_nodes(lane: Lane) -> None:
    """Bring what follows from profiles and holdings up to date.

    Parameters
    ----------
    lane : Lane
        The fleet, changed in place.
    """
    core = borrow(lane.core)
    for node in range(lane.area.num_nodes):
        refresh_node(lane.catalogue, core.nodes, core.signals.backlog, node)


@kernel
def _start_telemetry(lane: Lane) -> None:
    core = borrow(lane.core)
    if core.signals.period_s > 0.0:
        push_event(core.queue, core.signals.period_s, TELEMETRY, 1)


def place_nodes(world: World, state: FleetState, b: int, seed: int, fixed_count: bool) -> None:
    """Give an empty fleet its nodes.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        As :func:`~edgegym.simulator.state.allocate` returns it, with ``tier_wait_s`` set; changed
        in place.
    b : int
        Which fleet.
    seed : int
        Seed of the episode.
    fixed_count : bool
        Whether there are exactly ``world.max_nodes`` nodes; else a Poisson number.
    """
    generator = stream_generator(seed, "topology")
    count = world.max_nodes
    if not fixed_count:
        count = draw_node_count(generator, world.mean_nodes, world.max_nodes)
    state.seed[b] = seed
    state.node_count[b] = count
    state.node_x[b, :count] = generator.random(count) * world.width_km
    state.node_y[b, :count] = generator.random(count) * world.height_km
    state.up[b, :count] = True
    profiles = np.repeat(np.arange(world.num_profiles), largest_remainder(world.initial_mix, count))
    state.profile[b, :count] = generator.permutation(profiles)
    state.holding[b, :count] = state.profile[b, :count]
    state.slots[b] = world.slots
    build_grid(world, state, b, grid_shape(world))
    lane = lane_of(world, state, b)
    refresh_nodes(lane)
    _start_telemetry(lane)
