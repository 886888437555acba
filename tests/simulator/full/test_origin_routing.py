"""The origin as one more candidate."""

import math

import numpy as np
import pytest

from edgegym.simulator.full.columns import NOT_SPILLED
from tests.simulator.full.stations import CODE, Stations
from tests.simulator.full.test_admission import EVERY_RULE
from tests.simulator.full.test_routers import drawn

pytestmark = pytest.mark.twin

# Prefill of `chat` at the origin: 0.02 s after 800 held tokens, 0.1 s without; 3/4 find them.
NEAR = {"rtt_s": 0.05, "affinity": 0.75}
MEAN_PREFILL_S = 0.75 * 0.02 + 0.25 * 0.1


def test_the_origin_takes_what_it_serves_sooner():
    stations = Stations(origin=NEAR, routing={"kind": "load_aware"})
    decision = stations.route()
    assert (decision.node, decision.nearest, decision.spilled) == (5, 0, NOT_SPILLED)
    assert decision.distance_squared_km2 == 0.0
    assert decision.predicted_s == pytest.approx(0.05 + MEAN_PREFILL_S)
    assert (decision.runner_up, decision.runner_up_s) == (1, pytest.approx(0.7))
    # seen from (2, 9) the nearest node is 1 km away
    decision = stations.route(place_km=(2.0, 9.0))
    assert (decision.node, decision.nearest) == (5, 3)
    assert decision.distance_squared_km2 == 1.0
    assert decision.predicted_s == pytest.approx(0.1 + 0.05 + MEAN_PREFILL_S)
    assert stations.way_s(stations.ask(), 5, 1.0) == pytest.approx(0.1 + 0.05)


def test_its_wait_and_its_way_count():
    stations = Stations(origin=NEAR, routing={"kind": "load_aware"})
    stations.wait(5, 0.6)
    assert stations.route().node == 5
    stations.wait(5, 0.62)
    decision = stations.route()
    assert (decision.node, decision.runner_up) == (1, 5)
    assert decision.runner_up_s == pytest.approx(0.05 + MEAN_PREFILL_S + 0.62)


def test_every_rule_has_it_as_a_candidate():
    for kind in EVERY_RULE:
        stations = Stations(origin=NEAR, routing={"kind": kind})
        assert stations.route().node == 5, kind
        stations.wait(5, 10.0)
        decision = stations.route()
        assert decision.node in range(5), kind
        stations.fail(5)
        assert stations.route() == decision, kind
        stations.wait(5, 0.0)
        assert stations.route() == decision, kind


def test_new_connections_pay_handshakes():
    shaky = NEAR | {"handshake_s": 0.1, "new_connection_share": 0.3}
    stations = Stations(origin=shaky)
    opened = 0
    for index in range(200):
        opens = drawn(12, index, 0) < 0.3
        opened += opens
        expected = 0.05 + MEAN_PREFILL_S + (0.1 if opens else 0.0)
        assert stations.route(index=index).predicted_s == pytest.approx(expected)
        way_s = stations.way_s(stations.ask(index=index), 5, 0.0)
        assert way_s == pytest.approx(0.15 if opens else 0.05)
    assert 40 <= opened <= 80


def test_long_outputs_go_there_at_once():
    stations = Stations(origin=NEAR | {"rtt_s": 9.0, "output_cap_tokens": 500})
    assert stations.route(output_tokens=500).node == 1
    decision = stations.route(output_tokens=501)
    assert (decision.node, decision.spilled, decision.runner_up) == (5, NOT_SPILLED, 1)
    stations.fail(5)
    assert stations.route(output_tokens=501).node == 1


def test_it_serves_what_no_node_can():
    hits = np.array([[-1.0, 0.0]] * 4)
    stations = Stations(origin={"rtt_s": 50.0}, hits=hits)
    decision = stations.route()
    assert (decision.node, decision.spilled) == (5, NOT_SPILLED)
    assert (decision.runner_up, decision.runner_up_s) == (-1, math.inf)
    assert stations.route(CODE).node == 0
