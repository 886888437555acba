"""Fewer request types for the analytic model, where a controller has to solve it often."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def merge_types(
    served: "NDArray[np.float64]",
    share: "NDArray[np.float64]",
    family: "NDArray[np.int64]",
    most: int,
) -> "NDArray[np.int64]":
    """Group request types of the same family that each profile serves alike.

    The two groups of a family whose merging adds least to the share-weighted variance of what
    the profiles serve (Ward's criterion) become one, until few enough are left or each family has one.

    Parameters
    ----------
    served : ndarray, shape [S, Q]
        Share of each type's requests that each profile can serve in time.
    share : ndarray, shape [Q]
        Shares of the requests.
    family : ndarray of int64, shape [Q]
        Family of each type.
    most : int
        Wanted number of groups.

    Returns
    -------
    ndarray of int64, shape [Q]
        Group of each type, numbered in order of first appearance.
    """
    group = np.arange(len(share))
    centre = served.T.copy()
    weight = share.copy()
    apart = family[:, None] != family[None, :]
    np.fill_diagonal(apart, True)
    for _ in range(len(share) - most):
        distance = ((centre[:, None] - centre[None]) ** 2).sum(axis=2)
        harmonic = weight[:, None] * weight / (weight[:, None] + weight)
        cost = np.where(apart, np.inf, distance * harmonic)
        first, second = divmod(int(cost.argmin()), len(share))
        if not np.isfinite(cost[first, second]):
            break
        total = weight[first] + weight[second]
        centre[first] = (weight[first] * centre[first] + weight[second] * centre[second]) / total
        weight[first] = total
        group[group == second] = first
        apart[second, :] = apart[:, second] = True
    return np.unique(group, return_inverse=True)[1]


def group_means(
    values: "NDArray[np.float64]", share: "NDArray[np.float64]", group: "NDArray[np.int64]"
) -> "NDArray[np.float64]":
    """Return the share-weighted means over groups of values per type, ``[..., Q]``."""
    member = np.zeros((len(group), int(group.max()) + 1))
    member[np.arange(len(group)), group] = share
    return values @ member / member.sum(axis=0)
