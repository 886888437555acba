"""Files that are either complete or absent: written beside their place, then renamed."""

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def atomic_path(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path that becomes ``path`` when the block ends without an error.

    Parameters
    ----------
    path : path-like
        The file to write. Its folder is created when missing.

    Yields
    ------
    pathlib.Path
        A fresh file in the same folder, with the same suffix. It is removed if the block raises.

    Raises
    ------
    OSError
        If the file can't be written; it names ``path``, not the temporary one.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    refuse_folder(target)
    with _errors_name(target):
        handle, name = tempfile.mkstemp(
            prefix=f".{target.stem}-", suffix=target.suffix, dir=target.parent
        )
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; a result should have the rights that a plain open() gives.
        mask = os.umask(0)
        os.umask(mask)
        with _errors_name(target):
            temporary.chmod(0o666 & ~mask)
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _errors_name(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def refuse_folder(path: Path) -> None:
    """Refuse a folder where a file is to be written.

    Raises
    ------
    IsADirectoryError
        If ``path`` is one.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder, not a file", str(path))


def make_folder(path: Path) -> None:
    """Make a folder and find out whether files can be written to it.

    Parameters
    ----------
    path : pathlib.Path
        The folder; it may exist. Folders above it are created when missing.

    Raises
    ------
    OSError
        If it is a file, can't be made, or can't be written to.
    """
    if path.is_file():
        raise NotADirectoryError(errno.ENOTDIR, "is a file, not a folder", str(path))
    path.mkdir(parents=True, exist_ok=True)
    try:
        # Rights alone don't tell: file systems may be read-only, full or unreal (/proc).
        tempfile.TemporaryFile(prefix=".", dir=path).close()
    except OSError as error:
        raise OSError(
            error.errno, f"files can't be written to it ({error.strerror or error})", str(path)
        ) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a UTF-8 text file whole or not at all.

    Parameters
    ----------
    path : path-like
        The file to write. Its folder is created when missing.
    text : str
        The contents.
    """
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
