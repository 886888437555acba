"""Where the nodes are, of which classes, and which profiles they start with."""

from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from edgegym.jit import kernel
from edgegym.simulator.catalogue import refresh_node
from edgegym.simulator.columns import FINGERPRINT
from edgegym.simulator.compiling import borrow
from edgegym.simulator.events import TELEMETRY, push_event
from edgegym.simulator.generators import stream_generator
from edgegym.simulator.lane import Lane, lane_of
from edgegym.simulator.layouts import draw_places
from edgegym.simulator.marks import neighbours_of, rearrange
from edgegym.simulator.search import build_grid, grid_shape
from edgegym.simulator.state import Bools, FleetState, Floats, Ints
from edgegym.world.compiled import World
from edgegym.world.rounding import largest_remainder


class NodeDraw(NamedTuple):
    """The N nodes of an episode; they depend on scenario and seed alone."""

    x_km: Floats  # [N]
    y_km: Floats  # [N]
    node_class: Ints  # [N]
    profile: Ints  # [N] at the start; the smallest where there is no GPU


def draw_nodes(world: World, seed: int) -> NodeDraw:
    """Draw places, classes and first profiles of the nodes.

    Parameters
    ----------
    world : World
        The compiled scenario.
    seed : int
        Seed of the episode.
    """
    generator = stream_generator(seed, "topology")
    x, y = draw_places(world, generator)
    node_class = _draw_classes(world, len(x), stream_generator(seed, "classes"))
    if world.layout.class_clustering != 0.0:
        anywhere = np.ones((len(x), len(world.classes.share)), dtype=np.bool_)
        rearrange(
            node_class,
            neighbours_of(world, x, y),
            anywhere,
            world.layout.class_clustering,
            stream_generator(seed, "clustered classes"),
        )
    profile = _draw_profiles(world, generator, node_class)
    if world.layout.profile_clustering != 0.0:
        with_gpu = np.flatnonzero(world.classes.has_gpu[node_class] == 1)
        marks = profile[with_gpu]
        rearrange(
            marks,
            neighbours_of(world, x[with_gpu], y[with_gpu]),
            _room(world, node_class[with_gpu]),
            world.layout.profile_clustering,
            stream_generator(seed, "clustered profiles"),
        )
        profile[with_gpu] = marks
    return NodeDraw(x, y, node_class, profile)


def _draw_classes(world: World, count: int, generator: Generator) -> Ints:
    tables = world.classes
    if len(tables.share) == 1:
        return np.zeros(count, dtype=np.int64)
    numbers = largest_remainder(tables.share / tables.share.sum(), count)
    if not (numbers * tables.has_gpu).any():
        # A fleet so small that all its nodes are without GPU could serve nobody.
        numbers[np.argmax(numbers)] -= 1
        numbers[np.argmax(tables.share * tables.has_gpu)] += 1
    return generator.permutation(np.repeat(np.arange(len(numbers)), numbers))


def _room(world: World, node_class: Ints) -> Bools:
    """Return which profiles have room on which nodes, ``[N, S]``."""
    return world.classes.slots[node_class] > 0


def _draw_profiles(world: World, generator: Generator, node_class: Ints) -> Ints:
    """Hand the profiles out at random, in exact shares of the nodes with a GPU."""
    sizes = world.holding_bytes[: world.num_profiles]
    with_gpu = np.flatnonzero(world.classes.has_gpu[node_class] == 1)
    numbers = largest_remainder(world.initial_mix, len(with_gpu))
    profile = np.full(len(node_class), np.argmin(sizes))
    profile[with_gpu] = generator.permutation(np.repeat(np.arange(world.num_profiles), numbers))
    room = _room(world, node_class)
    if room[with_gpu].all():
        return profile
    # Large profiles choose first: what has room for them has room for all smaller ones.
    left = generator.permutation(with_gpu)
    for chosen in np.argsort(-sizes, kind="stable"):
        taken = left[room[left, chosen]][: numbers[chosen]]
        profile[taken] = chosen
        left = left[~np.isin(left, taken)]
    # Rounding may leave a large profile without a node to go to.
    by_size = np.argsort(sizes, kind="stable")
    profile[left] = by_size[np.argmax(room[np.ix_(left, by_size)], axis=1)]
    return profile


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


def write_nodes(world: World, state: FleetState, b: int, seed: int) -> NodeDraw:
    """Write the nodes of an episode into an empty fleet, but for what follows from them.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        As :func:`~edgegym.simulator.state.allocate` returns it, changed in place.
    b : int
        Which fleet.
    seed : int
        Seed of the episode.

    Returns
    -------
    NodeDraw
        The same nodes.
    """
    nodes = draw_nodes(world, seed)
    count = len(nodes.x_km)
    state.seed[b] = seed
    state.scalars[b, FINGERPRINT] = world.fingerprint
    state.node_count[b] = count
    state.node_x[b, :count] = nodes.x_km
    state.node_y[b, :count] = nodes.y_km
    state.up[b, :count] = True
    state.profile[b, :count] = nodes.profile
    state.slots[b] = world.slots
    if len(world.classes.share) > 1:
        state.slots[b, :count] = world.classes.slots[nodes.node_class]
    build_grid(world, state, b, grid_shape(world))
    return nodes


def place_nodes(world: World, state: FleetState, b: int, seed: int) -> None:
    """Give an empty fleet of the fast loop its nodes.

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
    """
    nodes = write_nodes(world, state, b, seed)
    state.holding[b, : len(nodes.profile)] = nodes.profile
    lane = lane_of(world, state, b)
    refresh_nodes(lane)
    _start_telemetry(lane)
