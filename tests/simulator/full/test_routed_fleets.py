"""Whole fleets under every router: predictions come true, admission acts, a user's rule decides."""

import math

import numpy as np
import pytest

from edgegym.simulator import ArraySink, Fleet, UserRouter
from edgegym.simulator.columns import REPORTED
from edgegym.simulator.full.routing_columns import (
    HIT_TOKENS,
    INPUT_TOKENS,
    REQUESTS,
    TOKENS_REPORTED,
    TOKENS_THERE,
)
from edgegym.world.compiled import ROUTER_KINDS
from tests.simulator.fleets import in_system, scenario

pytestmark = pytest.mark.twin

MIXED = {"mix": {"none": 0.4, "small": 0.2, "big": 0.2, "other": 0.2}}
ORIGIN = {"rtt_s": 0.3, "slots": 4, "prefill_linear_s": 2e-4, "tpot_s": 0.01}


def world(kind: str, rate: float = 2.5, **overrides):
    """Return twelve mixed nodes under a router."""
    settings = {
        "routing": {"kind": kind},
        "nodes": {"count": 12},
        "initial": MIXED,
        "demand": {"rate_per_node": rate},
    }
    return scenario(**settings | overrides)


@pytest.mark.parametrize("kind", ROUTER_KINDS)
def test_alone_in_the_fleet_a_request_gets_what_was_predicted(kind):
    sink = ArraySink()
    fleet = Fleet(world(kind, rate=0.002, origin=ORIGIN), 4, records=sink)
    fleet.advance(1500.0)
    table = sink.table()
    alone = np.asarray(table["wait_s"]) == 0.0
    assert alone.sum() >= 20
    ttft, predicted = np.asarray(table["ttft_s"]), np.asarray(table["predicted_s"])
    np.testing.assert_allclose(ttft[alone], predicted[alone], rtol=0, atol=1e-9)
    assert (np.asarray(table["runner_up_s"]) < math.inf).all()


@pytest.mark.parametrize("period_s", [0.0, 0.7])
@pytest.mark.parametrize("predict", [False, True])
def test_the_router_knows_what_it_should(period_s, predict):
    fleet = Fleet(
        world("kv_router", telemetry={"period_s": period_s, "predict_on_route": predict}), 5
    )
    for _ in range(8):
        fleet.advance(0.7)
        state = fleet.state
        here = state.active[0] + state.queued[0]
        known = here if period_s and not predict else here + state.in_flight[0]
        np.testing.assert_array_equal(state.node_work[0, :, REPORTED], known)
        # A request of `chat` has 1010 tokens, one of `code` 620.
        sums = state.full.routing.station_sums[0]
        there, reported = sums[:, TOKENS_THERE], sums[:, TOKENS_REPORTED]
        assert (there >= 620 * here).all()
        assert (there <= 1010 * here).all()
        if period_s and not predict:
            np.testing.assert_array_equal(reported, there)
        else:
            assert (reported >= 620 * known).all()
            assert (reported <= 1010 * known).all()
    assert fleet.state.queued.sum() > 0


@pytest.mark.parametrize("kind", ["load_aware", "lmetric", "power_of_two"])
@pytest.mark.parametrize("spill", ["next_best", "origin", "reject"])
def test_admission_keeps_queues_short(kind, spill):
    overload = {"rate": 6.0, "origin": ORIGIN | {"rtt_s": 5.0}}
    closing = {"ewma_s": 0.5, "node": {"close_above": 1.2, "reopen_below": 0.9}, "spill": spill}
    free = Fleet(world(kind, **overload), 6, full=True)
    kept = Fleet(world(kind, admission=closing | {"redirect": True}, **overload), 6)
    before, after = free.advance(6.0), kept.advance(6.0)
    assert before.arrivals == after.arrivals
    queued, longest = free.state.queued[0, :12], kept.state.queued[0, :12]
    assert longest.sum() < queued.sum()
    assert before.rejected == 0
    assert (after.rejected > 0) == (spill == "reject")
    assert after.arrivals == after.completed + after.rejected + in_system(kept)


def product(candidates, parameters):
    """Take what `lmetric` takes."""
    best, least = -1, np.inf
    for row in range(candidates.shape[0]):
        new = candidates[row, INPUT_TOKENS] - candidates[row, HIT_TOKENS]
        cost = new * (candidates[row, REQUESTS] + 1.0)
        if cost < least:
            best, least = row, cost
    return best


def test_a_users_rule_is_as_good_as_a_built_in_one():
    closing = {"ewma_s": 0.5, "node": {"close_above": 1.2, "reopen_below": 0.9}}
    built_in = Fleet(world("lmetric", rate=4.0, admission=closing), 7)
    own = Fleet(world("nearest", rate=4.0, admission=closing), 7, router=UserRouter(product))
    for _ in range(3):
        assert built_in.advance(1.5) == own.advance(1.5)
    again = own.fork()
    assert again.advance(1.0) == own.advance(1.0) == built_in.advance(1.0)


def test_predicting_keeps_herds_apart():
    """With reports every 4 s, adding what was sent since covers more requests, at every seed."""
    for seed in range(3):
        hits = []
        for telemetry in (
            {"period_s": 4.0},
            {"period_s": 4.0, "predict_on_route": True},
            {"period_s": 0.0},
        ):
            fleet = Fleet(world("lmetric", rate=2.0, telemetry=telemetry), seed)
            hits.append(fleet.advance(16.0).hits)
        assert hits[0] < 0.8 * hits[1]
        assert hits[0] < 0.8 * hits[2]


def test_a_request_that_is_sent_on_gets_what_was_predicted_since_it_was_made():
    sink = ArraySink()
    admission = {"ewma_s": 1.0, "node": {"close_above": 0.7, "reopen_below": 0.4}, "redirect": True}
    fleet = Fleet(world("nearest", rate=2.0, admission=admission), 8, records=sink)
    fleet.advance(20.0)
    table = sink.table()
    sent_on = (np.asarray(table["redispatches"]) > 0) & (np.asarray(table["wait_s"]) == 0.0)
    assert sent_on.sum() > 3
    ttft, predicted = np.asarray(table["ttft_s"]), np.asarray(table["predicted_s"])
    expected = predicted[sent_on] - ttft[sent_on]
    # The router expects a wait where a queue could be; here there was none.
    waits = np.round(expected, 9) > 0.0
    np.testing.assert_allclose(expected[~waits], 0.0, atol=1e-9)
    assert (~waits).sum() > 3
