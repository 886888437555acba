"""The less loaded of two random candidates (Mitzenmacher 2001), by requests per slot, n / c.

The two differ, and every pair is equally likely.
"""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routers.least_loaded import load_per_slot
from edgegym.simulator.full.routing_columns import DRAW
from edgegym.simulator.state import Floats


@inlined
def pick_power_of_two(table: Floats, count: int) -> int:
    """Return the row of the less loaded one of two candidates drawn by the request's number."""
    if count == 1:
        return 0
    # One draw stands for an ordered pair.
    pair = int(table[0, DRAW] * (count * (count - 1)))
    one, other = pair // (count - 1), pair % (count - 1)
    other += 1 if other >= one else 0
    low, high = min(one, other), max(one, other)
    return high if load_per_slot(table, high) < load_per_slot(table, low) else low
