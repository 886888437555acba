"""Many fleets of the full loop in one state: each is the fleet of its seed, to the bit."""

import pickle

import numpy as np
import pytest

from edgegym.simulator import Fleet
from edgegym.simulator.batch import FleetBatch
from edgegym.simulator.state import MIN_RECORDS
from edgegym.threads import Crew
from tests.simulator.fleets import GB, scenario

_CROWD = {"demand.rate_per_node": 40.0, "initial.mix": {"none": 0.6, "big": 0.4}}
_LINK = {"rate_bytes_per_s": 100.0 * GB, "sharing": "shared", "restore_bytes_per_s": 5.0 * GB}
WORLDS = {
    "fetching": {**_CROWD, "backhaul": _LINK, "fetch": {"controller": "always"}},
    "radix": {**_CROWD, "cache": {"kind": "lru", "budget_bytes": 2 * GB}},
    "failing": {
        **_CROWD,
        "failures": {"nodes": {"mean_up_s": 2.0, "mean_down_s": 1.0}},
        "origin": {"rtt_s": 0.1, "slots": 2, "prefill_linear_s": 2e-4, "tpot_s": 0.01},
    },
}
FIGURES = (
    "seconds",
    "arrivals",
    "decided",
    "hits",
    "first_tokens",
    "rejected",
    "completed",
    "ttft_sum_s",
    "goodput_tokens_sum",
    "bytes_moved",
    "utilization",
    "prefill_utilization",
)


@pytest.mark.twin
@pytest.mark.parametrize("name", WORLDS)
def test_each_row_is_the_fleet_of_its_seed(name):
    world = scenario(**WORLDS[name])
    crew = Crew(1)
    batch = FleetBatch(world, 3, crew)
    batch.reset([0, 1, 2], [5, 6, 7])
    alone = [Fleet(world, seed) for seed in (5, 6, 7)]
    first = []
    # The second runs ahead, so that it is the first that needs room.
    for rows, seconds in (([1], 2.5), ([0, 1, 2], 1.0), ([2, 0], 1.5)):
        windows = batch.advance(np.array(rows), seconds)
        expected = [alone[row].advance(seconds) for row in rows]
        assert windows.stats() == expected
        first = first or expected
        for figure in FIGURES:
            found = getattr(windows, figure)
            np.testing.assert_array_equal(
                found, [getattr(window, figure) for window in expected], err_msg=figure
            )
        batch = pickle.loads(pickle.dumps(batch))
    assert batch.state.record_time.shape[1] > MIN_RECORDS
    if name == "fetching":
        assert all(window.stall_sum_s > 0.0 and window.restore_sum_s > 0.0 for window in first)
    # A row that is begun anew knows nothing of what was there before.
    batch.reset([1], [8])
    assert batch.advance(np.array([1]), 1.0).stats() == [Fleet(world, 8).advance(1.0)]
    crew.close()
