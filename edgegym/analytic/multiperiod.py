"""Placing for a demand that changes: the best path of mixes under a budget of moved bytes."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import check_network, checked_target
from edgegym.analytic.path_problem import Counts, PathPlan, PathProblem
from edgegym.analytic.path_search import PathEnumeration, PathExchange
from edgegym.analytic.placement.objective import CoverageObjective
from edgegym.analytic.placement.search import check_report
from edgegym.world.network import (
    TieredNetwork,
    checked_choice,
    checked_number,
    checked_wholes,
)

IntArray = NDArray[np.int64]

_MOST_BYTES = 10**18
_MOST_NODES = 10**6


def plan_path(
    networks: Sequence[TieredNetwork],
    *,
    start_counts: ArrayLike,
    move_bytes: ArrayLike,
    budget_bytes: float,
    ttft_target_s: ArrayLike,
    weight: float = 0.0,
    level_bytes: float | None = None,
    burst_bytes: float | None = None,
    method: str | PathExchange | PathEnumeration = "exchange",
    report: Callable[[str], None] | None = None,
) -> PathPlan:
    """Plan the placements of several epochs: maximise Σ_k P(π_k) − weight · bytes moved.

    At the start of each epoch nodes move, at the fewest bytes that lead from the placement before
    to the next [56]; the epoch's coverage is that of its network with the new placement, in its
    load-association equilibrium. Bytes are paid from a bucket that gains `budget_bytes` between
    epochs, holds at most `burst_bytes`, and is never overdrawn. A controller with a receding
    horizon makes the first epoch's moves and plans anew.

    Parameters
    ----------
    networks : sequence of TieredNetwork
        The forecast path, one network per epoch, all with the same profiles. Their mixes do not
        matter.
    start_counts : array_like of int [S]
        Nodes that hold each profile before the first epoch.
    move_bytes : array_like [S, S]
        Bytes of a move from the first to the second profile.
    budget_bytes : float
        Bytes that the bucket gains from one epoch to the next.
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.
    weight : float
        Coverage that a moved byte must bring, summed over the epochs.
    level_bytes : float, optional
        Bytes in the bucket before the first epoch, by default `budget_bytes`.
    burst_bytes : float, optional
        Most that the bucket holds, by default the larger of `budget_bytes` and `level_bytes`.
    method : {"exchange", "enumeration"}, PathExchange or PathEnumeration
        A local search, or all paths of a few nodes.
    report : callable, optional
        Gets a line of text for each step.

    Returns
    -------
    PathPlan

    Raises
    ------
    ValueError
        If an argument breaks its rule, or there are too many placements to enumerate.
    TypeError
        If a network is none or `report` no function.
    """
    if not isinstance(networks, Iterable):
        raise TypeError(f"networks is {networks!r}: must be a sequence of TieredNetworks")
    check_report(report)
    checked = tuple(networks)
    if not checked:
        raise ValueError("networks is empty: must be at least one, one for each epoch")
    for net in checked:
        check_network(net)
    sizes = [net.num_profiles for net in checked]
    if len(set(sizes)) > 1:
        raise ValueError(f"networks have {sizes} profiles: must all have the same")
    budget = checked_number("budget_bytes", budget_bytes, 0.0, _MOST_BYTES)
    level = (
        budget
        if level_bytes is None
        else checked_number("level_bytes", level_bytes, 0.0, _MOST_BYTES)
    )
    burst = max(budget, level) if burst_bytes is None else burst_bytes
    targets = [checked_target(net, ttft_target_s) for net in checked]
    problem = PathProblem(
        objectives=tuple(map(CoverageObjective.for_network, checked, targets)),
        networks=checked,
        target_s=ttft_target_s,
        start=_checked_counts(start_counts, sizes[0]),
        move_bytes=_checked_prices(move_bytes, sizes[0]),
        level_bytes=level,
        budget_bytes=budget,
        burst_bytes=checked_number("burst_bytes", burst, 0.0, _MOST_BYTES),
        weight=checked_number("weight", weight, 0.0, _MOST_BYTES),
    )
    path, converged = _strategy(method).search(problem, report or (lambda _: None))
    return problem.plan(path, converged)


def _strategy(method: "str | PathExchange | PathEnumeration") -> PathExchange | PathEnumeration:
    if isinstance(method, PathExchange | PathEnumeration):
        return method
    checked_choice("method", method, ("exchange", "enumeration"))
    return PathExchange() if method == "exchange" else PathEnumeration()


def _checked_counts(value: ArrayLike, size: int) -> Counts:
    counts = checked_wholes("start_counts", value, "[S]", 1, 0, _MOST_NODES)
    if counts.shape != (size,) or not 1 <= counts.sum() <= _MOST_NODES:
        raise ValueError(
            f"start_counts is {value!r}: must be [S] numbers of nodes, one for each of {size} "
            f"profiles, together from 1 to {_MOST_NODES}"
        )
    return tuple(counts.tolist())


def _checked_prices(value: ArrayLike, size: int) -> IntArray:
    prices = checked_wholes("move_bytes", value, "[S, S]", 2, 0, _MOST_BYTES)
    if prices.shape != (size, size) or np.diag(prices).any():
        raise ValueError(
            f"move_bytes is {value!r}: must be [S, S] = ({size}, {size}), with a diagonal of zeros"
        )
    return prices
