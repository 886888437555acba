"""Every rule on a fleet of five nodes, worked out by hand.

The numbers of the fleet stand in :mod:`tests.simulator.full.stations`.
"""

import math

import numpy as np
import pytest

from tests.simulator.full.stations import BIG, CHAT, CODE, OTHER, SMALL, Stations

pytestmark = pytest.mark.twin

_64_BITS = (1 << 64) - 1


def drawn(key: int, index: int, draw: int) -> float:
    """Return the draw as its definition says, in Python's integers."""

    def mixed(z: int) -> int:
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & _64_BITS
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & _64_BITS
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    bits = mixed((key ^ (index * golden)) & _64_BITS)
    return (mixed((bits + (draw + 1) * golden) & _64_BITS) >> 11) / 2**53


@pytest.mark.parametrize(
    ("rule", "chosen", "predicted_s", "runner_up", "runner_up_s"),
    [
        ({"kind": "nearest"}, 0, 1.0, 1, 0.7),
        ({"kind": "prefix_aware"}, 2, 1.6, 1, 0.7),
        ({"kind": "load_aware"}, 1, 0.7, 0, 1.0),
        # n/c: 0.75, 0.67, 1.5, 0, 0.5
        ({"kind": "least_loaded"}, 3, 1.9, 1, 0.7),
        ({"kind": "least_loaded", "candidates_per_profile": 1}, 1, 0.7, 0, 1.0),
        # (L - h)(n + 1): 4000, 1800, 800, 1000, 400
        ({"kind": "lmetric"}, 4, 1.8, 1, 0.7),
        ({"kind": "lmetric", "candidates_per_profile": 1}, 2, 1.6, 1, 0.7),
        # most 3, least 0 requests; nodes 2 and 4 match 800 of 1000 tokens, the lower index wins
        ({"kind": "cache_aware"}, 2, 1.6, 1, 0.7),
        ({"kind": "cache_aware", "max_gap": 2}, 3, 1.9, 1, 0.7),
        ({"kind": "cache_aware", "max_gap": 3}, 2, 1.6, 1, 0.7),
        ({"kind": "cache_aware", "match_share": 0.8}, 3, 1.9, 1, 0.7),
        ({"kind": "cache_aware", "match_share": 0.79}, 2, 1.6, 1, 0.7),
        # of nodes 0, 1, 2: most 3, least 2, and 3 > 1.4 * 2 but not 3 > 1.5 * 2
        (
            {"kind": "cache_aware", "max_gap": 0, "max_ratio": 1.4, "candidates_per_profile": 1},
            1, 0.7, 0, 1.0,
        ),
        (
            {"kind": "cache_aware", "max_gap": 0, "max_ratio": 1.5, "candidates_per_profile": 1},
            2, 1.6, 1, 0.7,
        ),
        # blocks of 100: 10 - (0, 4, 8, 0, 8) + (1, 3, 9, 0, 6) = 11, 9, 11, 10, 8
        ({"kind": "kv_router", "block_tokens": 100}, 4, 1.8, 1, 0.7),
        # blocks of 500, whole ones match, begun ones count: 2 - (0, 0, 1, 0, 1) + (1, 1, 2, 0, 2)
        ({"kind": "kv_router", "block_tokens": 500}, 3, 1.9, 1, 0.7),
        # without credit 11, 13, 19, 10, 16
        ({"kind": "kv_router", "block_tokens": 100, "overlap_weight": 0}, 3, 1.9, 1, 0.7),
        # credit of 0.25 blocks: 11, 12, 17, 10, 14
        ({"kind": "kv_router", "block_tokens": 100, "overlap_weight": 0.25}, 3, 1.9, 1, 0.7),
        # 200 new < 800 cached: of nodes 2 and 4 the one with less of 3 * 0.5 + 0.2, 0.5 + 0.2
        ({"kind": "preble"}, 4, 1.8, 1, 0.7),
        ({"kind": "preble", "candidates_per_profile": 1}, 2, 1.6, 1, 0.7),
        # transfer of 800 or 400 tokens at 1 us each: 0.2008, 0.2004, 0.2 + 1, 0.2008, 0.2
        ({"kind": "mooncake"}, 4, 1.8, 1, 0.7),
        ({"kind": "mooncake", "candidates_per_profile": 1}, 1, 0.7, 0, 1.0),
        # 800 is not more than 2 * 400: node 1 computes its 600 new tokens
        (
            {"kind": "mooncake", "candidates_per_profile": 1, "transfer_ratio": 2},
            0, 1.0, 1, 0.7,
        ),
    ],
)  # fmt: skip
def test_rule(rule, chosen, predicted_s, runner_up, runner_up_s):
    decision = Stations(routing=rule).route()
    assert decision.node == chosen
    assert decision.nearest == 0
    assert decision.distance_squared_km2 == chosen**2
    assert decision.predicted_s == pytest.approx(predicted_s, abs=1e-12)
    assert decision.runner_up == runner_up
    assert decision.runner_up_s == pytest.approx(runner_up_s, abs=1e-12)
    assert decision.spilled == 0


def test_preble_balances_where_too_little_is_cached():
    stations = Stations(routing={"kind": "preble"})
    # `code` matches nowhere: n * 0.5 + 0.6 is least for the idle node 3
    assert stations.route(CODE).node == 3
    # 800 of 1600 tokens are cached: 800 new are not fewer; costs 3.1, 2.2, 2.3, 1.6, 1.3
    assert stations.route(input_tokens=1600).node == 4
    stations.load(4, 3, 2, 0.5)
    assert stations.route(input_tokens=1600).node == 3
    assert stations.route(input_tokens=1599).node == 2


def test_a_tie_goes_to_the_lower_index():
    places = ((3.0, 5.0), (1.0, 5.0), (2.0, 6.0), (2.0, 4.0), (2.0, 6.0))
    for kind in ("nearest", "prefix_aware", "load_aware", "least_loaded", "lmetric", "cache_aware",
                 "kv_router", "preble", "mooncake"):  # fmt: skip
        stations = Stations(places, [BIG] * 5, routing={"kind": kind})
        for node in range(5):
            stations.load(node, 1, 2, 0.5)
            stations.routing.state.station_sums[node, 5] = 100
        decision = stations.route()
        assert (decision.node, decision.nearest, decision.runner_up) == (0, 0, 1), kind
        stations.fail(0)
        assert stations.route().node == 1, kind


@pytest.mark.parametrize("k", [1, 2])
def test_power_of_two_takes_the_less_loaded_of_two_drawn_candidates(k):
    stations = Stations(routing={"kind": "power_of_two", "candidates_per_profile": k})
    nodes = range(5) if k == 2 else range(3)
    load = (0.75, 2 / 3, 1.5, 0.0, 0.5)
    pairs = [(a, b) for a in nodes for b in nodes if a != b]
    seen = set()
    for index in range(60):
        pair = pairs[int(drawn(11, index, 0) * len(pairs))]
        assert stations.route(index=index).node == min(pair, key=lambda node: load[node])
        seen.add(frozenset(pair))
    assert len(seen) == len(pairs) / 2


def test_power_of_two_without_a_choice():
    stations = Stations(routing={"kind": "power_of_two"})
    for node in (0, 1, 2, 4):
        stations.fail(node)
    decision = stations.route()
    assert (decision.node, decision.nearest) == (3, 3)
    assert (decision.runner_up, decision.runner_up_s) == (-1, math.inf)


def test_kv_router_draws_by_softmax_when_warm():
    rule = {"kind": "kv_router", "block_tokens": 100, "temperature": 0.5}
    stations = Stations(routing=rule)
    cost = np.array([11.0, 9.0, 11.0, 10.0, 8.0])
    weight = np.exp(-(cost - 8.0) / 3.0 / 0.5)
    bounds = np.cumsum(weight) / weight.sum()
    for index in range(60):
        expected = int(np.searchsorted(bounds, drawn(11, index, 0), side="right"))
        assert stations.route(index=index).node == expected


def test_session_affinity_takes_the_highest_hash_of_family_and_node():
    for request_type in (CHAT, CODE):
        rank = sorted(range(5), key=lambda node: -drawn(0, request_type, node))
        stations = Stations(routing={"kind": "session_affinity"})
        for node in rank:
            assert stations.route(request_type).node == node
            stations.fail(node)
        assert stations.route(request_type).node == -1


def test_what_a_node_cannot_serve_it_is_not_asked():
    hits = np.array([[0.0, 0.0], [400.0, 0.0], [-1.0, 0.0], [0.0, 500.0]])
    every = ("nearest", "prefix_aware", "load_aware", "least_loaded", "power_of_two", "lmetric",
             "cache_aware", "kv_router", "preble", "mooncake", "session_affinity")  # fmt: skip
    for kind in every:
        stations = Stations(profiles=(BIG, BIG, SMALL, BIG, BIG), hits=hits, routing={"kind": kind})
        decision = stations.route()
        assert (decision.node, decision.nearest) == (2, 0), kind
        assert decision.predicted_s == pytest.approx(0.4 + 0.6 + 1.0), kind
        stations.hold([BIG] * 5)
        decision = stations.route()
        assert decision.node == -1, kind
        assert decision.nearest == 0
        assert decision.predicted_s == decision.runner_up_s == math.inf
        assert stations.route(CODE).node >= 0, kind


def test_without_any_node_up_nobody_is_served():
    stations = Stations(origin={}, routing={"kind": "load_aware"})
    for node in range(5):
        stations.fail(node)
    decision = stations.route()
    assert (decision.node, decision.nearest) == (-1, -1)


def test_the_length_of_the_request_itself_counts():
    stations = Stations(routing={"kind": "load_aware"})
    # 300 tokens: all but the last held at nodes 1, 2, 4; 0.3 s at node 0, 0.1 s of radio to node 1
    decision = stations.route(input_tokens=300)
    assert decision.node == 1
    assert decision.predicted_s == pytest.approx(0.101)
    # 50 tokens: 0.05 s at node 0
    assert stations.route(input_tokens=50).node == 0


def test_a_large_prompt_is_slower_on_the_radio():
    stations = Stations(routing={"kind": "load_aware"})
    stations.routing.params.xi_factor[CHAT] = 5.0
    decision = stations.route()
    # 0.5 + 0.6 at node 1, 1.0 at node 0
    assert decision.node == 0
    assert decision.runner_up_s == pytest.approx(1.1)
    assert stations.way_s(stations.ask(), 2, 4.0) == pytest.approx(5 * 0.4)


def test_candidates_without_profiles_are_the_nearest_of_all():
    stations = Stations(by_profile=False, routing={"kind": "lmetric", "candidates_per_profile": 1})
    # the nearest four, whatever they hold: 4000, 1800, 800, 1000
    assert stations.route().node == 2
    stations.fail(2)
    assert stations.route().node == 4


def test_other_profiles_are_candidates_too():
    stations = Stations(
        profiles=(OTHER, OTHER, OTHER, OTHER, OTHER),
        routing={"kind": "least_loaded", "candidates_per_profile": 4},
    )
    assert stations.route().node == 3
    stations = Stations(
        profiles=(OTHER, OTHER, OTHER, OTHER, OTHER),
        routing={"kind": "least_loaded", "candidates_per_profile": 3},
    )
    assert stations.route().node == 1
