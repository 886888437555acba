"""The one way edgegym compiles a function.

Numba's on-disk cache looks only at the file of the compiled function: an edit in a callee that
lives elsewhere goes unnoticed and the old machine code runs. So every kernel is cached in a folder
named after a hash of all sources that hold kernels: an edit in any of them starts a fresh folder.
Installations with the same sources and the same Numba share it, wherever they lie.
"""

import gc
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from threading import Timer
from typing import Any

import numba
from numba.core import config, event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator

_STALE_AFTER_S = 7 * 24 * 3600.0
# Kernels and the constants compiled into them live here and nowhere else.
_KERNEL_PACKAGES = ("analytic", "interface", "simulator", "world")

numba_config: Any = config  # its settings appear when Numba reads the environment


def _cache_root() -> Path:
    """Return a writable folder for compiled kernels.

    ``EDGEGYM_CACHE_DIR`` wins, then ``XDG_CACHE_HOME``, then ``~/.cache``; where none of them can
    be written (a read-only home in a container, say) a folder of this user under the system's
    temporary directory.
    """
    candidates = []
    if chosen := os.environ.get("EDGEGYM_CACHE_DIR"):
        candidates.append(Path(chosen))
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
        candidates.append(Path(base) / "edgegym")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    candidates.append(Path(tempfile.gettempdir()) / f"edgegym-{user}")
    for path in candidates:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK | os.X_OK):
            return path
    tried = ", ".join(str(path) for path in candidates)
    raise OSError(f"no writable folder for compiled kernels (tried {tried}); set EDGEGYM_CACHE_DIR")


def _source_hash() -> str:
    """Return a hash of everything that is compiled, or compiled in; it names the cache folder."""
    digest = hashlib.sha256(numba.__version__.encode())
    here = Path(__file__)
    sources = [here]
    for package in _KERNEL_PACKAGES:
        sources += sorted((here.parent / package).rglob("*.py"))
    for path in sources:
        digest.update(str(path.relative_to(here.parent)).encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _prune(root: Path, keep: Path) -> None:
    """Remove kernel folders of older sources that nobody has used for a week."""
    for path in root.iterdir():
        try:
            if (
                path != keep
                and path.is_dir()
                and time.time() - path.stat().st_mtime > _STALE_AFTER_S
            ):
                shutil.rmtree(path, ignore_errors=True)
        except OSError:  # another process removed it first
            continue


@cache
def cache_folder() -> Path:
    """Return the folder in which this version's compiled kernels are kept.

    Returns
    -------
    pathlib.Path
        Exists and is writable.

    Raises
    ------
    OSError
        If neither the chosen folder nor the temporary directory can be written.
    """
    root = _cache_root()
    folder = root / f"kernels-{_source_hash()}"
    if not folder.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _prune(root, folder)
    else:
        os.utime(folder)
    return folder


class _Locator(UserProvidedCacheLocator):
    """Where a kernel is kept: by its place in edgegym instead of on the machine."""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the name of the folder for a source file."""
        folder = Path(py_file).absolute().parent
        here = Path(__file__).absolute().parent
        if not folder.is_relative_to(here):
            return super().get_suitable_cache_subpath(py_file)
        return ".".join(folder.relative_to(here).parts) or "edgegym"


class _KernelCacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 - as in Numba


class _KernelCache(FunctionCache):
    _impl_class = _KernelCacheImpl


class _Announcer(event.Listener):
    """Says on standard error, once per process, why the first call takes long.

    Meanwhile garbage is collected less often: Numba keeps most of the millions of objects that it
    makes, and to look at them again and again takes a tenth of the time.
    """

    _PATIENCE_S = 1.0
    _OBJECTS = 50_000  # made between two collections

    def __init__(self) -> None:
        self._depth = 0
        self._usual_objects = 0
        self._timer: Timer | None = None
        self._announced = False

    def _announce(self) -> None:
        self._announced = True
        sys.stderr.write(
            "edgegym: compiling (once after an install or an edit, about 15 s, and about a minute "
            "where the full event loop is needed)\n"
        )

    def on_start(self, event: event.Event) -> None:
        """Take note of a compilation that starts, perhaps inside another."""
        self._depth += 1
        if self._depth == 1:
            self._usual_objects, *later = gc.get_threshold()
            if self._usual_objects > 0:  # else nothing is collected
                gc.set_threshold(max(self._usual_objects, self._OBJECTS), *later)
        function = event.data["dispatcher"].py_func if event.data else None
        ours = getattr(function, "__module__", "").startswith("edgegym.")
        if ours and self._timer is None and not self._announced:
            self._timer = Timer(self._PATIENCE_S, self._announce)
            self._timer.daemon = True
            self._timer.start()

    def on_end(self, event: event.Event) -> None:
        """Take note of a compilation that ends."""
        del event
        self._depth -= 1
        if self._depth == 0:
            gc.set_threshold(self._usual_objects, *gc.get_threshold()[1:])
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._timer = None


event.register("numba:compile", _Announcer())


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function to machine code that releases the GIL and is cached across processes.

    Parameters
    ----------
    function : callable
        A function in Numba's nopython subset; ``@kernel`` and ``@kernel(inline="always")`` work.
    **options
        Passed to :func:`numba.njit`; the defaults are ``cache=True, nogil=True,
        error_model="numpy"``.

    Returns
    -------
    callable
        The dispatcher; the plain Python function when ``NUMBA_DISABLE_JIT=1``.
    """
    if function is None:
        return lambda target: kernel(target, **options)
    settings = {"cache": True, "nogil": True, "error_model": "numpy"} | options
    cached = settings.pop("cache")
    dispatcher = numba.njit(**settings)(function)
    if not cached or numba_config.DISABLE_JIT:
        return dispatcher
    before = numba_config.CACHE_DIR
    # Numba reads the folder while it decorates: restoring it leaves users' own functions alone.
    numba_config.CACHE_DIR = str(cache_folder())
    try:
        dispatcher._cache = _KernelCache(function)  # pyright: ignore[reportAttributeAccessIssue]
    finally:
        numba_config.CACHE_DIR = before
    return dispatcher
