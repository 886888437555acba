"""Rows for nodes that an episode does not have."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_Number = TypeVar("_Number", bound=np.generic)


def with_empty_rows(flat: NDArray[_Number], block: int, size: int) -> NDArray[_Number]:
    """Return a flat array whose block of rows is longer.

    Parameters
    ----------
    flat : ndarray, shape [block + tail]
        Rows of nodes, one after another, then what belongs to no node.
    block : int
        Length of all rows together.
    size : int
        Length of the result.

    Returns
    -------
    ndarray, shape [size]
        The rows, zeros, and the tail at the end. The array itself if it is as long.
    """
    if len(flat) == size:
        return flat
    wide = np.zeros(size, dtype=flat.dtype)
    wide[:block] = flat[:block]
    wide[size - (len(flat) - block) :] = flat[block:]
    return wide
