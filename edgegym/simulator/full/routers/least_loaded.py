"""Each request goes to the candidate with the fewest requests per slot, n / c.

The usual "least requests" of load balancers, with the number of slots as the node's weight.
"""

import math

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routing_columns import REQUESTS, SLOTS
from edgegym.simulator.state import Floats


@inlined
def load_per_slot(table: Floats, row: int) -> float:
    """Return n / c of a candidate; inf without slots."""
    if table[row, SLOTS] == 0.0:
        return math.inf
    return table[row, REQUESTS] / table[row, SLOTS]


@inlined
def pick_least_loaded(table: Floats, count: int) -> int:
    """Return the row of the candidate with the least n / c."""
    best = 0
    for row in range(1, count):
        if load_per_slot(table, row) < load_per_slot(table, best):
            best = row
    return best
