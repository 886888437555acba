"""Marks of nodes, such as profiles and classes, that stand together or apart."""

import numpy as np
from numpy.random import Generator

from edgegym.jit import kernel
from edgegym.simulator.compiling import helper
from edgegym.simulator.layouts import nearest_others
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.compiled import World

_NEIGHBOURS = 4
_PROPOSALS_PER_NODE = 50
_MOST_PROPOSALS = 200_000
_ROUNDS = 20


def neighbours_of(world: World, x: Floats, y: Floats) -> Ints:
    """Return each node's four nearest others, fewer in smaller fleets, ``[N, k]``.

    Parameters
    ----------
    world : World
        Gives the region.
    x, y : ndarray, shape [N]
        Places in km.
    """
    return nearest_others(world, x, y, min(_NEIGHBOURS, len(x) - 1))


def clustering_of(marks: Ints, neighbours: Ints) -> float:
    """Return how much equal marks stand together, from −1 to 1 (a join-count statistic).

    With J the share of equal marks among all pairs of a node and one of its neighbours, and E its
    mean over all ways to hand out the same marks: (J − E) / (1 − E) where J is above E, else
    (J − E) / E.

    Parameters
    ----------
    marks : ndarray, shape [N]
        Any whole numbers from 0.
    neighbours : ndarray, shape [N, k]
        As :func:`neighbours_of` returns them.

    Returns
    -------
    float
        0 where all marks are equal or none are, whatever their places.
    """
    expected = _expected_share(marks)
    if not 0.0 < expected < 1.0 or neighbours.size == 0:
        return 0.0
    share = float((marks[:, None] == marks[neighbours]).mean())
    return (share - expected) / (1.0 - expected if share > expected else expected)


def _expected_share(marks: Ints) -> float:
    """Return the chance that two different nodes have equal marks."""
    numbers, count = np.bincount(marks), len(marks)
    return float((numbers * (numbers - 1)).sum() / max(count * (count - 1), 1))


def rearrange(
    marks: Ints, neighbours: Ints, allowed: Bools, clustering: float, generator: Generator
) -> None:
    """Swap marks of random pairs of nodes until they are clustered as wanted, or near it.

    Parameters
    ----------
    marks : ndarray, shape [N]
        Changed in place; how often each stands there stays the same.
    neighbours : ndarray, shape [N, k]
        As :func:`neighbours_of` returns them.
    allowed : ndarray of bool, shape [N, marks]
        Which marks each node may get.
    clustering : float
        Value of :func:`clustering_of` to reach.
    generator : numpy.random.Generator
        Source of randomness.
    """
    expected = _expected_share(marks)
    if not 0.0 < expected < 1.0 or neighbours.size == 0:
        return
    share = expected + clustering * (1.0 - expected if clustering > 0 else expected)
    target = share * neighbours.size
    start, other = _edges(neighbours)
    equal = int((marks[:, None] == marks[neighbours]).sum())
    proposals = min(_PROPOSALS_PER_NODE * len(marks), _MOST_PROPOSALS)
    for _ in range(_ROUNDS):
        draws = generator.random((proposals, 2))
        before = equal
        equal = _swap(marks, start, other, allowed, equal, target, draws)
        if equal == before or abs(equal - target) < 1.0:
            return


def _edges(neighbours: Ints) -> tuple[Ints, Ints]:
    """Return for each node whom it is paired with, from either side, as offsets and one list."""
    count, number = neighbours.shape
    ends = np.concatenate((np.repeat(np.arange(count), number), neighbours.ravel()))
    others = np.concatenate((neighbours.ravel(), np.repeat(np.arange(count), number)))
    order = np.argsort(ends, kind="stable")
    start = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends, minlength=count), out=start[1:])
    return start, others[order]


@helper
def _gain(marks: Ints, start: Ints, other: Ints, node: int, new: int, but: int) -> int:
    """Return how many more of a node's pairs are equal with another mark, but those with one."""
    gain = 0
    for edge in range(start[node], start[node + 1]):
        partner = other[edge]
        if partner != but:
            gain += int(marks[partner] == new) - int(marks[partner] == marks[node])
    return gain


@kernel
def _swap(
    marks: Ints,
    start: Ints,
    other: Ints,
    allowed: Bools,
    equal: int,
    target: float,
    draws: Floats,
) -> int:
    """Try the drawn pairs of nodes, keep what comes nearer; return how many pairs are equal."""
    count = len(marks)
    for row in range(len(draws)):
        first, second = int(draws[row, 0] * count), int(draws[row, 1] * count)
        one, two = marks[first], marks[second]
        if one == two or not allowed[first, two] or not allowed[second, one]:
            continue
        after = equal + _gain(marks, start, other, first, two, second)
        after += _gain(marks, start, other, second, one, first)
        if abs(after - target) < abs(equal - target):
            marks[first], marks[second] = two, one
            equal = after
    return equal
