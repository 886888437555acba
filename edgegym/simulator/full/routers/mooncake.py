"""Least transfer plus queue plus prefill: the rule of Mooncake's conductor.

With the longest match H of all candidates, a candidate whose own match is h computes the rest of
the prompt by itself while H ≤ ``transfer_ratio`` · h; else it is assumed to get the missing H − h
tokens over the backhaul first, at its nominal rate, and to compute the rest after H. Whether they
are really fetched is the fetch controller's decision. Queue is the advertised wait.
"""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routing_columns import HIT_TOKENS, PREFILL_S, WAIT_S
from edgegym.simulator.full.routing_groups import RuleParams
from edgegym.simulator.state import Floats


@inlined
def longest_match(table: Floats, count: int) -> float:
    """Return the most tokens that any candidate holds of the prompt."""
    longest = 0.0
    for row in range(count):
        longest = max(longest, table[row, HIT_TOKENS])
    return longest


@inlined
def pick_mooncake(
    rule: RuleParams, table: Floats, count: int, longest: float, full_prefill_s: Floats
) -> int:
    """Return the row with the least sum; ``full_prefill_s`` holds the prefill after ``longest``."""
    best, least = 0, 0.0
    for row in range(count):
        cost_s = table[row, PREFILL_S]
        if longest > rule.transfer_ratio * table[row, HIT_TOKENS]:
            missing = longest - table[row, HIT_TOKENS]
            cost_s = missing * rule.transfer_s_per_token + full_prefill_s[row]
        cost_s += table[row, WAIT_S]
        if row == 0 or cost_s < least:
            best, least = row, cost_s
    return best
