"""How soon a new process is at work; meaningful on a machine that does nothing else."""

import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.slow

IMPORT = """
import time
start = time.perf_counter()
import edgegym
print(time.perf_counter() - start)
"""

FIRST_STEP = """
import gymnasium as gym
env = gym.make("edgegym:EdgeGym/Placement-v0", scenario="moving-hotspot")
env.reset(seed=0)
env.step(env.action_space.n - 1)
env.close()
"""


def run_python(code: str) -> str:
    """Run code in a new interpreter and return what it printed."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_import_is_quick():
    assert min(float(run_python(IMPORT)) for _ in range(5)) <= 0.35


def test_second_process_reaches_its_first_step_quickly():
    run_python(FIRST_STEP)  # compiles the kernels where nobody has yet
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run_python(FIRST_STEP)
        seconds.append(time.perf_counter() - start)
    assert min(seconds) <= 2.5
