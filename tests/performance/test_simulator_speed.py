"""Speed of the simulator on one core; meaningful on a machine that does nothing else."""

import time

import pytest

from edgegym.evaluation.speed import fleet_scenario
from edgegym.simulator import Fleet
from edgegym.world import preset

pytestmark = pytest.mark.slow


def best_cpu_s(function, repeats):
    """Return the least processor time of some calls: the one that was disturbed least."""
    times = []
    for _ in range(repeats):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return min(times)


def test_one_node_serves_three_million_requests_a_second():
    deep = {"name": "deep", "vertices": ["short_prefix", "long_prefix"]}
    scenario = preset("paper").with_overrides(
        {
            "nodes": {"count": 1},
            "region": {"width_km": 1.0, "height_km": 1.0},
            "profiles": [deep],
            "initial.mix": {"deep": 1.0},
            "demand": {"request_intensity": 9.6},
        }
    )
    fleet = Fleet(scenario, seed=1)
    fleet.advance(1000.0)
    seconds = 500_000 / fleet.world.base_rate_per_s
    assert 500_000 / best_cpu_s(lambda: fleet.advance(seconds), repeats=5) > 3e6


def test_an_epoch_of_twenty_five_nodes_takes_a_quarter_of_a_millisecond():
    fleet = Fleet(preset("moving-hotspot"), seed=1)
    fleet.advance(50.0)

    def epochs():
        for _ in range(100):
            fleet.advance(5.0)

    assert best_cpu_s(epochs, repeats=7) / 100 < 250e-6


@pytest.mark.parametrize(("nodes", "requests_per_s"), [(200, 1.5e6), (20_000, 0.8e6)])
def test_the_full_loop_of_large_fleets(nodes, requests_per_s):
    fleet = Fleet(fleet_scenario(nodes), seed=1, full=True)
    fleet.advance(5.0)
    seconds = 500_000 / fleet.world.base_rate_per_s
    assert 500_000 / best_cpu_s(lambda: fleet.advance(seconds), repeats=5) > requests_per_s
