"""Files that are either complete or absent: written beside their place, then renamed."""

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
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
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
        temporary.chmod(0o666 & ~mask)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


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
