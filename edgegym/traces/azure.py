"""Reader of the Azure LLM inference traces: a CSV of times and lengths, without prefixes."""

import math
import os
import re
import reprlib
from collections.abc import Iterable
from datetime import datetime

import numpy as np

from edgegym.traces.trace import Trace, TraceError

HEADER = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
"""Columns of an Azure trace."""

_TIMESTAMP = re.compile(
    r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?", re.ASCII
)
_MOST_DIGITS = 15
_DIGITS = re.compile(rf"\d{{1,{_MOST_DIGITS}}}", re.ASCII)


def is_azure_header(text: str) -> bool:
    """Say whether a line is the header of an Azure trace."""
    return tuple(column.strip() for column in text.split(",")) == HEADER


def read_azure(path: str | os.PathLike[str], lines: Iterable[tuple[int, str]]) -> Trace:
    """Read the lines of an Azure trace.

    Each line after the header has a time (``YYYY-MM-DD HH:MM:SS.fraction``, digits beyond
    microseconds are dropped), the prompt's tokens and the generated tokens.

    Parameters
    ----------
    path : path-like
        Named in errors.
    lines : iterable of (int, str)
        Line numbers and texts, the header first.

    Returns
    -------
    Trace
        Times in seconds since the first request, without block hashes.

    Raises
    ------
    TraceError
        If the header or a line is not of this form, or the file has no request.
    """
    arrivals: list[float] = []
    inputs: list[int] = []
    outputs: list[int] = []
    first: datetime | None = None
    previous_s = -math.inf
    rows = iter(lines)
    number, header = next(rows, (None, ""))
    if not is_azure_header(header):
        raise TraceError.at(
            path, number, f"header {header[:80]!r}: an Azure trace starts with {','.join(HEADER)}"
        )
    for number, text in rows:
        try:
            time, length, output = _fields(text)
            first = time if first is None else first
            arrival_s = _seconds_between(first, time)
            if arrival_s < previous_s:
                raise ValueError(
                    f"TIMESTAMP = {text.split(',')[0]!r}: earlier than the request before it; "
                    "a trace is in order of arrival"
                )
        except ValueError as error:
            raise TraceError.at(path, number, str(error)) from error
        previous_s = arrival_s
        arrivals.append(arrival_s)
        inputs.append(length)
        outputs.append(output)
    if not arrivals:
        raise TraceError.at(path, None, "no request after the header; a trace has at least one")
    return Trace(
        path=os.fspath(path),
        source_format="azure",
        arrival_s=np.asarray(arrivals, dtype=np.float64),
        input_tokens=np.asarray(inputs, dtype=np.int64),
        output_tokens=np.asarray(outputs, dtype=np.int64),
        block_ids=None,
        block_start=None,
    )


def _seconds_between(first: datetime, time: datetime) -> float:
    if (first.tzinfo is None) != (time.tzinfo is None):
        raise ValueError("TIMESTAMP with and without a time zone in one file; use one form")
    return (time - first).total_seconds()


def _fields(text: str) -> tuple[datetime, int, int]:
    columns = [column.strip() for column in text.split(",")]
    if len(columns) != len(HEADER):
        raise ValueError(f"{len(columns)} columns; a request has {len(HEADER)}: {','.join(HEADER)}")
    if not _TIMESTAMP.fullmatch(columns[0]):
        raise ValueError(f"TIMESTAMP = {columns[0]!r}: must be YYYY-MM-DD HH:MM:SS.fraction")
    try:
        time = datetime.fromisoformat(columns[0])
    except ValueError as error:
        raise ValueError(f"TIMESTAMP = {columns[0]!r}: no such time ({error})") from error
    return time, _tokens(HEADER[1], columns[1], 1), _tokens(HEADER[2], columns[2], 0)


def _tokens(column: str, value: str, least: int) -> int:
    if not _DIGITS.fullmatch(value) or int(value) < least:
        raise ValueError(
            f"{column} = {reprlib.repr(value)}: must be an integer, at least {least}, of at most "
            f"{_MOST_DIGITS} digits"
        )
    return int(value)
