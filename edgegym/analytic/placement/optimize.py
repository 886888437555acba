"""Choosing the mix of profiles that covers most requests [49]."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import check_network, checked_target
from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.equilibrium import solve_equilibrium
from edgegym.analytic.performance import evaluate
from edgegym.analytic.placement.bayesian import Bayesian
from edgegym.analytic.placement.exchange import Exchange
from edgegym.analytic.placement.grid import SimplexGrid
from edgegym.analytic.placement.objective import CoverageObjective
from edgegym.analytic.placement.result import PlacementResult
from edgegym.analytic.placement.search import Report, Search, Strategy, check_report
from edgegym.analytic.placement.spsa import ProjectedSpsa
from edgegym.world.network import TieredNetwork, checked_numbers

FloatArray = NDArray[np.float64]

METHODS = ("exchange", "spsa", "grid", "bayesian")
"""Names of the search methods, with their default settings."""

_ROUNDING = 1e-9


def chosen_strategy(method: object) -> Strategy:
    """Return the strategy of a name, or the strategy given, or say what is wrong."""
    by_name = dict(zip(METHODS, (Exchange, ProjectedSpsa, SimplexGrid, Bayesian), strict=True))
    if isinstance(method, str) and method in by_name:
        return by_name[method]()
    if isinstance(method, Strategy) and not isinstance(method, type):
        return method
    raise ValueError(
        f"method is {method!r}: must be one of {', '.join(METHODS)}, or a strategy such as "
        "Exchange(step=0.05)"
    )


def checked_reach(
    net: TieredNetwork,
    budget_bytes: float | None,
    minimum: ArrayLike | None,
    maximum: ArrayLike | None,
) -> tuple[MixConstraints, NDArray[np.bool_]]:
    """Return the constraints and which profiles ``[S]`` they allow at all.

    Raises
    ------
    ValueError
        If an argument breaks its rule, no mix satisfies them, or a type that occurs can be served
        only by profiles that they exclude.
    """
    constraints = MixConstraints.for_network(net, budget_bytes, minimum, maximum)
    allowed = constraints.reachable()
    lost = (net.type_probabilities > 0) & ~net.can_serve[allowed].any(axis=0)
    if lost.any():
        q = int(np.flatnonzero(lost)[0])
        servers = np.flatnonzero(net.can_serve[:, q]).tolist()
        raise ValueError(
            f"maximum and budget_bytes leave no nodes to profiles {servers}: at least one of them "
            f"must be allowed, since only they may serve request type {q}"
        )
    return constraints, allowed


def checked_start(net: TieredNetwork, start: ArrayLike | None) -> FloatArray:
    """Return the mix to start from ``[S]``: the network's if there is none."""
    if start is None:
        return net.profile_probabilities
    mix = checked_numbers("start", start, "[S]")
    within = (mix >= -_ROUNDING) & (mix <= 1 + _ROUNDING)
    if mix.shape != (net.num_profiles,) or not within.all():
        raise ValueError(
            f"start is {start!r}: must be {net.num_profiles} shares from 0 to 1, one per profile"
        )
    return mix


def optimize_placement(
    net: TieredNetwork,
    *,
    ttft_target_s: ArrayLike,
    budget_bytes: float | None = None,
    minimum: ArrayLike | None = None,
    maximum: ArrayLike | None = None,
    method: str | Strategy = "exchange",
    start: PlacementResult | ArrayLike | None = None,
    report: Report | None = None,
) -> PlacementResult:
    """Search the mix of profiles with the largest coverage under load-aware routing [49].

    Stability is a constraint: a stable mix is better than any unstable one, and among unstable ones
    the smaller overload is better. No method returns a mix that is worse than the start.

    Parameters
    ----------
    net : TieredNetwork
        Its ``profile_probabilities`` are the start unless `start` is given.
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.
    budget_bytes : float, optional
        Mean bytes of persistent state per node; needs ``net.state_bytes``.
    minimum, maximum : array_like [S] or float, optional
        Floors and caps of the shares.
    method : {"exchange", "spsa", "grid", "bayesian"} or strategy
        :class:`Exchange` (fast, for any number of profiles), :class:`ProjectedSpsa` (Algorithm 1),
        :class:`SimplexGrid` (all mixes of a lattice, for few profiles), :class:`Bayesian` (few
        solves; needs Optuna), by name with their defaults, or set up.
    start : PlacementResult or array_like [S], optional
        A mix that is good already, such as the optimum of a like demand: "exchange" then searches
        around it only. The nearest allowed mix is taken. A result also gives the waits to start
        from.
    report : callable, optional
        Called with a line of text about once a second, and at the end.

    Returns
    -------
    PlacementResult

    Raises
    ------
    ValueError
        If an argument breaks its rule, no mix satisfies the constraints, or they exclude all
        profiles that may serve a type of request.
    TypeError
        If `net` is no network or `report` no function.
    ModuleNotFoundError
        If the method needs a package that is not installed.
    """
    check_network(net)
    check_report(report)
    strategy = chosen_strategy(method)
    target = checked_target(net, ttft_target_s)
    constraints, _ = checked_reach(net, budget_bytes, minimum, maximum)
    known = isinstance(start, PlacementResult)
    mix = checked_start(net, start.probabilities if known else start)
    objective = CoverageObjective.for_network(net, target)
    wait = objective.first_wait()
    if known and start.equilibrium.assumed_wait_s.shape == wait.shape:
        wait = start.equilibrium.assumed_wait_s
    search = Search(
        objective=objective,
        constraints=constraints,
        start=constraints.project(mix),
        wait=wait,
        warm=start is not None,
        report=report,
    )
    converged = search.run(strategy)
    chosen = net.with_mix(search.mix)
    equilibrium = solve_equilibrium(chosen, start=search.best_wait)
    return PlacementResult(
        probabilities=chosen.profile_probabilities,
        coverage=evaluate(chosen, equilibrium, ttft_target_s).coverage,
        evaluations=search.evaluations,
        converged=converged,
        equilibrium=equilibrium,
        history=search.improvements(),
    )
