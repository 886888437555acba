"""Settings of the whole suite: no display, repeatable examples, nothing left behind."""

import gc
import os
import random
import signal
import sys

# A shell that starts us in the background makes us ignore interrupts, and all that we start; some
# tests send them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Before NumPy, PyTorch or Matplotlib load, and inherited by every process that a test starts.
os.environ["MPLBACKEND"] = "Agg"
# One thread a process: the suite itself runs in several, and timings mean one core.
for name in ("MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402
import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# A first call may compile a kernel, so no example has a deadline and none counts as slow.
settings.register_profile(
    "repeatable",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
# New examples on every run: `pytest --hypothesis-profile=explore`.
settings.register_profile(
    "explore",
    deadline=None,
    max_examples=1000,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_collection_finish():
    """Spare the garbage collector what was imported: it would walk all of that again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def nothing_left_behind():
    """Restore the process-wide random generators and refuse figures that were never closed.

    Stable-Baselines3 seeds the global generators; without this a test's outcome could depend on
    which one ran before it.
    """
    python_state = random.getstate()
    numpy_state = np.random.get_state()  # noqa: NPY002
    yield
    random.setstate(python_state)
    np.random.set_state(numpy_state)  # noqa: NPY002
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        left_open = pyplot.get_fignums()
        pyplot.close("all")
        assert not left_open, f"figures left open: {left_open}"
