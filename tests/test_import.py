"""What `import edgegym` loads, and which names it offers."""

import json
import subprocess
import sys

import pytest

import edgegym

# Each of these costs a tenth of a second to seconds; none is needed to name a scenario.
HEAVY = ("matplotlib", "numba", "pandas", "scipy.stats", "stable_baselines3", "torch")
PUBLIC = ("Scenario", "preset", "presets", "register")

IMPORT_AND_REPORT = """
import json, sys
import edgegym
print(json.dumps(sorted(sys.modules)))
"""


def run_python(code: str, *options: str) -> str:
    """Run code in a new interpreter and return what it printed."""
    finished = subprocess.run(
        [sys.executable, *options, "-c", code], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_import_loads_nothing_heavy():
    modules = json.loads(run_python(IMPORT_AND_REPORT))
    assert [name for name in HEAVY if name in modules] == []


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_listed_and_found(name):
    assert name in edgegym.__all__
    assert name in dir(edgegym)
    assert callable(getattr(edgegym, name))


def test_every_listed_name_exists():
    assert [name for name in edgegym.__all__ if not hasattr(edgegym, name)] == []


def test_unknown_name_is_refused_by_name():
    with pytest.raises(AttributeError, match="no_such_name"):
        edgegym.no_such_name  # noqa: B018


def test_environments_are_registered_once_without_a_warning():
    code = """
import importlib, gymnasium as gym, edgegym
assert "EdgeGym/Placement-v0" in gym.registry
edgegym.register()
importlib.reload(edgegym)
assert "EdgeGym/Placement-v0" in gym.registry
"""
    run_python(code, "-W", "error")
