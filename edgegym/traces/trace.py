"""What a request trace is once it has been read, whatever file it came from."""

import os
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

BLOCK_TOKENS = 512
"""Tokens that one block hash of a Mooncake trace stands for."""


class TraceError(ValueError):
    """A trace was refused: the message names the file, the line, what is wrong and the rule."""

    @classmethod
    def at(cls, path: str | os.PathLike[str], line: int | None, what: str) -> Self:
        """Return the error for one place in a file.

        Parameters
        ----------
        path : path-like
            The file.
        line : int or None
            Its line, counted from 1; None when the file as a whole is meant.
        what : str
            What is wrong, and the rule.
        """
        place = os.fspath(path) if line is None else f"{os.fspath(path)}, line {line}"
        return cls(f"{place}: {what}")


@dataclass(frozen=True, kw_only=True, eq=False)
class Trace:
    """The requests of a trace in order of arrival, as arrays over the R requests."""

    path: str
    """The file it was read from."""
    source_format: str
    """``"mooncake"`` or ``"azure"``."""
    arrival_s: NDArray[np.float64]
    """Seconds since the first request of the file ``[R]``, never decreasing."""
    input_tokens: NDArray[np.int64]
    """Prompt lengths ``[R]``, at least 1."""
    output_tokens: NDArray[np.int64]
    """Generated tokens ``[R]``, at least 0."""
    block_ids: NDArray[np.int64] | None
    """Block hashes of all prompts, one prompt after the other; None when the file has none."""
    block_start: NDArray[np.int64] | None
    """``[R + 1]``: request r's hashes are ``block_ids[block_start[r]:block_start[r + 1]]``."""
    block_tokens: int = BLOCK_TOKENS
    """Tokens of a full block; the last block of a prompt may hold fewer."""

    @property
    def num_requests(self) -> int:
        """Number of requests R."""
        return len(self.arrival_s)

    @property
    def duration_s(self) -> float:
        """Seconds from the first arrival to the last."""
        return float(self.arrival_s[-1] - self.arrival_s[0])

    @property
    def rate_per_s(self) -> float:
        """Mean arrival rate: ``(R - 1) / duration_s``; 0 when all requests came at one instant."""
        return (self.num_requests - 1) / self.duration_s if self.duration_s > 0 else 0.0

    def subset(self, mask: NDArray[np.bool_]) -> Self:
        """Return the requests that ``mask`` marks ``[R]``; times stay those of the whole trace."""
        if mask.all():
            return self
        block_ids, block_start = self.block_ids, self.block_start
        if block_ids is not None and block_start is not None:
            lengths = np.diff(block_start)
            block_ids = block_ids[np.repeat(mask, lengths)]
            block_start = np.concatenate(([0], np.cumsum(lengths[mask])))
        return replace(
            self,
            arrival_s=self.arrival_s[mask],
            input_tokens=self.input_tokens[mask],
            output_tokens=self.output_tokens[mask],
            block_ids=block_ids,
            block_start=block_start,
        )
