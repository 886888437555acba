"""Forests as parent arrays: walks over them."""

import numpy as np
from numpy.typing import NDArray


def depth_first(parent: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a depth-first order of a forest and where each subtree ends in it.

    Parameters
    ----------
    parent : ndarray of int64, shape [V]
        The vertex above each vertex, -1 for a root.

    Returns
    -------
    order : ndarray of int64, shape [V]
        The vertices, each before its descendants, siblings by number.
    end : ndarray of int64, shape [V]
        For each place in that order the place after its subtree.
    """
    children: list[list[int]] = [[] for _ in range(len(parent) + 1)]
    for vertex, above in enumerate(parent.tolist()):
        children[above].append(vertex)
    order: list[int] = []
    end = np.zeros(len(parent), dtype=np.int64)
    stack = [(vertex, -1) for vertex in reversed(children[-1])]
    while stack:
        vertex, place = stack.pop()
        if place >= 0:
            end[place] = len(order)
            continue
        stack.append((vertex, len(order)))
        order.append(vertex)
        stack.extend((child, -1) for child in reversed(children[vertex]))
    return np.asarray(order, dtype=np.int64), end
