"""The origin in whole fleets, worked out by hand or known from queueing theory.

By hand: two cold nodes 2 km apart take 1 s of prefill for `chat` and 0.5 s of decode, the radio
0.1 s/km² · r². The origin is 0.3 s away, prefills at 0.1 ms and decodes at 10 ms a token.
"""

import math

import numpy as np
import pytest

from edgegym.analytic import erlang_c
from edgegym.simulator import Fleet
from edgegym.simulator.full.counts import FAMILY_SPILLED
from edgegym.simulator.records import NOBODY, ORIGIN, ArraySink
from tests.simulator.fleets import scenario
from tests.simulator.full.worlds import CHAT, CODE, NONE, HandMade
from tests.simulator.queues import check_mean

PLACES = [(1.0, 1.0), (3.0, 1.0)]
FAR = {"rtt_s": 0.3, "slots": 1, "prefill_linear_s": 1e-4, "tpot_s": 0.01, "affinity": 0.0}
MEAN_OCCUPANCY_S = 0.5 * (0.1 + 0.09) + 0.5 * (0.06 + 0.19)


def by_hand(requests, /, origin=FAR, **overrides):
    return HandMade(PLACES, (NONE, NONE), requests, origin=origin, **overrides)


def chat(count, first_s=0.0, apart_s=0.01):
    return [(first_s + apart_s * k, 1.0, 1.0, CHAT) for k in range(count)]


def set_outputs(world, requests, output_tokens):
    """Give some requests another length of their answers."""
    full = world.fleet.state.full
    assert full is not None
    full.lengths.output_tokens[0, requests] = output_tokens


def served(world, seconds):
    """Return the window and the records by request."""
    window = world.fleet.advance(seconds)
    return window, world.sink.table().by_request()


@pytest.mark.twin
@pytest.mark.parametrize("output_tokens", [1, 10, 1000])
def test_the_round_trip_counts_once_and_every_token_after_the_first(output_tokens):
    world = by_hand([(0.0, 1.0, 2.0, CHAT)])
    set_outputs(world, 0, output_tokens)
    window, table = served(world, 20.0)
    assert table["node"].tolist() == [ORIGIN]
    assert table["radio_s"] == pytest.approx(0.1 + 0.3)
    assert table["prefill_s"] == pytest.approx(0.1)
    assert table["ttft_s"] == pytest.approx(0.5)
    assert table["predicted_s"] == pytest.approx(0.5)
    assert table["end_to_end_s"] == pytest.approx(0.5 + 0.01 * (output_tokens - 1))
    assert (window.origin_dispatches, window.origin_first_tokens) == (1, 1)
    assert window.origin_utilization == pytest.approx((0.1 + 0.01 * (output_tokens - 1)) / 20.0)


ADVERTISED = pytest.mark.parametrize("wait", ["backlog", "tier"])


def advertising(wait):
    """Return what lets nodes advertise so; the waits of their tiers are 0, as of idle nodes."""
    routing = {"kind": "load_aware", "advertised_wait": wait}
    return {"routing": routing, "tier_wait_s": [0.0] * 4 if wait == "tier" else None}


@pytest.mark.twin
@ADVERTISED
def test_its_slots_are_a_queue_that_the_router_sees(wait):
    """One slot, 0.19 s each; the fourth is better off at a node: 0.4 + 3 · 0.22 > 1."""
    window, table = served(by_hand(chat(4), **advertising(wait)), 10.0)
    assert table["node"].tolist() == [ORIGIN, ORIGIN, ORIGIN, 0]
    assert table["wait_s"] == pytest.approx([0.0, 0.18, 0.36, 0.0])
    waits_s = MEAN_OCCUPANCY_S * np.arange(3)
    assert table["predicted_s"] == pytest.approx([*(0.4 + waits_s), 1.0])
    assert table["runner_up_s"][3] == pytest.approx(0.4 + 3 * MEAN_OCCUPANCY_S)
    assert window.origin_utilization == pytest.approx(3 * 0.19 / 10.0)


@pytest.mark.twin
@ADVERTISED
@pytest.mark.parametrize("predicts", [False, True])
def test_its_wait_is_as_old_as_its_report(predicts, wait):
    """Reports at 0.5 s (six there), 1 s (three left) and 1.5 s (none)."""
    later = [(0.55, 1.0, 1.0, CHAT), (1.1, 1.0, 1.0, CHAT), (1.6, 1.0, 1.0, CHAT)]
    telemetry = {"period_s": 0.5, "predict_on_route": predicts}
    table = by_hand(chat(6) + later, telemetry=telemetry, **advertising(wait)).after(10.0)
    first = [ORIGIN] * 3 + [0] * 3 if predicts else [ORIGIN] * 6
    assert table["node"][:6].tolist() == first
    if not predicts:
        assert table["node"][6:].tolist() == [0, 0, ORIGIN]
        assert table["predicted_s"][8] == pytest.approx(0.4)


@pytest.mark.twin
def test_beside_nodes_with_engines_it_keeps_its_own_law():
    decode = {"kind": "tpot", "tpot_s": {1: 0.05, 4: 0.08}}
    # The third has a long answer: to the origin at once.
    world = by_hand(
        [(0.0, 1.0, 1.0, CHAT), (0.0, 1.0, 1.0, CHAT), (0.5, 1.0, 2.0, CODE)],
        origin=FAR | {"rtt_s": 5.0, "output_cap_tokens": 19},
        service={"kind": "engine", "schedule": "fifo"},
        **{"hardware.decode": decode},
    )
    window, table = served(world, 20.0)
    assert table["node"].tolist() == [0, 0, ORIGIN]
    # One prompt after the other, and none decodes while a prompt is at the server.
    assert table["ttft_s"][:2] == pytest.approx([1.0, 2.0])
    assert table["ttft_s"][2] == pytest.approx(0.1 + 5.0 + 0.06)
    assert table["end_to_end_s"][2] == pytest.approx(5.16 + 0.01 * 19)
    assert window.origin_utilization == pytest.approx((0.06 + 0.19) / 20.0)
    assert window.completed == 3


@pytest.mark.twin
def test_a_spill_goes_to_a_neighbour_to_the_origin_or_nowhere():
    """Four requests fill node 0 at 0 s, which closes at 0.5 · ln 2 = 0.347 s."""
    requests = [(0.0, 1.0, 1.0, CHAT)] * 4 + [(0.34, 1.0, 1.0, CHAT), (0.35, 1.0, 1.0, CHAT)]
    closing = {"ewma_s": 0.5, "node": {"close_above": 0.5, "reopen_below": 0.25}}
    for spill, node, radio_s in (
        ("next_best", 1, 0.4),
        ("origin", ORIGIN, 9.0),
        ("reject", NOBODY, None),
    ):
        world = by_hand(
            requests,
            origin=FAR | {"rtt_s": 9.0},
            routing={"kind": "nearest"},
            admission=closing | {"spill": spill},
        )
        window, table = served(world, 30.0)
        assert table["node"].tolist() == [0] * 5 + [node], spill
        if radio_s is not None:
            assert table["radio_s"][5] == pytest.approx(radio_s)
        assert window.spilled_to_node == (spill == "next_best")
        assert window.spilled_to_origin == (spill == "origin")
        assert window.rejected == window.rejected_by_admission == (spill == "reject")


@pytest.mark.twin
@pytest.mark.parametrize("elsewhere", [True, False])
def test_a_request_that_is_sent_again_counts_as_spilled_once(elsewhere):
    """Node 0 has closed when the sixth comes; node 1, its second choice, fails on its way."""
    requests = [(0.0, 1.0, 1.0, CHAT)] * 4 + [(0.34, 1.0, 1.0, CHAT), (0.35, 1.0, 1.0, CHAT)]
    outage = {"what": "node", "node": 1, "begin_s": 0.5, "end_s": 20.0}
    world = by_hand(
        requests,
        origin=FAR | {"rtt_s": 9.0} if elsewhere else None,
        routing={"kind": "nearest"},
        admission={"ewma_s": 0.5, "node": {"close_above": 0.5, "reopen_below": 0.25}},
        failures={"outages": [outage]},
    )
    window, table = served(world, 30.0)
    assert table["node"][5] == (ORIGIN if elsewhere else NOBODY)
    assert window.redispatched == 1
    assert (window.spilled_to_node, window.spilled_to_origin) == (0, elsewhere)
    assert window.spilled == window.family_counts[:, FAMILY_SPILLED].sum()
    assert window.rejected == window.rejected_by_admission == (not elsewhere)
    assert (window.origin_dispatches, window.origin_first_tokens) == (elsewhere, elsewhere)


@pytest.mark.twin
def test_a_request_that_nobody_may_take_is_not_rejected_by_admission():
    """Nothing is closed: it is forced to go nowhere."""
    closing = {"ewma_s": 0.5, "node": {"close_above": 0.5, "reopen_below": 0.25}}
    world = by_hand(chat(2), admission=closing)
    world.fleet.force(1, NOBODY)
    window, _ = served(world, 10.0)
    assert (window.rejected, window.rejected_by_admission) == (1, 0)


@pytest.mark.twin
def test_a_request_on_its_way_to_a_failing_origin_is_sent_again_at_once():
    outages = [{"what": "origin", "begin_s": 0.2, "end_s": 0.4}]
    requests = [(0.0, 1.0, 2.0, CHAT), (0.3, 1.0, 1.0, CHAT), (0.5, 1.0, 1.0, CHAT)]
    window, table = served(by_hand(requests, failures={"outages": outages}), 10.0)
    assert table["node"].tolist() == [0, 0, ORIGIN]
    assert table["redispatches"].tolist() == [1, 0, 0]
    # 0.2 s on the backbone for nothing, then 0.1 s to the node.
    assert table["radio_s"] == pytest.approx([0.3, 0.0, 0.3])
    assert table["ttft_s"] == pytest.approx([1.3, 1.0, 0.4])
    assert table["predicted_s"][0] == pytest.approx(1.3)
    assert (window.arrivals, window.completed, window.first_tokens) == (3, 3, 3)
    assert (window.origin_dispatches, window.origin_first_tokens) == (2, 1)
    assert (window.failures, window.redispatched, window.interrupted) == (1, 1, 0)


@pytest.mark.twin
def test_a_failing_origin_loses_streams_and_sends_the_others_again_in_their_order():
    """At 0.45 s the first has its first token, two wait, the fourth is on its way."""
    outages = [{"what": "origin", "begin_s": 0.45, "end_s": 9.0}]
    capped = FAR | {"output_cap_tokens": 9}
    requests = [*chat(3), (0.4, 1.0, 2.0, CHAT)]
    world = by_hand(requests, origin=capped, failures={"outages": outages})
    window, table = served(world, 8.0)
    assert table["node"].tolist() == [ORIGIN, 0, 0, 0]
    assert table["ttft_s"] == pytest.approx([0.4, 0.44 + 1.0, 0.43 + 1.0, 0.15 + 1.0])
    assert table["end_to_end_s"][0] == pytest.approx(0.45)
    assert (window.interrupted, window.completed, window.redispatched) == (1, 3, 3)
    # It had its one slot for 0.45 of 8 s, and used it from 0.3 s on.
    assert window.origin_utilization == pytest.approx(0.15 / 0.45)


@pytest.mark.twin
def test_what_it_advertised_before_it_failed_is_forgotten():
    """Three long answers make it look busy for 12 s; it comes back empty."""
    outages = [{"what": "origin", "begin_s": 0.2, "end_s": 0.4}]
    capped = FAR | {"output_cap_tokens": 500}
    requests = [*chat(3, 0.0, 0.0), (3.0, 1.0, 1.0, CODE)]
    for wait in ("backlog", "measured"):
        world = by_hand(
            requests,
            origin=capped,
            failures={"outages": outages},
            routing={"kind": "load_aware", "advertised_wait": wait},
        )
        set_outputs(world, slice(3), 1000)
        table = world.after(30.0)
        assert table["node"].tolist() == [0, 0, 0, ORIGIN], wait
        assert table["predicted_s"][3] == pytest.approx(0.36), wait


@pytest.mark.twin
def test_nobody_can_be_forced_to_go_there_while_it_is_down():
    outages = [{"what": "origin", "begin_s": 0.0, "end_s": 2.0}]
    world = by_hand(chat(1, 1.0), failures={"outages": outages})
    world.fleet.force(0, ORIGIN)
    assert world.after(10.0)["node"].tolist() == [NOBODY]


def everything_there(**overrides):
    """Return a world whose requests all go to the origin: 0.2 s of prefill, 0.8 s of decode."""
    return scenario(
        origin={
            "rtt_s": 0.3,
            "slots": 4,
            "prefill_linear_s": 1e-3,
            "tpot_s": 0.1,
            "output_cap_tokens": 1,
        },
        request_types=[
            {
                "name": "chat",
                "path": "big",
                "input_tokens": 1000,
                "output_tokens": 9,
                "family": "chat",
                "share": 1.0,
            }
        ],
        **{"demand.rate_per_node": 0.64} | overrides,
    )


SLOW_NODES = {"hardware.prefill.linear_s": 10.0, "origin.output_cap_tokens": None}


@pytest.mark.parametrize("overrides", [{}, SLOW_NODES], ids=["capped", "slow nodes"])
def test_alone_it_is_an_m_m_c_queue(overrides):
    """3.2 requests/s, each 1 s in the mean, on 4 slots."""
    sink = ArraySink()
    exponential = {"service": {"kind": "exponential"}}
    fleet = Fleet(everything_there(**overrides | exponential), seed=1, records=sink)
    fleet.advance(1000.0)
    window = fleet.advance(150_000.0)
    assert window.origin_dispatches == window.arrivals > 450_000
    table = sink.table().by_request()
    wait_s = table["wait_s"]
    delayed = erlang_c(4, 3.2)
    check_mean(wait_s, delayed / (4.0 - 3.2), 0.02)
    check_mean(wait_s > 0.0, delayed, 0.01)
    for seconds in (0.5, 2.0):
        check_mean(wait_s > seconds, delayed * math.exp(-0.8 * seconds), 0.05)
    assert (table["node"] == ORIGIN).all()
    assert table["prefill_s"] == pytest.approx(0.2)
    # The error of a utilisation over T seconds is about √(2 ρ / (c T)) of queues of 1 s each.
    assert window.origin_utilization == pytest.approx(0.8, abs=4 * math.sqrt(2 * 0.8 / 4 / 150e3))


def test_prefixes_are_found_with_the_affinity_whatever_the_route():
    """The draw belongs to the request: other waits, slots and distances change nothing."""
    found = []
    slower = {"origin.rtt_s": 2.0, "origin.slots": 1, "demand.rate_per_node": 0.1}
    for seconds, overrides in ((6_250.0, {}), (40_000.0, slower)):
        sink = ArraySink()
        fleet = Fleet(everything_there(**{"origin.affinity": 0.7} | overrides), 3, records=sink)
        fleet.advance(seconds)
        table = sink.table().by_request()
        np.testing.assert_array_equal(table["prefill_s"] > 0.5, table["hit_tokens"] == 0)
        found.append(table["hit_tokens"][:15_000])
    np.testing.assert_array_equal(found[0], found[1])
    assert set(found[0]) == {0, 800}
    error = math.sqrt(0.7 * 0.3 / 15_000)
    assert np.mean(found[0] == 800) == pytest.approx(0.7, abs=4 * error)
