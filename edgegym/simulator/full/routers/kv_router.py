"""Least prefill blocks, less a credit for those that match, plus decode blocks: Dynamo's KV router.

cost = ⌈L / b⌉ − w ⌊h / b⌋ + ⌈tokens in use / b⌉ with blocks of b tokens and the weight w of an
overlap. Tokens in use are the input and output tokens of the node's requests, as last reported.
With a temperature T > 0 a candidate is drawn with probability ∝ exp(−cost / (range · T)), range
being that of the costs (all equally likely where it is 0); T = 0 takes the least.
"""

import math

from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.routing_columns import DRAW, HIT_TOKENS, INPUT_TOKENS, TOKENS_IN_USE
from edgegym.simulator.full.routing_groups import RuleParams
from edgegym.simulator.state import Floats


@inlined
def pick_kv_router(rule: RuleParams, table: Floats, count: int, scores: Floats) -> int:
    """Return the row with the least cost, or a drawn one."""
    block = rule.block_tokens
    best, high = 0, -math.inf
    for row in range(count):
        prompt = math.ceil(table[row, INPUT_TOKENS] / block)
        overlap = math.floor(table[row, HIT_TOKENS] / block)
        decoding = math.ceil(table[row, TOKENS_IN_USE] / block)
        scores[row] = prompt - rule.overlap_weight * overlap + decoding
        high = max(high, scores[row])
        if scores[row] < scores[best]:
            best = row
    low = scores[best]
    if rule.temperature == 0.0:
        return best
    scale = rule.temperature * (high - low) if high > low else 1.0
    total = 0.0
    for row in range(count):
        total += math.exp((low - scores[row]) / scale)
        scores[row] = total
    point = table[0, DRAW] * total
    for row in range(count - 1):
        if point < scores[row]:
            return row
    return count - 1
