"""Sweeps of one simulated node, and the maps fitted to them."""

from typing import Any

import numpy as np
import pytest

from edgegym.analytic import FittedDelayMap, solve_equilibrium
from edgegym.evaluation.queue_sweep import sweep_queue
from edgegym.world import preset


def served(kind, slots=9):
    """Return `paper` with one request type and this service law."""
    base = preset("paper")
    document = base.document()
    hardware = document["hardware"] | {
        "memory_bytes": slots * document["hardware"]["runtime_bytes_per_sequence"]
    }
    return base.with_overrides(
        {
            "forest": [],
            "profiles": [{"name": "none"}],
            "initial": {"mix": {"none": 1.0}},
            "request_types": [
                {"name": "only", "input_tokens": 1024, "family": "only", "share": 1.0}
            ],
            "hardware": hardware,
            "service": {"kind": kind},
        }
    )


def test_exponential_service_reproduces_the_equilibrium_of_erlang_c():
    sweep = sweep_queue(served("exponential"), utilizations=(0.7, 0.85), requests=200_000, seed=3)
    assert sweep.slots == 9
    mean, waiting = sweep.erlang_c()
    assert (np.abs(sweep.mean_wait_s - mean) < 4 * sweep.mean_wait_error_s).all()
    assert (np.abs(sweep.waiting_probability - waiting) < 4 * sweep.waiting_probability_error).all()
    network = preset("paper").with_overrides({"demand.request_intensity": 4.0}).tiered_network()
    exact = solve_equilibrium(network)
    fitted = solve_equilibrium(network, queue=FittedDelayMap.fit(sweep))
    # Requests give way to longer waits, so these move by less than the sweep is off.
    off = float(np.max(4 * sweep.mean_wait_error_s / sweep.mean_wait_s))
    assert off < 0.25
    assert fitted.converged
    np.testing.assert_allclose(fitted.mean_wait_s, exact.mean_wait_s, rtol=off, atol=1e-9)


def test_constant_service_waits_less():
    many = sweep_queue(served("deterministic"), utilizations=(0.85,), requests=100_000, seed=4)
    assert many.mean_wait_s[0] + 4 * many.mean_wait_error_s[0] < 0.8 * many.erlang_c()[0][0]
    # One slot: Pollaczek-Khinchine.
    one = sweep_queue(served("deterministic", 1), utilizations=(0.7,), requests=100_000, seed=5)
    exact = 0.7 * one.mean_occupancy_s / (2 * (1 - 0.7))
    assert one.mean_wait_s[0] == pytest.approx(exact, abs=4 * one.mean_wait_error_s[0])
    assert one.mean_wait_error_s[0] < 0.05 * exact
    assert one.waiting_probability[0] == pytest.approx(0.7, abs=0.03)
    fitted = FittedDelayMap.fit(many)
    network = preset("paper").with_overrides({"demand.request_intensity": 4.0}).tiered_network()
    waits = solve_equilibrium(network, queue=fitted).mean_wait_s
    assert waits[2] < 0.9 * solve_equilibrium(network).mean_wait_s[2]


def test_same_seed_same_sweep_and_progress():
    said = []
    sweeps = [
        sweep_queue(
            served("lognormal"), utilizations=(0.5,), requests=2_000, seed=1, report=said.append
        )
        for _ in range(2)
    ]
    np.testing.assert_array_equal(sweeps[0].mean_wait_s, sweeps[1].mean_wait_s)
    assert said == ["utilization 0.5"] * 2


def test_refused():
    with pytest.raises(ValueError, match="utilizations is"):
        sweep_queue(preset("paper"), utilizations=(0.5, 1.0))
    with pytest.raises(ValueError, match=r"utilizations is .*must be at least one"):
        sweep_queue(preset("paper"), utilizations=())
    nothing: Any = None
    with pytest.raises(TypeError, match="scenario is None: must be a Scenario"):
        sweep_queue(nothing)
    with pytest.raises(TypeError, match="report is None: must be a function"):
        sweep_queue(preset("paper"), report=nothing)
    with pytest.raises(ValueError, match="requests is 10"):
        sweep_queue(preset("paper"), requests=10)
    with pytest.raises(ValueError, match="profile is 'x': must be one of uncached"):
        sweep_queue(preset("paper"), "x")
