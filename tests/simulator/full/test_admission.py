"""When nodes and tiers close and reopen, and where requests go then."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.simulator.full.columns import NOT_SPILLED, REFUSED, SPILLED_NODE, SPILLED_ORIGIN
from edgegym.simulator.full.routing_columns import TIER_BUSY, TIER_NODES, TIER_SLOTS
from tests.simulator.full.stations import BIG, CODE, NONE, SMALL, Stations

pytestmark = pytest.mark.twin

JUST = 1e-9
NODE_RULE = {"ewma_s": 10.0, "node": {"close_above": 0.8, "reopen_below": 0.5}}
TIER_RULE = {"ewma_s": 10.0, "tier": {"close_above": 0.8, "reopen_below": 0.5}}


def test_a_node_closes_and_reopens_when_its_average_says_so():
    stations = Stations(admission=NODE_RULE)
    stations.occupy(0, 3, 1, 0.0)  # four of four: the average is 1 - e^(-t / 10)
    closes = 10.0 * math.log(5.0)
    assert stations.is_open(0, closes - JUST)
    assert not stations.is_open(0, closes + JUST)
    stations.occupy(0, 0, 0, 20.0)
    reopens = 20.0 + 10.0 * math.log((1.0 - math.exp(-2.0)) / 0.5)
    assert not stations.is_open(0, reopens - JUST)
    assert stations.is_open(0, reopens + JUST)
    assert stations.is_open(1, 18.0)


def test_between_the_thresholds_a_node_stays_what_it_is():
    stations = Stations(admission=NODE_RULE)
    stations.occupy(0, 2, 0, 0.0)
    assert stations.is_open(0, 1000.0)  # tends to 0.5
    stations.occupy(0, 4, 4, 10.0)
    mean = 0.5 * (1.0 - math.exp(-1.0))
    closes = 10.0 + 10.0 * math.log((2.0 - mean) / (2.0 - 0.8))
    assert stations.is_open(0, closes - JUST)
    assert not stations.is_open(0, closes + JUST)
    stations.occupy(0, 3, 0, 20.0)
    assert not stations.is_open(0, 1000.0)  # tends to 0.75
    stations.occupy(0, 2, 0, 30.0)
    assert not stations.is_open(0, 1e6)  # tends to 0.5, never below
    stations.occupy(0, 1, 0, 40.0)
    assert stations.is_open(0, 1e6)


def test_a_tier_closes_by_all_its_up_nodes_together():
    stations = Stations(admission=TIER_RULE)
    stations.occupy(0, 4, 4, 0.0)
    assert stations.is_open(0, 1000.0) is False  # 8 of 8 slots of nodes 0 and 3
    assert stations.is_open(3, 1000.0) is False
    assert stations.is_open(1, 1000.0)
    stations = Stations(admission=TIER_RULE)
    stations.occupy(0, 4, 2, 0.0)
    assert stations.is_open(0, 1000.0)  # 6 of 8
    stations.fail(3)  # 6 of 4 from time 0 on
    closes = 10.0 * math.log(1.5 / 0.7)
    assert stations.is_open(0, closes - JUST)
    assert not stations.is_open(0, closes + JUST)


def test_a_node_that_moves_takes_its_load_to_another_tier():
    stations = Stations(admission=TIER_RULE)
    stations.occupy(0, 2, 2, 0.0)
    sums = stations.routing.state.tier_sums
    assert sums[NONE].tolist() == [4, 8, 2]
    stations.routing.profile[0] = SMALL
    stations.load(0, 4, 3, 0.5)
    stations.note_load(0, 1.0)
    assert sums[NONE].tolist() == [0, 4, 1]
    assert sums[SMALL].tolist() == [4, 6, 2]
    assert (TIER_BUSY, TIER_SLOTS, TIER_NODES) == (0, 1, 2)
    stations.fail(0)
    assert sums[SMALL].tolist() == [0, 3, 1]


@given(seed=st.integers(0, 2**32), tier=st.booleans())
def test_hysteresis_follows_the_average(seed, tier):
    rng = np.random.default_rng(seed)
    close = float(rng.uniform(0.3, 1.5))
    rule = {"close_above": close, "reopen_below": float(rng.uniform(0.1, 1.0)) * close}
    stations = Stations(admission={"ewma_s": 10.0, "tier" if tier else "node": rule})
    now, mean, closed, load = 0.0, 0.0, False, [0, 0]
    for _ in range(25):
        slots = 8 if tier else 4
        x = (sum(load) if tier else load[0]) / slots
        later = now + float(rng.exponential(4.0))
        for at in np.linspace(now, later, 4):
            average = x + (mean - x) * math.exp(-(at - now) / 10.0)
            limit = rule["reopen_below"] if closed else rule["close_above"]
            if abs(average - limit) < 1e-9:
                continue
            closed = average >= rule["reopen_below"] if closed else average > close
            assert stations.is_open(0, at) == (not closed)
        mean = x + (mean - x) * math.exp(-(later - now) / 10.0)
        now = later
        which = int(rng.integers(2))
        load[which] = int(rng.integers(0, 9))
        stations.occupy(0 if which == 0 else 3, min(load[which], 4), max(load[which] - 4, 0), now)


def overloaded(*nodes: int, admission: dict, **settings) -> Stations:
    """Return the five nodes of which some have been closed for long at time 1000."""
    stations = Stations(admission=admission, **settings)
    for node in nodes:
        stations.occupy(node, 9, 0, 0.0)
    return stations


EVERY_RULE = ("nearest", "prefix_aware", "load_aware", "least_loaded", "power_of_two", "lmetric",
              "cache_aware", "kv_router", "preble", "mooncake", "session_affinity")  # fmt: skip


def test_spill_to_the_next_best():
    stations = overloaded(1, admission=NODE_RULE, routing={"kind": "load_aware"})
    decision = stations.route(now=1000.0)
    assert (decision.node, decision.spilled) == (0, SPILLED_NODE)
    assert decision.predicted_s == pytest.approx(1.0)
    # node 1 would be better, but is closed
    assert (decision.runner_up, decision.nearest) == (2, 0)
    assert decision.runner_up_s == pytest.approx(1.6)
    stations = overloaded(4, admission=NODE_RULE, routing={"kind": "lmetric"})
    decision = stations.route(now=1000.0)
    assert (decision.node, decision.spilled) == (2, SPILLED_NODE)
    assert decision.runner_up == 1
    # others are not affected
    stations = overloaded(0, admission=NODE_RULE, routing={"kind": "load_aware"})
    assert stations.route(now=1000.0).spilled == NOT_SPILLED
    assert stations.route(now=0.0).node == 1


def test_candidates_are_sought_farther_away_when_the_near_ones_are_closed():
    stations = overloaded(
        0, 1, 2,
        admission=NODE_RULE,
        routing={"kind": "least_loaded", "candidates_per_profile": 1},
    )  # fmt: skip
    decision = stations.route(now=1000.0)
    assert (decision.node, decision.spilled, decision.nearest) == (3, SPILLED_NODE, 0)
    assert decision.runner_up == 4


@pytest.mark.parametrize("kind", EVERY_RULE)
def test_spills_of_every_rule(kind):
    everyone = range(5)
    routing = {"kind": kind}
    for node in everyone:
        others = [other for other in everyone if other != node]
        decision = overloaded(*others, admission=NODE_RULE, routing=routing).route(now=1000.0)
        assert decision.node == node
        assert decision.runner_up == -1
    decision = overloaded(*everyone, admission=NODE_RULE, routing=routing).route(now=1000.0)
    assert (decision.node, decision.nearest) == (-1, 0)
    assert decision.spilled == REFUSED
    far = {"rtt_s": 50.0}
    for spill, expected in (("next_best", 5), ("origin", 5), ("reject", -1)):
        stations = overloaded(
            *everyone, admission=NODE_RULE | {"spill": spill}, routing=routing, origin=far
        )
        decision = stations.route(now=1000.0)
        assert decision.node == expected
        assert decision.spilled == (SPILLED_ORIGIN if expected == 5 else REFUSED)
        stations.fail(5)
        assert stations.route(now=1000.0).node == -1


def test_spill_to_the_origin_or_nowhere():
    far = {"rtt_s": 50.0}
    for kind, best in (("load_aware", 1), ("lmetric", 4)):
        for spill, expected in (("next_best", None), ("origin", 5), ("reject", -1)):
            stations = overloaded(
                best, admission=NODE_RULE | {"spill": spill}, routing={"kind": kind}, origin=far
            )
            decision = stations.route(now=1000.0)
            if expected is None:
                assert decision.node not in (best, 5, -1)
                assert decision.spilled == SPILLED_NODE
            else:
                assert decision.node == expected
                assert decision.spilled == (SPILLED_ORIGIN if expected == 5 else REFUSED)
                # the best of the open paths not taken
                assert decision.runner_up == (0 if best == 1 else 1)
            assert stations.route(CODE, now=0.0).node != -1
            stations.fail(5)
            if spill == "origin":  # the next best where the origin is down
                assert stations.route(now=1000.0).spilled == SPILLED_NODE


def test_a_closed_tier_is_skipped_whole():
    stations = overloaded(4, admission=TIER_RULE, routing={"kind": "lmetric"})
    assert stations.routing.state.tier_sums[BIG].tolist() == [9, 4, 2]
    # nodes 2 and 4 are out: 4000, 1800, 1000
    decision = stations.route(now=1000.0)
    assert (decision.node, decision.spilled) == (3, SPILLED_NODE)


def test_a_request_is_sent_on_from_a_closed_node_only_where_that_is_wanted():
    for redirect in (False, True):
        stations = overloaded(1, admission=NODE_RULE | {"redirect": redirect})
        assert stations.must_move_on(1, 1000.0) == redirect
        assert not stations.must_move_on(0, 1000.0)
        assert not stations.must_move_on(1, 0.0)
