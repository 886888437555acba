"""Speed of the routing environment; meaningful on a machine that does nothing else."""

import statistics
import time

import pytest

from edgegym.envs.routing import RoutingEnv

pytestmark = pytest.mark.slow

STEPS = 5000


def test_at_least_twenty_thousand_steps_a_second():
    env = RoutingEnv("moving-hotspot")
    env.reset(seed=0)
    seconds = []
    for _ in range(5):
        env.reset()
        begin = time.process_time()
        for _ in range(STEPS):
            env.step_by_router()
        seconds.append(time.process_time() - begin)
    rate = STEPS / statistics.median(seconds)
    print(f"{rate:,.0f} steps/s")
    assert rate >= 20_000
