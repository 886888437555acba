"""The longest match while load is balanced, else the least loaded: the rule of SGLang's router.

Load is the number of requests n, as there, not n / c. It is unbalanced when max − min >
``max_gap`` and max > ``max_ratio`` · min over the candidates. While balanced, the longest
advertised match wins where it is more than ``match_share`` of the prompt; else the least n.
(SGLang's router then takes the worker with the smallest tree; here nodes hold what their profiles
say.)
"""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routing_columns import HIT_TOKENS, INPUT_TOKENS, REQUESTS
from edgegym.simulator.full.routing_groups import RuleParams
from edgegym.simulator.state import Floats


@inlined
def pick_cache_aware(rule: RuleParams, table: Floats, count: int) -> int:
    """Return the row with the longest match, or with the fewest requests."""
    least, most, longest = 0, 0, 0
    for row in range(1, count):
        if table[row, REQUESTS] < table[least, REQUESTS]:
            least = row
        if table[row, REQUESTS] > table[most, REQUESTS]:
            most = row
        if table[row, HIT_TOKENS] > table[longest, HIT_TOKENS]:
            longest = row
    low, high = table[least, REQUESTS], table[most, REQUESTS]
    unbalanced = high - low > rule.max_gap and high > rule.max_ratio * low
    matches = table[longest, HIT_TOKENS] > rule.match_share * table[longest, INPUT_TOKENS]
    return longest if matches and not unbalanced else least
