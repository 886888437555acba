"""How much prefix state the nodes of a fleet hold."""

import numpy as np

from edgegym.simulator.full.lru_data import USED_BYTES
from edgegym.simulator.state import FleetState, Ints
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache


def cached_tokens(scenario: Scenario, state: FleetState, b: int) -> Ints:
    """Return the tokens of prefix state that each node really holds now.

    Parameters
    ----------
    scenario : Scenario
        The world.
    state : FleetState
        State of B fleets.
    b : int
        Which fleet.

    Returns
    -------
    ndarray
        ``[N]`` int; each token once, however many request types share it. Of a radix cache its
        bytes over those of a token. 0 for padding nodes.
    """
    count, nodes = int(state.node_count[b]), state.node_x.shape[1]
    tokens = np.zeros(nodes, dtype=np.int64)
    if isinstance(scenario.cache, LruCache):
        assert state.full is not None
        token_bytes = scenario.compile().classes.kv_bytes_per_token
        own = token_bytes[state.full.node_class[b, :count]]
        used = state.full.lru.stations[b, :count, USED_BYTES]
        tokens[:count] = used // np.maximum(own, 1)
    else:
        held = _holding_tokens(scenario)
        tokens[:count] = held[state.holding[b, :count] % len(held)]
    return tokens


def _holding_tokens(scenario: Scenario) -> Ints:
    """Return the tokens of each holding of the catalogue, ``[H]``."""
    depth = {vertex.name: vertex.depth_tokens for vertex in scenario.forest}
    own = {
        vertex.name: vertex.depth_tokens - (depth[vertex.parent] if vertex.parent else 0)
        for vertex in scenario.forest
    }
    held = [sum(own[name] for name in holding) for holding in scenario.catalogue.holdings]
    return np.array(held, dtype=np.int64)
