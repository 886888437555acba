"""Least new tokens times the number of requests there: (L − h)(n + 1).

LMetric's product of the tokens to prefill and the batch size, counting the new request.
"""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routing_columns import HIT_TOKENS, INPUT_TOKENS, REQUESTS
from edgegym.simulator.state import Floats


@inlined
def _product(table: Floats, row: int) -> float:
    return (table[row, INPUT_TOKENS] - table[row, HIT_TOKENS]) * (table[row, REQUESTS] + 1.0)


@inlined
def pick_lmetric(table: Floats, count: int) -> int:
    """Return the row with the least (L − h)(n + 1)."""
    best = 0
    for row in range(1, count):
        if _product(table, row) < _product(table, best):
            best = row
    return best
