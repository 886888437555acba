"""Prefix tokens that nodes hold."""

import pytest

from edgegym.simulator import Fleet
from tests.simulator.fleets import GB, place, scenario

PLACES = [(1.0, 1.0), (3.0, 1.0), (5.0, 1.0), (7.0, 1.0), (9.0, 1.0)]


@pytest.mark.twin
def test_each_token_of_a_profile_counts_once():
    fleet = Fleet(scenario())
    place(fleet, PLACES, [0, 1, 2, 3, 0])
    # `big` holds `small` too: 400 tokens, and 400 of its own.
    assert fleet.cached_tokens.tolist() == [0, 400, 800, 500, 0]


def test_what_has_not_arrived_is_not_held():
    fleet = Fleet(scenario())
    place(fleet, PLACES, [0, 1, 2, 3, 0])
    fleet.start_move(3, 2)
    assert fleet.cached_tokens.tolist() == [0, 400, 800, 0, 0]
    fleet.advance(2.5)
    assert fleet.cached_tokens.tolist() == [0, 400, 800, 800, 0]


def test_padding_nodes_hold_nothing():
    world = scenario(**{"nodes.density_per_km2": 0.05, "nodes.max_count": 30})
    fleet = Fleet(world.with_overrides({"initial.mix": {"small": 1.0}}), 3)
    count = fleet.state.node_count[0]
    assert fleet.cached_tokens.tolist() == [400] * count + [0] * (30 - count)


@pytest.mark.twin
def test_a_radix_cache_holds_its_bytes():
    fleet = Fleet(scenario(cache={"kind": "lru", "budget_bytes": 2 * GB}), 1)
    assert not fleet.cached_tokens.any()
    fleet.advance(20.0)
    held = fleet.cached_tokens
    assert held.max() > 400
    # 1000 bytes a token.
    assert held.max() <= 2 * GB // 1000
