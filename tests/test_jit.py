"""Where compiled kernels are kept, and what the user is told meanwhile."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest
from numba.core import event

import edgegym.jit as jit

_SLOW_COMPILE = """
import time
import edgegym.jit as jit
from numba.core import event

jit._Announcer._PATIENCE_S = 0.0

def function(x):
    return x + 1

function.__module__ = {module!r}
compiled = jit.kernel(function, cache=False)
compiled(1)
time.sleep(0.3)
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package tree of our own instead of edgegym's, with one kernel file and one other."""
    for name in ("simulator/step.py", "cli/main.py"):
        path = tmp_path / name
        path.parent.mkdir()
        path.write_text("x = 1\n")
    (tmp_path / "jit.py").write_text("y = 1\n")
    monkeypatch.setattr(jit, "__file__", str(tmp_path / "jit.py"))
    return tmp_path


def test_an_edit_of_a_kernel_source_starts_a_new_folder(package: Path) -> None:
    before = jit._source_hash()
    (package / "simulator" / "step.py").write_text("x = 2\n")
    assert jit._source_hash() != before


def test_an_edit_elsewhere_keeps_the_folder(package: Path) -> None:
    before = jit._source_hash()
    (package / "cli" / "main.py").write_text("x = 2\n")
    assert jit._source_hash() == before


def test_every_kernel_lives_in_a_hashed_package() -> None:
    root = Path(jit.__file__).parent
    users = {
        path.relative_to(root).parts[0]
        for path in root.rglob("*.py")
        if "edgegym.jit import" in path.read_text() or "simulator.compiling" in path.read_text()
    }
    assert users <= set(jit._KERNEL_PACKAGES)


def test_the_chosen_cache_folder_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEGYM_CACHE_DIR", str(tmp_path / "mine"))
    assert jit._cache_root() == tmp_path / "mine"


def test_an_unwritable_folder_is_replaced_by_a_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EDGEGYM_CACHE_DIR", str(tmp_path / "file" / "below"))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    root = jit._cache_root()
    assert root.parent == tmp_path / "tmp"
    assert root.is_dir()


@pytest.mark.parametrize(("module", "announced"), [("edgegym.fake", True), ("mine", False)])
def test_only_our_own_compilation_is_announced(module: str, announced: bool) -> None:
    code = _SLOW_COMPILE.format(module=module)
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert ("edgegym: compiling" in run.stderr) is announced


def test_garbage_is_collected_as_before_once_a_compilation_is_over() -> None:
    begun = event.Event("numba:compile", event.EventStatus.START)
    ended = event.Event("numba:compile", event.EventStatus.END)
    announcer = jit._Announcer()
    usual = gc.get_threshold()
    try:
        gc.set_threshold(500, 7, 8)
        announcer.on_start(begun)
        announcer.on_start(begun)
        announcer.on_end(ended)
        assert gc.get_threshold() == (announcer._OBJECTS, 7, 8)
        announcer.on_end(ended)
        assert gc.get_threshold() == (500, 7, 8)
    finally:
        gc.set_threshold(*usual)


def test_installations_with_the_same_sources_share_what_is_compiled(tmp_path: Path) -> None:
    hits = []
    for home in ("here", "there"):
        package = tmp_path / home / "edgegym"
        (package / "world").mkdir(parents=True)
        (package / "__init__.py").touch()
        (package / "jit.py").write_bytes(Path(jit.__file__).read_bytes())
        (package / "world" / "one.py").write_text(
            "from edgegym.jit import kernel\n\n@kernel\ndef one_more(x):\n    return x + 1\n"
        )
        code = (
            "from edgegym.world.one import one_more; one_more(1); "
            "print(sum(one_more.stats.cache_hits.values()))"
        )
        environment = os.environ | {
            "EDGEGYM_CACHE_DIR": str(tmp_path / "cache"),
            "PYTHONPATH": str(package.parent),
        }
        run = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        hits.append(int(run.stdout))
    assert hits == [0, 1]
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 1
