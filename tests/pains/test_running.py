"""Pains of people who run simulators: each shown to be absent."""

import base64
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from edgegym.cli.main import COMMANDS
from edgegym.envs.placement import PlacementEnv
from tests.envs.workers import run_episode

ROOT = Path(__file__).parents[2]
EPISODE = """
import base64
from tests.envs.workers import run_episode
print(base64.b64encode(run_episode(5, "toy")).decode())
"""


def start(**environment: str) -> subprocess.Popen[str]:
    """Run the short episode in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-c", EPISODE],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def bits(process: subprocess.Popen[str]) -> bytes:
    """Return the bits of the episode once it is over."""
    printed, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    return base64.b64decode(printed)


def test_it_is_not_slow():
    """An hour of 25 nodes and 90 requests/s in well below a second of computing."""
    env = PlacementEnv("moving-hotspot", overrides={"control.horizon_epochs": 720})
    env.reset(seed=0)
    env.step(env.actions.no_op)
    begin = time.process_time()
    for _ in range(719):
        env.step(env.actions.no_op)
    assert time.process_time() - begin < 2.0
    assert env.episode_stats.arrivals > 200_000
    assert "bench" in COMMANDS, "which measures the user's own machine"


def test_without_numba_s_compiler_the_bits_are_the_same():
    assert bits(start(NUMBA_DISABLE_JIT="1")) == run_episode(5, "toy")


@pytest.mark.slow
def test_processes_that_compile_at_once_do_not_harm_each_other(tmp_path):
    processes = [start(EDGEGYM_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    assert {bits(process) for process in processes} == {run_episode(5, "toy")}
    assert bits(start(EDGEGYM_CACHE_DIR=str(tmp_path))) == run_episode(5, "toy")
