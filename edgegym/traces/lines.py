"""The lines of a text file, plain or gzipped."""

import gzip
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from edgegym.traces.trace import TraceError

_GZIP_MAGIC = b"\x1f\x8b"


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that are not blank, with their numbers.

    Compression is recognised by the file's first two bytes, not by its name.

    Parameters
    ----------
    path : path-like
        A UTF-8 text file, plain or gzipped.

    Yields
    ------
    tuple of int and str
        The line's number, counted from 1, and its text without surrounding white space.

    Raises
    ------
    TraceError
        If the file can't be opened, is a damaged gzip stream, or is not UTF-8 text.
    """
    number = 0
    try:
        with Path(path).open("rb") as raw:
            compressed = raw.read(2) == _GZIP_MAGIC
            raw.seek(0)
            stream: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=raw) if compressed else raw
            for number, line in enumerate(stream, start=1):
                # A byte-order mark is not part of the first value.
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text:
                    yield number, text
    except UnicodeDecodeError as error:
        raise TraceError.at(
            path, number, f"not UTF-8 text ({error.reason} at byte {error.start})"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise TraceError.at(
            path, number + 1, f"the gzip stream is cut off or damaged here ({error})"
        ) from error
    except OSError as error:
        raise TraceError.at(path, None, f"can't be read: {error.strerror or error}") from error
