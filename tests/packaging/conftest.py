"""The built wheel, and a new environment that holds it and the libraries it works with."""

import shutil
import sys
import venv
from pathlib import Path

import pytest

from tests.packaging.running import ROOT, run

LIBRARIES = ("ray[rllib]", "rl_zoo3", "nbclient", "ipykernel", "pytest")


@pytest.fixture(scope="session")
def distributions(tmp_path_factory) -> Path:
    """A folder with the source distribution and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder)
    return folder


@pytest.fixture(scope="session")
def wheel(distributions) -> Path:
    (path,) = distributions.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory) -> Path:
    """A folder outside the clone to work in; it holds nothing but a copy of the examples."""
    folder = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.fixture(scope="session")
def programs(wheel, elsewhere) -> Path:
    """The folder of programs of a new environment with the wheel and all that examples use.

    Its Gymnasium is the one that ``ray[rllib]`` wants, older than that of the clone's environment.
    """
    home = elsewhere / "environment"
    venv.create(home, with_pip=True)
    folder = home / ("Scripts" if sys.platform == "win32" else "bin")
    install = [folder / "python", "-m", "pip", "install", "--quiet", "--no-compile"]
    constraints = ROOT / "constraints-ecosystem.txt"
    own = elsewhere / "examples" / "own_package"
    run(*install, "-c", constraints, f"{wheel}[sb3,marl]", own, *LIBRARIES, cwd=elsewhere)
    return folder
