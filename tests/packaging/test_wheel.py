"""The built wheel, installed into a new environment and used away from the clone."""

import re
import tarfile
import zipfile
from pathlib import Path

import pytest

import edgegym
from tests.packaging.running import ROOT, run

pytestmark = pytest.mark.wheel

STEP_EVERY_PRESET = """
import edgegym, gymnasium as gym
for name in edgegym.presets():
    env = gym.make("edgegym:EdgeGym/Placement-v0", scenario=name)
    env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step(env.action_space.n - 1)
    assert env.observation_space.contains(observation)
    print(name, edgegym.__file__)
"""

LONG_DESCRIPTION = """
from importlib.metadata import metadata
print(metadata("edgegym").get_payload())
"""


def test_wheel_holds_the_library_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    information = f"edgegym-{edgegym.__version__}.dist-info"
    assert {Path(name).parts[0] for name in names} == {"edgegym", information}
    assert {"edgegym/py.typed", f"{information}/licenses/LICENSE"} <= set(names)


def test_wheel_holds_every_file_of_the_library(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("edgegym/")}
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "edgegym").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert names == sources


def test_source_distribution_can_run_the_tests(distributions):
    (path,) = distributions.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"Makefile", "constraints.txt", "tests/conftest.py", "agents/__main__.py"} <= names


def test_every_preset_can_be_made_and_stepped(programs, elsewhere):
    lines = run(programs / "python", "-c", STEP_EVERY_PRESET, cwd=elsewhere).stdout.splitlines()
    assert len(lines) == len(edgegym.presets())
    for line in lines:
        assert Path(line.split(maxsplit=1)[1]).is_relative_to(elsewhere)


def test_command_line_is_installed(programs, elsewhere):
    listed = run(programs / "edgegym", "scenarios", "list", cwd=elsewhere).stdout
    assert [name for name in edgegym.presets() if name not in listed] == []


def test_quick_start_of_the_readme_runs(programs, elsewhere):
    description = run(programs / "python", "-c", LONG_DESCRIPTION, cwd=elsewhere).stdout
    block = re.search(r"^```python\n(.*?)^```", description, re.DOTALL | re.MULTILINE)
    assert block is not None
    assert "30_000" in block[1]
    (elsewhere / "quick_start.py").write_text(block[1].replace("30_000", "2_048"))
    finished = run(programs / "python", "quick_start.py", cwd=elsewhere)
    assert "coverage" in finished.stdout.lower()
    assert "Warning" not in finished.stderr
