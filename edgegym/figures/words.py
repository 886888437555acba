"""Numbers as the captions write them."""

import numpy as np
from numpy.typing import NDArray

_LEAST = 1e-4


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100.0 * share:.0f} %"


def small(value: float) -> str:
    """Return a small positive number with two digits, or that it is below 0.0001."""
    return f"{value:.2g}" if value >= _LEAST else f"less than {_LEAST:.4f}"


def span(values: NDArray[np.float64]) -> str:
    """Return the range of some shares, or the share that they all are."""
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return low if low == high else f"{low} to {high}"
