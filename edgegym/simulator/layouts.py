"""Places of nodes: uniform, hard-core, on a perturbed lattice, or given."""

import math
from typing import Any

import numpy as np
from numpy.random import Generator

from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.compiled import World
from edgegym.world.layout import LAYOUT_KINDS

_MATERN = LAYOUT_KINDS.index("matern")
_LATTICE = LAYOUT_KINDS.index("lattice")
_COORDINATES = LAYOUT_KINDS.index("coordinates")
# A hard-core layout that still lacks nodes after so many times the usual number of candidates has
# no room left for more, and begins anew.
_MOST_CANDIDATES = 4


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


def draw_places(world: World, generator: Generator) -> tuple[Floats, Floats]:
    """Draw the places of an episode's nodes.

    Parameters
    ----------
    world : World
        The compiled scenario.
    generator : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    x, y : ndarray, shape [N]
        In km; N is ``world.max_nodes`` or a random number from 1 to that.
    """
    kind = world.layout.kind
    if kind == _COORDINATES:
        given = world.layout.coordinates_km
        # Opposite edges of a torus are one line.
        over = (world.width_km, world.height_km) if world.periodic else (np.inf, np.inf)
        return given[:, 0] % over[0], given[:, 1] % over[1]
    if kind == _MATERN:
        return _hard_core(world, generator)
    if kind == _LATTICE:
        return _near_lattice(world, generator)
    count = world.max_nodes
    if not world.layout.fixed_count:
        count = draw_node_count(generator, world.mean_nodes, world.max_nodes)
    x = generator.random(count) * world.width_km
    return x, generator.random(count) * world.height_km


def near_pairs(world: World, x: Floats, y: Floats, distance_km: float) -> Ints:
    """Return the pairs of points that are at most this far apart, ``[n, 2]``, on the region.

    Parameters
    ----------
    world : World
        Gives size and kind of the region.
    x, y : ndarray
        Places; a plain rectangle may have some outside.
    distance_km : float
        Largest distance; on a torus at most half the shorter side.
    """
    return _tree(world, x, y).query_pairs(distance_km, output_type="ndarray")


def nearest_others(world: World, x: Floats, y: Floats, number: int) -> Ints:
    """Return the indices of each point's nearest others, ``[N, number]``, nearest first."""
    _, found = _tree(world, x, y).query(np.column_stack((x, y)), np.arange(1, number + 2))
    found = found.astype(np.int64)
    # Where points coincide, a point need not be the first in its own list.
    own = found == np.arange(len(x))[:, None]
    own[~own.any(axis=1), -1] = True
    return found[~own].reshape(len(x), number)


def _tree(world: World, x: Floats, y: Floats) -> Any:
    from scipy.spatial import KDTree

    size = (world.width_km, world.height_km)
    return KDTree(np.column_stack((x, y)), boxsize=size if world.periodic else None)


def _hard_core(world: World, generator: Generator) -> tuple[Floats, Floats]:
    """Return the kept candidates of a Matérn process of type II.

    Each candidate's number is its mark: it is kept if none before it, kept or not, is near.
    """
    radius = world.layout.min_distance_km
    # Candidates beyond the edge of a plain rectangle keep the density the same up to it.
    margin = 0.0 if world.periodic else radius
    width, height = world.width_km + 2 * margin, world.height_km + 2 * margin
    disc = math.pi * radius**2
    covered = world.mean_nodes / (world.width_km * world.height_km) * disc
    # From the density of the kept ones, (1 - exp(-m pi r²)) / (pi r²) at candidate density m.
    mean = -math.log1p(-covered) / disc * width * height
    while True:
        if world.layout.fixed_count:
            x, y = _until_enough(world, generator, mean, width, height, margin)
            fits = len(x) == world.max_nodes
        else:
            number = int(generator.poisson(mean))
            x = generator.random(number) * width - margin
            y = generator.random(number) * height - margin
            kept = _kept(world, x, y, radius)
            x, y = x[kept], y[kept]
            fits = 1 <= len(x) <= world.max_nodes
        if fits:
            return x, y


def _until_enough(
    world: World, generator: Generator, mean: float, width: float, height: float, margin: float
) -> tuple[Floats, Floats]:
    """Return the first ``max_nodes`` nodes as candidates come, or fewer if they run out of room."""
    usual = math.ceil(1.2 * mean) + 10
    places = np.empty((0, 2))
    while True:
        more = generator.random((max(usual, len(places)), 2)) * [width, height] - margin
        places = np.concatenate((places, more))
        x, y = places[:, 0], places[:, 1]
        kept = np.flatnonzero(_kept(world, x, y, world.layout.min_distance_km))[: world.max_nodes]
        if len(kept) == world.max_nodes or len(places) >= _MOST_CANDIDATES * usual:
            return x[kept].copy(), y[kept].copy()


def _kept(world: World, x: Floats, y: Floats, radius: float) -> Bools:
    """Return which candidates are inside the region and have none before them nearby."""
    kept = (x >= 0) & (x < world.width_km) & (y >= 0) & (y < world.height_km)
    kept[near_pairs(world, x, y, radius).max(axis=1)] = False
    return kept


def _near_lattice(world: World, generator: Generator) -> tuple[Floats, Floats]:
    count, jitter = world.max_nodes, world.layout.jitter
    columns = max(1, round(math.sqrt(count * world.width_km / world.height_km)))
    rows = -(-count // columns)
    cell = generator.permutation(columns * rows)[:count]
    place = 0.5 + jitter * (generator.random((2, count)) - 0.5)
    shift = generator.random(2) if world.periodic else np.zeros(2)
    width, height = world.width_km / columns, world.height_km / rows
    x = (cell % columns + place[0] + shift[0]) * width
    y = (cell // columns + place[1] + shift[1]) * height
    return (x % world.width_km, y % world.height_km) if world.periodic else (x, y)
