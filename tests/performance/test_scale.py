"""How fast and how large: the marks hold on a machine that does nothing else."""

import json
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# A process of its own: the peak of its memory is that of this fleet alone.
RUN = """
import json, resource, sys, time
from edgegym.evaluation.speed import fleet_scenario
from edgegym.simulator import Fleet

nodes, requests, windows, warm_up_s = (float(argument) for argument in sys.argv[1:])
fleet = Fleet(fleet_scenario(int(nodes)), seed=0)
fleet.advance(warm_up_s)
span_s = requests / windows / fleet.world.base_rate_per_s
begin, arrivals, peaks = time.process_time(), 0, []
for _ in range(int(windows)):
    arrivals += fleet.advance(span_s).arrivals
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
rate = arrivals / (time.process_time() - begin)
print(json.dumps({"arrivals": arrivals, "rate": rate, "peaks_gib": peaks}))
"""


def measure(nodes, requests, windows=1, warm_up_s=5.0):
    """Return arrivals, requests per second of processor time, and peak memory by window."""
    command = [sys.executable, "-c", RUN, *map(str, (nodes, requests, windows, warm_up_s))]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(finished.stdout)


@pytest.fixture(scope="module")
def rate_of_200_nodes():
    measure(200, 1e5)  # compiles the kernels where nobody has yet
    return max(measure(200, 2e6)["rate"] for _ in range(3))


def test_200_nodes_serve_one_and_a_half_million_requests_a_second(rate_of_200_nodes):
    assert rate_of_200_nodes > 1.5e6


def test_20000_nodes_serve_four_fifths_of_a_million():
    assert max(measure(20_000, 2e6)["rate"] for _ in range(3)) > 0.8e6


def test_a_million_nodes_serve_twenty_million_requests_in_four_gibibytes():
    run = measure(1_000_000, 2e7, warm_up_s=0.0)
    assert run["arrivals"] == pytest.approx(2e7, rel=1e-3)
    assert run["peaks_gib"][-1] < 4.0
    # A quarter of the mark of 200 nodes.
    assert run["rate"] > 1.5e6 / 4


def test_a_hundred_million_requests_need_no_more_memory_than_ten_million():
    run = measure(200, 1e8, windows=10)
    assert run["arrivals"] == pytest.approx(1e8, rel=1e-3)
    assert run["peaks_gib"][-1] < run["peaks_gib"][0] + 0.02
