"""Shares of a whole as whole numbers."""

import numpy as np
from numpy.typing import NDArray


def largest_remainder(shares: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Round ``total * shares`` to whole numbers that add up to `total`.

    Parameters
    ----------
    shares : ndarray, shape [S]
        Not negative; adds up to 1.
    total : int
        What the numbers add up to, such as the number of nodes.

    Returns
    -------
    ndarray of int64, shape [S]
        Largest remainders are rounded up, lower indices first among equals.
    """
    exact = shares * total
    # Rounding errors of the shares must not turn 3 nodes into 2.999...
    counts = np.floor(exact + 1e-9).astype(np.int64)
    missing = total - int(counts.sum())
    if missing > 0:
        order = np.argsort(-(exact - counts), kind="stable")
        counts[order[:missing]] += 1
    return counts
