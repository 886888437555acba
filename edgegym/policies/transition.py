"""From the placement that is to the placement that should be: counts, plans, deficits."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def largest_remainder(shares: "NDArray[np.float64]", total: int) -> "NDArray[np.int64]":
    """Round ``total * shares`` to whole numbers that add up to `total`.

    Parameters
    ----------
    shares : ndarray, shape [S]
        Not negative; adds up to 1.
    total : int
        Number of nodes.

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


def assign_profiles(
    counts: "NDArray[np.int64]",
    cost: "NDArray[np.float64]",
) -> "NDArray[np.int64]":
    """Give each node one profile, at least cost, so that each profile has its count.

    Parameters
    ----------
    counts : ndarray of int64, shape [S]
        Nodes that each profile must have; adds up to n.
    cost : ndarray, shape [n, S]
        Cost of each profile on each node.

    Returns
    -------
    ndarray of int64, shape [n]
        Profile of each node.
    """
    from scipy.optimize import linear_sum_assignment

    places = np.repeat(np.arange(len(counts)), counts)
    nodes, chosen = linear_sum_assignment(cost[:, places])
    assigned = np.empty(len(cost), dtype=np.int64)
    assigned[nodes] = places[chosen]
    return assigned


def cheapest_transition(
    current: "NDArray[np.int64]",
    target: "NDArray[np.int64]",
    move_bytes: "NDArray[np.int64]",
) -> "NDArray[np.int64]":
    """Plan the moves from one placement to another that transfer the fewest bytes (eq. 56).

    Parameters
    ----------
    current, target : ndarray of int64, shape [S]
        Nodes with each profile; the same sum.
    move_bytes : ndarray of int64, shape [S, S]
        Bytes of a move, from the first to the second profile.

    Returns
    -------
    ndarray of int64, shape [S, S]
        Moves from each profile to each other; the diagonal is zero.
    """
    surplus = np.repeat(np.arange(len(current)), np.maximum(current - target, 0))
    plan = np.zeros_like(move_bytes)
    # Going by a third profile never takes fewer bytes, so what has its count stays.
    assigned = assign_profiles(
        np.maximum(target - current, 0), move_bytes[surplus].astype(np.float64)
    )
    np.add.at(plan, (surplus, assigned), 1)
    return plan


def planned_moves(
    plan: "NDArray[np.int64]",
    profile: "NDArray[np.int64]",
    legal: "NDArray[np.bool_]",
) -> "NDArray[np.bool_]":
    """Return which legal moves belong to a plan, ``[N, S]``.

    Parameters
    ----------
    plan : ndarray of int64, shape [S, S]
        Moves from each profile to each other.
    profile : ndarray of int64, shape [N]
        Profile of each node.
    legal : ndarray of bool, shape [N, S]
        Moves that may be made now.
    """
    return legal & (plan[profile] > 0)
