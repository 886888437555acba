"""On worlds that both loops can simulate they agree to the bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgegym.evaluation.speed import fleet_scenario
from edgegym.simulator import Fleet
from edgegym.simulator.records import ArraySink
from tests.simulator.test_invariants import worlds

_WINDOW = (
    "counters",
    "families",
    "ttft_histogram",
    "busy_ticks",
    "capacity_ticks",
    "prefill_ticks",
    "nearest_demand",
)
_STATE = (
    "now",
    "profile",
    "receiving",
    "move_bytes_total",
    "transfer_start_s",
    "transfer_end_s",
    "bucket_bytes",
    "active",
    "queued",
    "in_flight",
    "holding",
)


def _check(one, other, fast, full):
    for name in _WINDOW:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    # Waits by which nobody routes are kept for the records of predictions only.
    routes_by_wait = fast.scenario.routing.kind == "load_aware"
    for name in (*_STATE, "advertised_wait_s") if routes_by_wait else _STATE:
        np.testing.assert_array_equal(
            getattr(fast.state, name), getattr(full.state, name), err_msg=name
        )


@given(worlds(), st.integers(0, 2**32), st.lists(st.integers(0, 50), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_full_loop_does_what_the_fast_one_does(scenario, seed, moves):
    fast, full = Fleet(scenario, seed=seed), Fleet(scenario, seed=seed, full=True)
    for choice in moves:
        _check(fast.advance(1.7), full.advance(1.7), fast, full)
        legal = np.argwhere(fast.legal_moves())
        np.testing.assert_array_equal(legal, np.argwhere(full.legal_moves()))
        if len(legal):
            for fleet in (fast, full):
                fleet.start_move(*legal[choice % len(legal)].tolist())


@pytest.mark.parametrize("nodes", [200, 2000])  # with a grid; with memory asked for ahead
@pytest.mark.parametrize("kind", ["nearest", "prefix_aware", "load_aware"])
@pytest.mark.parametrize("logs", [False, True])  # the search is another where requests are logged
def test_the_loops_agree_on_large_fleets(nodes, kind, logs):
    scenario = fleet_scenario(nodes).with_overrides({"routing": {"kind": kind}})
    records = ArraySink() if logs else None
    fast, full = Fleet(scenario, seed=3), Fleet(scenario, seed=3, full=True, records=records)
    for _ in range(2):
        _check(fast.advance(1.0), full.advance(1.0), fast, full)
