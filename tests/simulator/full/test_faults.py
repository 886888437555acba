"""Failures and recoveries, worked out by hand on two nodes 2 km apart.

A `chat` prompt takes 1 s of prefill without a hit and 0.5 s of decode; the radio 0.1 s/km² · r².
"""

import numpy as np
import pytest

from edgegym.simulator import Fleet
from tests.simulator.fleets import GB, scenario
from tests.simulator.full.worlds import BIG, CHAT, NONE, HandMade

pytestmark = pytest.mark.twin

PLACES = [(1.0, 1.0), (3.0, 1.0)]
COMPLETED, INTERRUPTED, REJECTED = range(3)
ORIGIN = {"rtt_s": 0.3, "slots": 1, "prefill_linear_s": 1e-4, "tpot_s": 0.01, "affinity": 0.0}


def outage(begin_s, end_s, what="node", node=0):
    where = {"node": node} if what == "node" else {}
    return {"what": what, "begin_s": begin_s, "end_s": end_s} | where


def fleet_with(*outages, requests, profiles=(NONE, NONE), **overrides):
    return HandMade(PLACES, profiles, requests, failures={"outages": list(outages)}, **overrides)


def test_what_has_no_first_token_is_sent_again_with_its_clock_running():
    # It starts at node 0 at 0.5; at 1.0 it goes to node 1, 0.4 s away, and starts anew.
    world = fleet_with(outage(1.0, 5.0), requests=[(0.5, 1.0, 1.0, CHAT)])
    table = world.after(10.0)
    assert table["outcome"].tolist() == [COMPLETED]
    assert table["node"].tolist() == [1]
    assert table["redispatches"].tolist() == [1]
    assert table["radio_s"] == pytest.approx(0.9)
    assert table["wait_s"] == pytest.approx(0.0)
    assert table["ttft_s"] == pytest.approx(1.9)
    assert table["end_to_end_s"] == pytest.approx(2.4)


def test_what_has_its_first_token_is_interrupted():
    world = fleet_with(outage(1.7, 5.0), requests=[(0.5, 1.0, 1.0, CHAT)])
    window = world.fleet.advance(10.0)
    table = world.sink.table()
    assert table["outcome"].tolist() == [INTERRUPTED]
    assert table["ttft_s"] == pytest.approx(1.0)
    assert table["end_to_end_s"] == pytest.approx(1.2)
    assert (window.interrupted, window.completed, window.first_tokens) == (1, 0, 1)
    assert window.failures == 1


def test_requests_on_the_radio_and_in_the_queue_go_elsewhere_in_their_order():
    # Node 0 has 4 slots: the fifth waits, the sixth is on its way when the node fails.
    requests = [(0.01 * k, 1.0, 1.0, CHAT) for k in range(5)] + [(0.5, 2.0, 1.0, CHAT)]
    world = fleet_with(outage(0.55, 9.0), requests=requests, routing={"kind": "nearest"})
    window = world.fleet.advance(20.0)
    table = world.sink.table().by_request()
    assert table["node"].tolist() == [1] * 6
    # The first five arrive together at 0.95, four slots; the sixth is nearer: at 0.65.
    assert table["arrival_s"] + table["radio_s"] == pytest.approx([0.95] * 5 + [0.65])
    start = table["arrival_s"] + table["radio_s"] + table["wait_s"]
    assert start == pytest.approx([0.95, 0.95, 0.95, 2.15, 2.45, 0.65])
    assert window.redispatched == 6


def test_a_long_queue_goes_elsewhere_in_its_order():
    """Records are used again and again: their order is not that of the requests."""
    requests = [(0.15 * k, 1.0, 1.0, CHAT) for k in range(90)]
    world = fleet_with(outage(12.05, 99.0), requests=requests, routing={"kind": "nearest"})
    table = world.after(80.0)
    again = table["redispatches"] == 1
    assert again.sum() > 40
    start_s = (table["arrival_s"] + table["radio_s"] + table["wait_s"])[again]
    assert (np.diff(start_s) >= 0.0).all()


def test_a_node_comes_back_empty_and_can_be_moved():
    late = [(3.0, 1.0, 1.0, CHAT)]
    world = fleet_with(outage(1.0, 2.0), requests=late, profiles=(BIG, NONE))
    world.fleet.advance(1.5)
    assert not world.fleet.state.up[0, 0]
    assert not world.fleet.legal_moves()[0].any()
    table = world.after(8.0)
    assert world.fleet.state.up[0].all()
    assert world.fleet.state.profile[0].tolist() == [NONE, NONE]
    assert (table["hit_tokens"].tolist(), table["node"].tolist()) == ([0], [0])
    assert world.fleet.legal_moves()[0].any()


def test_without_an_empty_profile_a_node_fetches_its_own_again():
    profiles = [{"name": "small", "vertices": ["small"]}, {"name": "big", "vertices": ["big"]}]
    world = HandMade(
        PLACES,
        (1, 0),
        [(2.5, 1.0, 1.0, CHAT), (4.5, 1.0, 1.0, CHAT)],
        failures={"outages": [outage(1.0, 2.0)]},
        profiles=profiles,
        initial={"mix": {"small": 1.0}},
        routing={"kind": "nearest"},
    )
    window = world.fleet.advance(9.0)
    # 2 GB at 1 GB/s: it holds `big` again at 4.0.
    table = world.sink.table().by_request()
    assert table["hit_tokens"].tolist() == [0, 800]
    assert window.refresh_bytes == 2 * GB
    assert window.bytes_moved == 0


def test_a_request_that_nobody_can_take_is_rejected():
    both = (outage(1.0, 5.0), outage(1.2, 5.0, node=1))
    world = fleet_with(*both, requests=[(0.5, 1.0, 1.0, CHAT), (2.0, 1.0, 1.0, CHAT)])
    window = world.fleet.advance(10.0)
    assert world.sink.table()["outcome"].tolist() == [REJECTED, REJECTED]
    assert (window.rejected, window.decided, window.hits) == (2, 2, 0)


def test_the_origin_fails_like_a_node():
    # It answers after 0.3 + 0.1 s, a node after 1 s; from 0.35 on it is down.
    world = fleet_with(
        outage(0.35, 9.0, what="origin"), requests=[(0.0, 1.0, 1.0, CHAT)], origin=ORIGIN
    )
    table = world.after(10.0)
    assert table["node"].tolist() == [0]
    assert table["ttft_s"] == pytest.approx(1.35)


def test_a_move_waits_while_the_backhaul_is_down():
    # 2 GB at 1 GB/s from 0, interrupted from 1.0 to 2.5.
    world = fleet_with(outage(1.0, 2.5, what="backhaul"), requests=[(99.0, 1.0, 1.0, CHAT)])
    world.fleet.start_move(0, BIG)
    world.fleet.advance(3.4)
    assert world.fleet.state.receiving[0].tolist() == [True, False]
    world.fleet.advance(0.2)
    assert world.fleet.state.receiving[0].tolist() == [False, False]


def test_a_move_to_a_node_that_fails_is_lost():
    world = fleet_with(outage(1.0, 2.0), requests=[(99.0, 1.0, 1.0, CHAT)])
    world.fleet.start_move(0, BIG)
    world.fleet.advance(6.0)
    assert world.fleet.state.profile[0, 0] == NONE
    assert not world.fleet.state.receiving.any()


def _ups(fleet, seconds, step_s=0.25):
    """Return which nodes are up at the end of each step, ``[steps, N]``."""
    found = []
    for _ in range(round(seconds / step_s)):
        fleet.advance(step_s)
        found.append(fleet.state.up[0].copy())
    return np.array(found)


SPELLS = {"nodes": {"mean_up_s": 3.0, "mean_down_s": 1.0}}


def test_failures_depend_on_the_seed_alone():
    one = Fleet(scenario(failures=SPELLS), seed=5)
    other = Fleet(scenario(failures=SPELLS, routing={"kind": "nearest"}), seed=5)
    another = Fleet(scenario(failures=SPELLS), seed=6)
    ups = _ups(one, 20.0)
    np.testing.assert_array_equal(ups, _ups(other, 20.0, step_s=0.25))
    assert (ups != _ups(another, 20.0)).any()


def test_nodes_are_up_for_the_share_of_time_that_they_should_be():
    fleet = Fleet(scenario(failures=SPELLS, **{"demand.rate_per_node": 0.01}), seed=1)
    # Up for 3/4 of the time. A node's periods last 4 s on average: 5 nodes in 2,000 s have about
    # 2,500 of them, and the share has a standard error of √2 · 3/4 · 1/4 / √2500 = 0.0053.
    share = _ups(fleet, 2000.0, step_s=1.0).mean()
    assert share == pytest.approx(0.75, abs=4 * 0.0053)
