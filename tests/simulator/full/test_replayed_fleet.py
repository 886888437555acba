"""A fleet that serves a replayed trace: own lengths count, and large prompts take long to send."""

import pytest

from edgegym.simulator import Fleet
from tests.simulator.fleets import scenario
from tests.simulator.replays import write_requests

LENGTHS = (1000, 3000, 900, 5000, 1200, 800)


def idle_fleet(folder, xi_factor=1.0):
    """Serve six requests of `chat`, 100 s apart, on nodes that hold nothing; return the window."""
    rows = [(100 * k, "chat", length, 3 + k) for k, length in enumerate(LENGTHS)]
    path = write_requests(folder / "requests.csv", rows)
    chat = scenario().request_types[0].model_dump(exclude_none=True)
    chosen = scenario(
        request_types=[chat | {"share": 1.0, "xi_factor": xi_factor}],
        routing={"kind": "nearest"},
        demand={
            "rate_per_node": 0.002,
            "modulations": [{"kind": "trace", "path": str(path), "repeat": False}],
        },
    )
    window = Fleet(chosen, seed=2).advance(1000.0)
    assert (window.arrivals, window.completed) == (6, 6)
    return window


@pytest.mark.twin
def test_prefill_is_that_of_the_own_lengths(tmp_path):
    """1 ms for each token; nobody waits, as requests are 100 s apart."""
    window = idle_fleet(tmp_path)
    assert window.wait_sum_s == 0.0
    assert window.prefill_sum_s == pytest.approx(1e-3 * sum(LENGTHS), abs=1e-8)


@pytest.mark.twin
def test_the_radio_takes_as_many_times_as_long_as_the_type_says(tmp_path):
    plain, large = idle_fleet(tmp_path), idle_fleet(tmp_path, xi_factor=2.5)
    assert plain.radio_sum_s > 0.0
    assert large.radio_sum_s == pytest.approx(2.5 * plain.radio_sum_s, abs=1e-7)
    assert large.prefill_sum_s == plain.prefill_sum_s
