"""The examples, shortened, with the installed wheel and the libraries that they are about."""

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.running import ROOT, run

pytestmark = pytest.mark.wheel

NUMBER = r"(\d+\.\d+)"

RUN_NOTEBOOK = """
import nbclient, nbformat
notebook = nbformat.read("quickstart.ipynb", as_version=4)
setup = notebook.cells[1]
assert "STEPS = 20_000" in setup.source and 'SCENARIO = "moving-hotspot"' in setup.source
setup.source = setup.source.replace("STEPS = 20_000", "STEPS = 1_024")
nbclient.NotebookClient(notebook, timeout=300).execute()
for cell in notebook.cells:
    for output in cell.get("outputs", []):
        print(output.get("text", "") or sorted(output.get("data", {})))
"""


@pytest.fixture
def example(programs, elsewhere):
    """Return a function that runs an example and gives what it printed; warnings are errors."""

    def start(name: str, *options: str, strict: bool = True, **changes: str) -> str:
        python = [programs / "python", *(("-W", "error") if strict else ())]
        folder = (elsewhere / "examples" / name).parent
        return run(*python, Path(name).name, *options, cwd=folder, **changes).stdout

    return start


def found(pattern: str, text: str) -> list[float]:
    """Return the numbers at the places of a pattern's groups."""
    match = re.search(pattern, text)
    assert match is not None, text
    return [float(group) for group in match.groups()]


def test_sb3_ppo(example, elsewhere):
    said = example("sb3_ppo.py", "--steps", "1024")
    (coverage,) = found(f"the last 8 episodes:\ncoverage {NUMBER}", said)
    assert 0.3 < coverage < 1.0
    assert list((elsewhere / "examples" / "runs" / "sb3_ppo").rglob("events.out.tfevents*"))


def test_sb3_maskable_ppo(example, elsewhere):
    said = example("sb3_maskable_ppo.py", "--steps", "2048", "--seeds", "1")
    assert "2048 steps" in said
    assert "analytic_local" in said
    assert {"mine.zip", "mine.json"} <= {p.name for p in (elsewhere / "examples").iterdir()}


def test_sb3_sac_regional_mix(example):
    said = example("sb3_sac_regional_mix.py", "--steps", "200")
    (coverage,) = found(f"coverage {NUMBER}", said)
    assert 0.3 < coverage < 1.0


def test_cleanrl_style_ppo_learns(example):
    said = example("cleanrl_style_ppo.py", "--scenario", "toy", "--steps", "20480")
    first, last = found(f"first {NUMBER}, last {NUMBER}", said)
    assert last > first + 0.1


def test_pettingzoo_loop(example):
    said = example("pettingzoo_loop.py", "--steps", "60", "--episodes", "1")
    idle, demand = found(f"(?s)nothing +coverage {NUMBER}.*favourite +coverage {NUMBER}", said)
    assert demand > idle + 0.05


def test_rl_zoo(example, elsewhere):
    common = ["--env", "EdgeGym/Placement-v0", "--gym-packages", "edgegym", "--eval-freq", "-1"]
    short = ["-n", "256", "-params", "n_steps:16", "batch_size:64", "n_envs:2", "-f", "logs"]
    said = example(
        "rl_zoo/train.py",
        *("--algo", "ppo_mask", "--conf-file", "ppo_mask.yml", *common, *short),
        strict=False,
    )
    assert "Saving to logs/ppo_mask/EdgeGym-Placement-v0_1" in said
    said = example(
        "rl_zoo/train.py",
        *("--algo", "ppo", "--conf-file", "ppo.yml", *common, *short),
        strict=False,
    )
    saved = elsewhere / "examples" / "rl_zoo" / "logs" / "ppo" / "EdgeGym-Placement-v0_1"
    assert (saved / "EdgeGym-Placement-v0.zip").is_file()


def test_rllib_ppo(example):
    # Ray keeps sockets there, whose names must be short, and a token in the home folder.
    home = Path(tempfile.mkdtemp(prefix="ray"))
    changes = {"HOME": str(home), "RAY_TMPDIR": str(home)}
    options = ("--steps", "512", "--batch", "512", "--runners", "0")
    try:
        said = started(lambda: example("rllib_ppo.py", *options, strict=False, **changes))
    finally:
        shutil.rmtree(home, ignore_errors=True)
    (mean_return,) = found(f"512 steps, mean return of the last episodes {NUMBER}", said)
    assert 30.0 < mean_return < 120.0


def started(attempt: Callable[[], str], tries: int = 3) -> str:
    """Return what Ray's example printed: Ray gives its processes 15 s to start, busy or not."""
    for _ in range(tries - 1):
        try:
            return attempt()
        except AssertionError as error:
            if "timed out during startup" not in str(error):
                raise
    return attempt()


def test_own_package(example):
    said = example("own_package/train.py", "--steps", "4096", "--seeds", "1")
    assert "ok      room" in said
    campus, other = found(f"campus: coverage {NUMBER}\nexam-week: coverage {NUMBER}", said)
    assert campus > 0.3  # without any move: 0
    assert 0.0 <= other <= 1.0


def test_notebook(programs, elsewhere):
    said = run(
        *(programs / "python", "-c", RUN_NOTEBOOK),
        cwd=elsewhere / "examples",
        # As in a notebook, instead of the suite's backend that shows nothing.
        MPLBACKEND="module://matplotlib_inline.backend_inline",
    ).stdout
    assert "image/png" in said
    assert "analytic_local" in said


def test_checkers_on_the_gymnasium_that_rllib_wants(programs, elsewhere):
    """The very tests that the suite runs on the newest Gymnasium."""
    shutil.copy(ROOT / "tests" / "envs" / "test_checkers.py", elsewhere)
    version = "import gymnasium; print(gymnasium.__version__)"
    assert run(programs / "python", "-c", version, cwd=elsewhere).stdout == "1.2.2\n"
    pytest_in = [programs / "python", "-m", "pytest", "-q", "-W", "error"]
    said = run(*pytest_in, "-p", "no:cacheprovider", "test_checkers.py", cwd=elsewhere).stdout
    assert re.search(r"^\d+ passed", said, re.MULTILINE), said
