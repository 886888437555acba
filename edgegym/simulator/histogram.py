"""A mergeable histogram of times with a bounded relative error.

Bins are log-linear: each factor of two from 2^-10 s to 2^14 s is split into 64 equal bins, so a bin
is found from the bits of a float alone. Shorter times fall into the first bin, longer ones into the
last.
"""

import numpy as np

from edgegym.simulator.compiling import inlined
from edgegym.simulator.state import (
    HISTOGRAM_BINS,
    HISTOGRAM_MAX_LOG2,
    HISTOGRAM_MIN_LOG2,
    HISTOGRAM_SUBBUCKETS_LOG2,
    Floats,
    Ints,
)

_SHIFT = 52 - HISTOGRAM_SUBBUCKETS_LOG2
_OFFSET = (1023 + HISTOGRAM_MIN_LOG2) << HISTOGRAM_SUBBUCKETS_LOG2

_S_PER_TOKEN = 2.0**HISTOGRAM_MIN_LOG2

RELATIVE_ERROR = 2.0**-HISTOGRAM_SUBBUCKETS_LOG2
"""Largest relative error of a quantile between 2^-10 s (1 ms) and 2^14 s (4.6 h)."""


@inlined
def histogram_bin(seconds: float) -> int:
    """Return the bin of a time."""
    index = (np.float64(seconds).view(np.int64) >> _SHIFT) - _OFFSET + 1
    return int(min(max(index, 0), HISTOGRAM_BINS - 1))


@inlined
def tokens_bin(tokens: int) -> int:
    """Return the bin of a number of tokens: 2^-10 s stand for one token."""
    return histogram_bin(tokens * _S_PER_TOKEN)


def bin_edges_s() -> Floats:
    """Return the edges of all bins.

    Returns
    -------
    ndarray
        ``[HISTOGRAM_BINS + 1]``; bin i holds times in [edge i, edge i + 1). The last edge is
        infinite.
    """
    subbuckets = 1 << HISTOGRAM_SUBBUCKETS_LOG2
    octaves = np.arange(HISTOGRAM_MIN_LOG2, HISTOGRAM_MAX_LOG2)
    starts = np.exp2(octaves)[:, None] * (1.0 + np.arange(subbuckets) / subbuckets)
    return np.concatenate([[0.0], starts.ravel(), [2.0**HISTOGRAM_MAX_LOG2, np.inf]])


def histogram_quantile_s(histogram: Ints, quantile: float) -> float:
    """Return a quantile, linear within its bin.

    Parameters
    ----------
    histogram : ndarray
        ``[HISTOGRAM_BINS]`` counts.
    quantile : float
        In [0, 1].

    Returns
    -------
    float
        Seconds, within 1/64 (relative) of the exact quantile between 1 ms and 4.6 h; below 1 ms
        within 1 ms, above 4.6 h the lower end of the last bin. NaN when the histogram is empty.

    Raises
    ------
    ValueError
        If the quantile is outside [0, 1].
    """
    if not 0.0 <= quantile <= 1.0:
        raise ValueError(f"quantile = {quantile}: must be in [0, 1]")
    total = int(histogram.sum())
    if total == 0:
        return float("nan")
    cumulative = np.cumsum(histogram)
    rank = quantile * total
    index = min(int(np.searchsorted(cumulative, rank, side="left")), HISTOGRAM_BINS - 1)
    if histogram[index] == 0:  # quantile 0 with empty leading bins
        index = int(np.flatnonzero(histogram)[0])
    edges = bin_edges_s()
    if index == HISTOGRAM_BINS - 1:
        return float(edges[index])
    before = cumulative[index] - histogram[index]
    inside = min(max((rank - before) / histogram[index], 0.0), 1.0)
    return float(edges[index] + inside * (edges[index + 1] - edges[index]))


def histogram_quantile_tokens(histogram: Ints, quantile: float) -> float:
    """Return a quantile of numbers of tokens, counted with :func:`tokens_bin`.

    Parameters
    ----------
    histogram : ndarray
        ``[HISTOGRAM_BINS]`` counts.
    quantile : float
        In [0, 1].

    Returns
    -------
    float
        Tokens: exact below 64, within 1/64 (relative) of the exact quantile up to 2^24. NaN when
        the histogram is empty.

    Raises
    ------
    ValueError
        If the quantile is outside [0, 1].
    """
    # Of the numbers in a bin the smallest is a whole one: up to 64 tokens it is the only one.
    if not 0.0 <= quantile <= 1.0:
        raise ValueError(f"quantile = {quantile}: must be in [0, 1]")
    total = int(histogram.sum())
    if total == 0:
        return float("nan")
    rank = max(quantile * total, 1.0)
    index = int(np.searchsorted(np.cumsum(histogram), rank, side="left"))
    return float(bin_edges_s()[index] / _S_PER_TOKEN)
