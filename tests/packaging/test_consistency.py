"""The same fact stands in several files of the project: here they must agree."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import edgegym

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def pins(file: str) -> dict[str, str]:
    """Return the versions of a constraints file by name."""
    lines = (ROOT / file).read_text().splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


PINS = pins("constraints.txt")
ECOSYSTEM = pins("constraints-ecosystem.txt")
# What the libraries of the examples ask for: RLlib, RL Zoo's tables, its videos.
OTHERS = {"gymnasium", "pillow", "python-dateutil"}
REQUIREMENTS = [
    Requirement(text)
    for group in (PROJECT["dependencies"], *PROJECT["optional-dependencies"].values())
    for text in group
]


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_inside_its_range(requirement):
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_the_examples_run_with_the_tested_versions():
    shared = ECOSYSTEM.keys() & PINS.keys()
    assert {name for name in shared if ECOSYSTEM[name] != PINS[name]} == OTHERS
    assert ECOSYSTEM["gymnasium"] == "1.2.2"
    used = (
        PROJECT["dependencies"],
        *(PROJECT["optional-dependencies"][e] for e in ("sb3", "marl")),
    )
    for requirement in (Requirement(text) for group in used for text in group):
        assert requirement.specifier.contains(ECOSYSTEM[canonicalize_name(requirement.name)])


def test_version_is_the_same_everywhere():
    citation = re.search(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    release = re.search(r"^## Release (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert citation is not None
    assert release is not None
    assert edgegym.__version__ == PROJECT["version"] == citation[1] == release[1]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_make_targets_named_in_the_pages_exist(page):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    # In code only: prose may well say "make an environment".
    named = set(re.findall(r"(?:^ *|`)make ([a-z-]+)", (ROOT / page).read_text(), re.MULTILINE))
    assert named
    assert named <= targets


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_to_files_lead_somewhere(page):
    text = (ROOT / page).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)", text) if "://" not in link]
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_make_refuses_an_old_python(tmp_path):
    old = tmp_path / "python3"
    # A stand-in that fails the version check as Python 3.10 would.
    old.write_text(
        "#!/bin/sh\n"
        'exec python3 -c "import sys; sys.version_info = (3, 10, 1); '
        'sys.version = \'3.10.1 (main)\'; exec(sys.argv[1])" "$2"\n'
    )
    old.chmod(0o755)
    environment = tmp_path / "environment"
    finished = subprocess.run(
        ["make", "--no-print-directory", "install", f"PYTHON={old}", f"VENV={environment}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode != 0
    assert "needs Python 3.11 or newer" in finished.stderr
    assert "is 3.10.1" in finished.stderr
    assert not environment.exists()
