"""A hash of the family picks the node: the candidate with the highest hash of (family, node).

Rendezvous hashing (Thaler and Ravishankar 1998): when a node closes or goes away, only its own
families move, each to its next candidate, and come back with it. The hash is the same in all
worlds.
"""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.random import uniform_of
from edgegym.simulator.full.routing_columns import FAMILY, NODE
from edgegym.simulator.state import Floats


@inlined
def pick_session_affinity(table: Floats, count: int) -> int:
    """Return the row of the candidate with the highest hash."""
    best, highest = 0, -1.0
    for row in range(count):
        value = uniform_of(0, int(table[row, FAMILY]), int(table[row, NODE]))
        if value > highest:
            best, highest = row, value
    return best
