"""The switch between the rules (an if-chain: it inlines and caches across processes)."""

import numpy as np

from edgegym.simulator.columns import HOLDS_SHIFT, PLACE, SITE_BITS
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.routers.cache_aware import pick_cache_aware
from edgegym.simulator.full.routers.kv_router import pick_kv_router
from edgegym.simulator.full.routers.least_loaded import pick_least_loaded
from edgegym.simulator.full.routers.lmetric import pick_lmetric
from edgegym.simulator.full.routers.mooncake import longest_match, pick_mooncake
from edgegym.simulator.full.routers.power_of_two import pick_power_of_two
from edgegym.simulator.full.routers.preble import pick_preble
from edgegym.simulator.full.routers.session_affinity import pick_session_affinity
from edgegym.simulator.full.routing_columns import INPUT_TOKENS, NODE, NUM_FEATURES
from edgegym.simulator.full.routing_groups import USER, Routing
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.full.user_router import RULE_FAILED, call_rule
from edgegym.world.compiled import ROUTER_KINDS

LEAST_LOADED = ROUTER_KINDS.index("least_loaded")
POWER_OF_TWO = ROUTER_KINDS.index("power_of_two")
LMETRIC = ROUTER_KINDS.index("lmetric")
CACHE_AWARE = ROUTER_KINDS.index("cache_aware")
KV_ROUTER = ROUTER_KINDS.index("kv_router")
PREBLE = ROUTER_KINDS.index("preble")
MOONCAKE = ROUTER_KINDS.index("mooncake")


@inlined
def _pick_mooncake(routing: Routing, count: int) -> int:
    table, scores, stock = routing.state.candidates, routing.state.scores, routing.stock
    longest = longest_match(table, count)
    for row in range(count):
        place = routing.nodes.work[int(table[row, NODE]), PLACE]
        held = np.float64(routing.area.sites[place, SITE_BITS]).view(np.int64) >> HOLDS_SHIFT
        scores[row] = prefill_seconds(
            stock.coefficients, stock.row_class[held], table[row, INPUT_TOKENS], longest
        )
    return pick_mooncake(routing.params.rule, table, count, longest, scores)


@inlined
def _pick_as_user(routing: Routing, count: int) -> int:
    """Ask the user's rule; keep the candidates on which it fails."""
    rule, table, state = routing.params.rule, routing.state.candidates, routing.state
    row = call_rule(rule.user_address, table, count, rule.user_parameters, rule.num_user_parameters)
    if row == RULE_FAILED and state.failed_count[0] == 0:
        state.failed_count[0] = count
        for index in range(count):
            for column in range(NUM_FEATURES):
                state.failed[index, column] = table[index, column]
    return row if 0 <= row < count else -1


@helper
def pick(routing: Routing, count: int) -> int:
    """Return the row of the candidate that the rule takes; −1 where a user's rule takes none.

    There is at least one candidate.
    """
    rule, table = routing.params.rule, routing.state.candidates
    kind = rule.kind
    if kind == LEAST_LOADED:
        return pick_least_loaded(table, count)
    if kind == POWER_OF_TWO:
        return pick_power_of_two(table, count)
    if kind == LMETRIC:
        return pick_lmetric(table, count)
    if kind == CACHE_AWARE:
        return pick_cache_aware(rule, table, count)
    if kind == KV_ROUTER:
        return pick_kv_router(rule, table, count, routing.state.scores)
    if kind == PREBLE:
        return pick_preble(table, count)
    if kind == MOONCAKE:
        return _pick_mooncake(routing, count)
    if kind == USER:
        return _pick_as_user(routing, count)
    return pick_session_affinity(table, count)
