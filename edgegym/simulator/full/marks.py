"""Heaps of finish marks: one for each station, all in the columns of the requests themselves.

A pairing heap needs two links for each request and no room of its own, so a million stations with
a hundred slots each cost what their requests cost.
"""

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.state import Floats, Ints

MARK = 0  # column of `marks`: where the station's progress is when the request is finished

# Columns of `links`.
CHILD = 0  # first of the heaps below
SIBLING = 1  # next beside this one
RANK = 2  # which of equal marks goes first: the smaller
NUM_LINKS = 3


@inlined
def _meld(marks: Floats, links: Ints, one: int, other: int) -> int:
    """Make one heap of two that are not empty, and return its root."""
    if marks[other, MARK] < marks[one, MARK] or (
        marks[other, MARK] == marks[one, MARK] and links[other, RANK] < links[one, RANK]
    ):
        one, other = other, one
    links[other, SIBLING] = links[one, CHILD]
    links[one, CHILD] = other
    return one


@inlined
def add_mark(marks: Floats, links: Ints, root: int, record: int) -> int:
    """Add a request, whose mark and rank are set, to a heap (-1 when empty); return the root."""
    links[record, CHILD] = -1
    links[record, SIBLING] = -1
    return record if root < 0 else _meld(marks, links, root, record)


@helper
def without_first(marks: Floats, links: Ints, root: int) -> int:
    """Remove the first of a heap that is not empty; return the root, -1 when it is empty then."""
    heap, pairs = links[root, CHILD], -1
    while heap >= 0:
        other = links[heap, SIBLING]
        following = -1
        if other >= 0:
            following = links[other, SIBLING]
            heap = _meld(marks, links, heap, other)
        links[heap, SIBLING] = pairs
        pairs, heap = heap, following
    root = -1
    while pairs >= 0:
        following = links[pairs, SIBLING]
        links[pairs, SIBLING] = -1
        root = pairs if root < 0 else _meld(marks, links, root, pairs)
        pairs = following
    return root
