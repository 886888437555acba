"""Reader of Mooncake traces: one JSON object a line, with the hashes of the prompt's blocks."""

import json
import math
import os
import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from edgegym.traces.trace import BLOCK_TOKENS, Trace, TraceError

_KEYS = ("timestamp", "input_length", "output_length", "hash_ids")
_LARGEST = 2**53


def read_mooncake(path: str | os.PathLike[str], lines: Iterable[tuple[int, str]]) -> Trace:
    """Read the lines of a Mooncake trace.

    Each line is a JSON object with ``timestamp`` (milliseconds), ``input_length`` and
    ``output_length`` (tokens), and ``hash_ids``: one integer per started block of 512 prompt
    tokens. Equal hashes mean equal prompts up to the end of that block. Other keys are ignored.

    Parameters
    ----------
    path : path-like
        Named in errors.
    lines : iterable of (int, str)
        Line numbers and texts.

    Returns
    -------
    Trace
        Times in seconds since the first request.

    Raises
    ------
    TraceError
        If a line is not such an object, or the file has no request.
    """
    timestamps_ms: list[float] = []
    inputs: list[int] = []
    outputs: list[int] = []
    blocks: list[int] = []
    starts = [0]
    previous_ms = -math.inf
    for number, text in lines:
        try:
            timestamp, length, output, hashes = _fields(text)
            _check_request(timestamp, length, output, hashes)
            if timestamp < previous_ms:
                raise ValueError(
                    f"timestamp = {timestamp}: earlier than the request before it "
                    f"({previous_ms}); a trace is in order of arrival"
                )
        except ValueError as error:
            raise TraceError.at(path, number, str(error)) from error
        previous_ms = timestamp
        timestamps_ms.append(timestamp)
        inputs.append(length)
        outputs.append(output)
        blocks.extend(hashes)
        starts.append(len(blocks))
    if not timestamps_ms:
        raise TraceError.at(path, None, "no request in it; a trace has at least one")
    arrival_s = np.asarray(timestamps_ms, dtype=np.float64) / 1e3
    return Trace(
        path=os.fspath(path),
        source_format="mooncake",
        arrival_s=arrival_s - arrival_s[0],
        input_tokens=np.asarray(inputs, dtype=np.int64),
        output_tokens=np.asarray(outputs, dtype=np.int64),
        block_ids=np.asarray(blocks, dtype=np.int64),
        block_start=np.asarray(starts, dtype=np.int64),
    )


def _fields(text: str) -> tuple[Any, Any, Any, Any]:
    try:
        record = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON ({error}); each line is one JSON object") from error
    if not isinstance(record, dict):
        raise ValueError(
            f"a JSON {type(record).__name__}, not an object; each line is one JSON object"
        )
    try:
        return tuple(record[key] for key in _KEYS)  # pyright: ignore[reportReturnType]
    except KeyError as error:
        raise ValueError(f"key {error} is missing; a request has {', '.join(_KEYS)}") from error


def _check_request(timestamp: Any, length: Any, output: Any, hashes: Any) -> None:
    # type() rather than isinstance(): JSON's true and false are integers to isinstance.
    if type(timestamp) not in (int, float) or not 0 <= timestamp <= _LARGEST:
        raise ValueError(
            f"timestamp = {reprlib.repr(timestamp)}: must be a number of milliseconds, "
            f"0 to {_LARGEST}"
        )
    if type(length) is not int or not 1 <= length <= _LARGEST:
        raise ValueError(
            f"input_length = {reprlib.repr(length)}: must be an integer, 1 to {_LARGEST}"
        )
    if type(output) is not int or not 0 <= output <= _LARGEST:
        raise ValueError(
            f"output_length = {reprlib.repr(output)}: must be an integer, 0 to {_LARGEST}"
        )
    if type(hashes) is not list:
        raise ValueError(f"hash_ids is a {type(hashes).__name__}: must be a list of integers")
    expected = -(-length // BLOCK_TOKENS)
    if len(hashes) != expected:
        raise ValueError(
            f"hash_ids has {len(hashes)} entries for input_length = {length}: must have one per "
            f"started block of {BLOCK_TOKENS} tokens, {expected}"
        )
    for position, block in enumerate(hashes):
        if type(block) is not int or not 0 <= block <= _LARGEST:
            raise ValueError(
                f"hash_ids[{position}] = {reprlib.repr(block)}: must be an integer, 0 to {_LARGEST}"
            )
