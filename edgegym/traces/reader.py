"""Read a trace file of any understood format."""

import os
from itertools import chain

from edgegym.traces.azure import HEADER, is_azure_header, read_azure
from edgegym.traces.lines import numbered_lines
from edgegym.traces.mooncake import read_mooncake
from edgegym.traces.trace import Trace, TraceError


def read_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a request trace; its format and compression are recognised by its content.

    Parameters
    ----------
    path : path-like
        A Mooncake trace (JSON lines with block hashes) or an Azure LLM inference trace (CSV),
        plain or gzipped.

    Returns
    -------
    Trace
        The requests in order of arrival.

    Raises
    ------
    TraceError
        If the file can't be read, is empty, is of no understood format, or has a bad line; the
        message names the file, the line, what is wrong and the rule.
    """
    lines = numbered_lines(path)
    first = next(lines, None)
    if first is None:
        raise TraceError.at(path, None, "the file is empty; a trace has at least one request")
    number, text = first
    rows = chain([first], lines)
    if text.startswith("{"):
        return read_mooncake(path, rows)
    if is_azure_header(text):
        return read_azure(path, rows)
    shown = text if len(text) <= 80 else text[:77] + "..."
    raise TraceError.at(
        path,
        number,
        f"unknown trace format (starts with {shown!r}); understood are Mooncake traces, one JSON "
        "object a line with timestamp, input_length, output_length and hash_ids, and Azure LLM "
        f"inference traces, a CSV whose header is {','.join(HEADER)}",
    )
