"""The safety margin of predictions, by plain arithmetic."""

import math

import numpy as np
import pytest

from tests.simulator.full.stations import Stations

pytestmark = pytest.mark.twin


def with_margin(**margin: float) -> Stations:
    """Return the five nodes under a router that keeps a margin."""
    return Stations(
        routing={"kind": "load_aware", "margin": margin},
        telemetry={"period_s": 0.0, "ewma_s": 10.0},
    )


def test_errors_of_the_past_cost():
    stations = with_margin(deviations=2.0)
    assert stations.route().node == 1  # 0.7 against 1.0
    stations.note_error(1, -0.1, 0.0)
    stations.note_error(1, 0.3, 5.0)
    fade = math.exp(-0.5)
    sigma = math.sqrt((0.01 * fade + 0.09) / (fade + 1.0))
    assert 0.7 + 2.0 * sigma > 1.0
    decision = stations.route(now=5.0)
    assert decision.node == 0
    # the prediction itself is without the margin
    assert (decision.predicted_s, decision.runner_up) == (pytest.approx(1.0), 1)
    assert decision.runner_up_s == pytest.approx(0.7)
    # it fades: 2 sigma e^(-t / 20) = 0.3
    again = 5.0 + 20.0 * math.log(2.0 * sigma / 0.3)
    assert stations.route(now=again - 1e-6).node == 0
    assert stations.route(now=again + 1e-6).node == 1


def test_a_node_that_receives_state_costs():
    stations = with_margin(moving_s=0.29)
    stations.routing.receiving[1] = True
    assert stations.route().node == 1
    stations = with_margin(moving_s=0.31)
    stations.routing.receiving[1] = True
    assert stations.route().node == 0
    stations.routing.receiving[:] = True
    assert stations.route().node == 1


def test_bursts_cost():
    sent_s = [0.0, 0.1, 0.2, 4.0, 4.1]
    stations = with_margin(burst_s=1.0)
    sums, weight, squares = 0.0, 0.0, 0.0
    for before, now in zip([None, *sent_s], sent_s, strict=False):
        stations.note_sent(1, 0, now)
        if before is not None:
            gap = now - before
            fade = math.exp(-gap / 10.0)
            sums, squares, weight = sums * fade + gap, squares * fade + gap**2, weight * fade + 1
    dispersion = squares / weight / (sums / weight) ** 2 - 1.0
    assert 1.0 < dispersion < 3.0
    limit = 4.1 + 10.0 * math.log((dispersion - 1.0) / 0.3)
    assert stations.route(now=limit - 1e-6).node == 0
    assert stations.route(now=limit + 1e-6).node == 1


def test_the_dispersion_of_a_poisson_stream_is_one():
    rng = np.random.default_rng(5)
    stations = Stations(
        routing={"kind": "load_aware", "margin": {"burst_s": 1.0}},
        telemetry={"ewma_s": 1000.0},
    )
    for now in np.cumsum(rng.exponential(1.0, 4000)):
        stations.note_sent(1, 0, now)
    past = stations.routing.state.station_past[1]
    dispersion = past[4] / past[5] / (past[3] / past[5]) ** 2 - 1.0
    # About 500 gaps count: the variance of c^2 is about 8 / n there.
    assert dispersion == pytest.approx(1.0, abs=0.5)


def test_regular_arrivals_cost_nothing():
    stations = with_margin(burst_s=100.0)
    for now in range(20):
        stations.note_sent(1, 0, now)
    assert stations.route(now=19.0).node == 1
