"""From the placement that is to the placement that should be, for the fewest bytes [56]."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.planning.transport import cheapest_flows
from edgegym.world.network import checked_numbers, checked_whole, checked_wholes
from edgegym.world.rounding import largest_remainder

IntArray = NDArray[np.int64]

_MOST_NODES = 10**9
_MOST_BYTES = 10**18
_SHARE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class MigrationPlan:
    """Moves that turn one placement into another."""

    current: IntArray
    """Nodes with each profile before, ``[S]``."""
    target: IntArray
    """Nodes with each profile after, ``[S]``."""
    moves: IntArray
    """Moves from each profile to each other, ``[S, S]``; the diagonal is zero."""
    bytes: int
    """What they transfer in all."""


def migration_plan(
    current: ArrayLike, target: ArrayLike, move_bytes: ArrayLike, *, nodes: int | None = None
) -> MigrationPlan:
    """Return the moves from one placement to another that transfer the fewest bytes [56].

    Whole numbers m of moves from s to t, at least 0, with net flows out of each profile s as the
    placements require, and least Σ m · bytes. A node goes by a third profile only where that takes
    fewer bytes in all; with the bytes of vertices to fetch (those of t that s lacks) it never does.

    Parameters
    ----------
    current, target : array_like [S]
        Nodes with each profile, whole numbers of the same sum; with `nodes` shares that add up
        to 1, rounded to nodes by largest remainders.
    move_bytes : array_like [S, S]
        Bytes of a move, from the first to the second profile, whole numbers of at least 0; the
        diagonal is not used.
    nodes : int, optional
        Number of nodes when shares are given.

    Raises
    ------
    ValueError
        If a number is out of range, shapes or sums differ.
    """
    price = checked_wholes("move_bytes", move_bytes, "[S, S]", 2, 0, _MOST_BYTES)
    if price.shape[0] != price.shape[1] or price.size == 0:
        raise ValueError(f"move_bytes has shape {price.shape}: must be [S, S]")
    size = len(price)
    if nodes is None:
        before = checked_wholes("current", current, "[S]", 1, 0, _MOST_NODES)
        after = checked_wholes("target", target, "[S]", 1, 0, _MOST_NODES)
    else:
        count = checked_whole("nodes", nodes, 0, _MOST_NODES)
        before = largest_remainder(_shares("current", current), count)
        after = largest_remainder(_shares("target", target), count)
    for name, numbers in (("current", before), ("target", after)):
        if len(numbers) != size:
            raise ValueError(f"{name} has shape {numbers.shape}: must be [S] with shape ({size},)")
    if before.sum() != after.sum():
        raise ValueError(f"target sums to {after.sum()}: must sum to {before.sum()}, as current")
    moves = cheapest_flows(before - after, price)
    paid = sum(int(m) * int(b) for m, b in zip(moves[moves > 0], price[moves > 0], strict=True))
    return MigrationPlan(before, after, moves, paid)


def _shares(name: str, value: ArrayLike) -> NDArray[np.float64]:
    shares = checked_numbers(name, value, "[S]")
    if shares.ndim != 1 or not (np.isfinite(shares) & (shares >= 0)).all():
        raise ValueError(f"{name} is {value!r}: must be finite shares [S] of at least 0")
    if abs(shares.sum() - 1.0) > _SHARE_TOLERANCE:
        raise ValueError(f"{name} sums to {shares.sum():.9g}: must sum to 1")
    return shares / shares.sum()
