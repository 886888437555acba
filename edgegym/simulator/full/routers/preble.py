"""Exploit the longest match when it is longer than the rest of the prompt, else balance load.

Preble's E2 rule. Where L − h < h for the longest match h, the cheapest candidate with that match;
else the cheapest of all. The cost is the work ahead, n · (mean time until a slot gets free when all
are taken), plus the request's own prefill: seconds, as Preble's load is.
"""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routing_columns import (
    HIT_TOKENS,
    INPUT_TOKENS,
    PREFILL_S,
    REQUEST_S,
    REQUESTS,
)
from edgegym.simulator.state import Floats


@inlined
def _cost_s(table: Floats, row: int) -> float:
    return table[row, REQUESTS] * table[row, REQUEST_S] + table[row, PREFILL_S]


@inlined
def pick_preble(table: Floats, count: int) -> int:
    """Return the row of the cheapest candidate, perhaps only of those with the longest match."""
    longest = 0.0
    for row in range(count):
        longest = max(longest, table[row, HIT_TOKENS])
    exploits = table[0, INPUT_TOKENS] - longest < longest
    best = -1
    for row in range(count):
        if exploits and table[row, HIT_TOKENS] < longest:
            continue
        if best < 0 or _cost_s(table, row) < _cost_s(table, best):
            best = row
    return best
