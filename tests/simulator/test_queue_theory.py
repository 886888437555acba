"""One node against queueing theory."""

import math

import numpy as np
import pytest

from edgegym.simulator import Fleet
from edgegym.simulator.histogram import bin_edges_s
from tests.simulator.fleets import GB, scenario

PREFILL_S, DECODE_S = 0.4, 0.6


def single_node(slots, load, service):
    """Return one node at no distance, with one request type of mean occupancy 1 s."""
    return scenario(
        nodes={"count": 1},
        region={"width_km": 1.0, "height_km": 1.0, "periodic": True},
        radio={"xi": 1e-12, "alpha": 2.0},
        forest=[],
        profiles=[{"name": "none"}],
        request_types=[
            {
                "name": "only",
                "path": None,
                "input_tokens": 400,
                "output_tokens": 10,
                "family": "only",
                "share": 1.0,
            }
        ],
        hardware={
            "memory_bytes": slots * GB,
            "kv_bytes_per_token": 1000,
            "runtime_bytes_per_sequence": GB,
            "prefill": {"linear_s": 1e-3, "quadratic_s": 0.0},
            "decode": {"kind": "occupancy", "occupancy_s": DECODE_S},
        },
        demand={"rate_per_node": load * slots},
        service=service,
    )


def erlang_c(slots, offered):
    blocking = 1.0
    for k in range(1, slots + 1):
        blocking = offered * blocking / (k + offered * blocking)
    rho = offered / slots
    return blocking / (1.0 - rho * (1.0 - blocking))


def check_mmc(num_requests, mean_tolerance, cdf_tolerance, seed):
    slots, rho = 9, 0.82
    fleet = Fleet(single_node(slots, rho, {"kind": "exponential"}), seed=seed)
    rate = rho * slots
    fleet.advance(1000.0)
    window = fleet.advance(num_requests / rate)
    waiting = erlang_c(slots, rho * slots)
    decay = slots - rate
    assert window.wait_sum_s / window.first_tokens == pytest.approx(
        waiting / decay, rel=mean_tolerance
    )
    assert window.utilization[0] == pytest.approx(rho, rel=mean_tolerance)
    # TTFT = wait + 0.4 s; the histogram is exact at the edges of its bins.
    edges = bin_edges_s()[1:-1]
    measured = np.cumsum(window.ttft_histogram)[:-1] / window.first_tokens
    wait_s = edges - PREFILL_S
    expected = np.where(wait_s >= 0.0, 1.0 - waiting * np.exp(-decay * wait_s.clip(0.0)), 0.0)
    assert np.abs(measured - expected)[np.abs(wait_s) > 1e-6].max() < cdf_tolerance


def test_mmc_has_the_waits_of_erlang_c():
    check_mmc(1_000_000, mean_tolerance=0.05, cdf_tolerance=0.01, seed=1)


@pytest.mark.slow
def test_mmc_has_the_waits_of_erlang_c_to_a_percent():
    check_mmc(100_000_000, mean_tolerance=0.01, cdf_tolerance=2e-3, seed=1)


def test_md1_has_half_the_wait_of_mm1():
    fleet = Fleet(single_node(1, 0.7, {"kind": "deterministic"}), seed=2)
    fleet.advance(1000.0)
    window = fleet.advance(500_000 / 0.7)
    expected = 0.7 / (2.0 * (1.0 - 0.7))
    assert window.wait_sum_s / window.first_tokens == pytest.approx(expected, rel=0.03)


def test_mg1_has_the_wait_of_pollaczek_and_khinchine():
    fleet = Fleet(single_node(1, 0.6, {"kind": "lognormal", "sigma": 0.8}), seed=3)
    fleet.advance(1000.0)
    window = fleet.advance(500_000 / 0.6)
    variance = DECODE_S**2 * (math.exp(0.8**2) - 1.0)
    expected = 0.6 * (1.0 + variance) / (2.0 * (1.0 - 0.6))
    assert window.wait_sum_s / window.first_tokens == pytest.approx(expected, rel=0.05)


def test_nodes_of_an_overloaded_fleet_need_room_and_get_it():
    fleet = Fleet(single_node(2, 3.0, {"kind": "deterministic"}), seed=1)
    records = fleet.state.record_time.shape[1]
    window = fleet.advance(1000.0)
    assert fleet.state.record_time.shape[1] > records
    assert window.completed == pytest.approx(2000, abs=3)
    assert fleet.state.queued[0, 0] + window.completed + 2 == window.arrivals
