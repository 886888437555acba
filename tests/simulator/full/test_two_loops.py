"""On worlds that both loops can simulate they agree to the bit."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgegym.simulator import Fleet
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


@given(worlds(), st.integers(0, 2**32), st.lists(st.integers(0, 50), min_size=4, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_full_loop_does_what_the_fast_one_does(scenario, seed, moves):
    fast, full = Fleet(scenario, seed=seed), Fleet(scenario, seed=seed, full=True)
    # Waits by which nobody routes are kept for the records of predictions only.
    names = (*_STATE, "advertised_wait_s") if scenario.routing.kind == "load_aware" else _STATE
    for choice in moves:
        one, other = fast.advance(1.7), full.advance(1.7)
        for name in _WINDOW:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
        for name in names:
            np.testing.assert_array_equal(
                getattr(fast.state, name), getattr(full.state, name), err_msg=name
            )
        legal = np.argwhere(fast.legal_moves())
        np.testing.assert_array_equal(legal, np.argwhere(full.legal_moves()))
        if len(legal):
            for fleet in (fast, full):
                fleet.start_move(*legal[choice % len(legal)].tolist())
