"""Files of recorded requests: their format, and how they are read and written."""

import csv
import gzip
import io
import math
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from edgegym.files import atomic_path

COLUMNS = ("arrival_s", "type", "input_tokens", "output_tokens")
"""Columns of a replay file."""

_GZIP_MAGIC = b"\x1f\x8b"
_MOST_TOKENS = 10**9
_LATEST_S = 1e9
_MICROSECONDS = 1e6
_SHARED, _EVEN = 0.5, 0.02


@dataclass(frozen=True, kw_only=True, eq=False)
class RecordedRequests:
    """The R requests of a replay file, in order of arrival."""

    path: str
    """The file."""
    type_names: tuple[str, ...]
    """Names of the request types in it."""
    arrival_s: NDArray[np.float64]
    """Seconds since the first request ``[R]``, never decreasing."""
    type: NDArray[np.int64]
    """Index into ``type_names`` ``[R]``."""
    input_tokens: NDArray[np.int64]
    """Prompt lengths ``[R]``, at least 1."""
    output_tokens: NDArray[np.int64]
    """Generated tokens ``[R]``, at least 1."""
    quantum_s: float = 0.0
    """Step of the recorded times, 0 where they are exact."""
    cycle_s: float = math.inf
    """From one start of the file to the next."""

    def timed(self, quantum_s: float | None, cycle_s: float | None) -> "RecordedRequests":
        """Return the requests with their step and cycle.

        Parameters
        ----------
        quantum_s : float, optional
            Step of the recorded times; by default what :func:`recorded_step` finds.
        cycle_s : float, optional
            From one start of the file to the next; by default up to the last request plus a step,
            or the mean time between requests if that is longer.

        Raises
        ------
        ValueError
            If the cycle ends before the last request, or nothing says how long it is.
        """
        step = recorded_step(self.arrival_s) if quantum_s is None else quantum_s
        last = float(self.arrival_s[-1])
        if cycle_s is None:
            mean = last / (len(self.arrival_s) - 1) if last > 0.0 else 0.0
            cycle_s = last + max(step, mean)
            if cycle_s == 0.0:
                raise ValueError(
                    f"replay file {self.path}: all requests came at one instant, so there is no "
                    "mean time between them; give cycle_s"
                )
        elif cycle_s <= last:
            raise ValueError(
                f"cycle_s = {cycle_s:g}: must be longer than the {last:g} s from the first request "
                f"of {self.path} to the last"
            )
        return replace(self, quantum_s=step, cycle_s=cycle_s)

    @property
    def spread_s(self) -> NDArray[np.float64]:
        """How far after its recorded time each request may have come ``[R]``, seconds.

        One step, but at most up to the next time that was recorded.
        """
        distinct, group = np.unique(self.arrival_s, return_inverse=True)
        gaps = np.diff(np.append(distinct, self.cycle_s))
        return np.minimum(gaps, self.quantum_s)[group]

    @property
    def rate_per_s(self) -> float:
        """Mean rate over a cycle, as recorded."""
        return len(self.arrival_s) / self.cycle_s


def recorded_step(times_s: NDArray[np.float64]) -> float:
    """Return the step in which times were recorded.

    Where most requests share their time with others and the times are evenly spaced (the middle
    half of the gaps within 1 % of the median), that spacing: recorders that write in batches keep
    their pace only roughly. Otherwise the largest step of which all times are multiples.

    Parameters
    ----------
    times_s : ndarray
        Times in seconds from 0, never decreasing.

    Returns
    -------
    float
        Seconds; at least a microsecond, or 0 where times are finer than that or all the same.
    """
    distinct = np.unique(times_s)
    if 2 < len(distinct) < _SHARED * len(times_s):
        low, middle, high = np.quantile(np.diff(distinct), (0.25, 0.5, 0.75))
        if high - low <= _EVEN * middle:
            return float(middle)
    scaled = distinct * _MICROSECONDS
    whole = np.rint(scaled)
    if np.any(np.abs(scaled - whole) > 1e-3):
        return 0.0
    return float(np.gcd.reduce(whole.astype(np.int64))) / _MICROSECONDS


def read_replay(path: str) -> RecordedRequests:
    """Read a replay file.

    Parameters
    ----------
    path : str
        CSV with the columns ``arrival_s, type, input_tokens, output_tokens``, plain or gzipped.

    Returns
    -------
    RecordedRequests
        Not yet timed. The same object for the same unchanged file.

    Raises
    ------
    ValueError
        If the file can't be read or a line is wrong; names the file, the line and the rule.
    """
    try:
        found = Path(path).stat()
    except OSError as error:
        raise ValueError(f"replay file {path}: can't be read: {error.strerror}") from None
    return _read(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=8)
def _read(path: str, changed_ns: int, size: int) -> RecordedRequests:
    """Read a file once for each of its versions."""
    del changed_ns, size
    try:
        data = Path(path).read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise ValueError(f"replay file {path}: can't be read: {error.strerror or error}") from None
    except (EOFError, zlib.error) as error:
        raise ValueError(f"replay file {path}: damaged gzip stream ({error})") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"replay file {path}: not UTF-8 text ({error.reason})") from None
    rows = csv.reader(io.StringIO(text, newline=""))
    try:
        return _parse(path, rows)
    except (ValueError, csv.Error) as error:
        raise ValueError(f"replay file {path}, line {rows.line_num}: {error}") from None


def _parse(path: str, rows: Iterable[list[str]]) -> RecordedRequests:
    lines = iter(rows)
    header = tuple(column.strip() for column in next(lines, ()))
    if header != COLUMNS:
        raise ValueError(f"header {','.join(header)[:80]!r}: must be {','.join(COLUMNS)}")
    index: dict[str, int] = {}
    arrivals: list[float] = []
    numbers: list[tuple[int, int, int]] = []
    previous_s = 0.0
    for row in lines:
        if not row:
            continue
        if len(row) != len(COLUMNS):
            raise ValueError(f"{len(row)} columns; a request has {len(COLUMNS)}")
        arrival_s = _arrival_s(row[0])
        if arrival_s < previous_s:
            raise ValueError(
                f"arrival_s = {arrival_s:g}: earlier than the request before it ({previous_s:g}); "
                "requests are in order of arrival"
            )
        previous_s = arrival_s
        kind = index.setdefault(row[1].strip(), len(index))
        arrivals.append(arrival_s)
        numbers.append((kind, _tokens(COLUMNS[2], row[2]), _tokens(COLUMNS[3], row[3])))
    if not arrivals:
        raise ValueError("no request after the header; there must be at least one")
    columns = np.array(numbers, dtype=np.int64)
    times = np.array(arrivals)
    return RecordedRequests(
        path=path,
        type_names=tuple(index),
        arrival_s=times - times[0],
        type=np.ascontiguousarray(columns[:, 0]),
        input_tokens=np.ascontiguousarray(columns[:, 1]),
        output_tokens=np.ascontiguousarray(columns[:, 2]),
    )


def _arrival_s(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= _LATEST_S:
        raise ValueError(f"arrival_s = {text!r}: must be seconds, 0 to {_LATEST_S:g}")
    return value


def _tokens(column: str, text: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:12]) <= _MOST_TOKENS):
        raise ValueError(f"{column} = {text!r}: must be a whole number, 1 to {_MOST_TOKENS:,}")
    return int(digits)


def write_replay(
    path: str | os.PathLike[str],
    *,
    type_names: Sequence[str],
    arrival_s: NDArray[np.float64],
    type_index: NDArray[np.int64],
    input_tokens: NDArray[np.int64],
    output_tokens: NDArray[np.int64],
) -> None:
    """Write a replay file, whole or not at all.

    Parameters
    ----------
    path : path-like
        The file; gzipped if its name ends in ``.gz``.
    type_names : sequence of str
        Names of request types.
    arrival_s : ndarray
        Seconds ``[R]``, never decreasing.
    type_index : ndarray of int
        Index into ``type_names`` ``[R]``.
    input_tokens, output_tokens : ndarray of int
        Lengths ``[R]``; an output of 0 tokens is written as 1, the least that is simulated.
    """
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    names = [type_names[index] for index in type_index.tolist()]
    outputs = np.maximum(output_tokens, 1).tolist()
    writer.writerows(zip(arrival_s.tolist(), names, input_tokens.tolist(), outputs, strict=True))
    data = text.getvalue().encode()
    if Path(path).suffix == ".gz":
        # No time stamp in it: the same requests give the same bytes.
        data = gzip.compress(data, mtime=0)
    with atomic_path(path) as temporary:
        temporary.write_bytes(data)
