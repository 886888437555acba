"""The smallest density of nodes that delivers a target [52]."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import check_network, checked_open_share, checked_target
from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.equilibrium import solve_equilibrium
from edgegym.analytic.performance import evaluate
from edgegym.analytic.placement.optimize import (
    checked_reach,
    chosen_strategy,
    optimize_placement,
)
from edgegym.analytic.placement.result import PlacementResult
from edgegym.analytic.placement.search import Report, Strategy, check_report
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]

_SMALLEST, _LARGEST = 1e-12, 1e12
# Densities are looked at in steps of this factor, from a bound below which none can do.
_FACTOR = 2.0**0.125
_MIX_FACTOR = 2.0**0.5
_RELATIVE_ERROR = 1e-12
# Mixes are exchanged until the density falls by less than this part of it.
_LEAST_FALL = 1e-9
_ROUNDS = 50


def minimum_density(
    net: TieredNetwork,
    *,
    ttft_target_s: ArrayLike,
    reliability: float,
    reoptimize: bool = False,
    budget_bytes: float | None = None,
    minimum: ArrayLike | None = None,
    maximum: ArrayLike | None = None,
    method: str | Strategy = "exchange",
    report: Report | None = None,
) -> float:
    """Return the smallest density of nodes whose coverage reaches a reliability [52].

    Request intensity, types and profiles stay those of the network; its density does not matter.
    Coverage mostly rises in the density, but not always: requests go where they expect the shortest
    time, not where they are most likely in time. In a denser fleet more of them may queue at the
    nodes with the deepest state, for an uncertain time, that before went to slower ones and were in
    time. The search therefore starts at a density below which no routing could do, even without
    queues, and goes up in steps of 9 % to the first that does. A coverage that rises above the
    reliability and falls again within one step is passed over.

    Parameters
    ----------
    net : TieredNetwork
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.
    reliability : float
        Share of the requests to cover, between 0 and 1.
    reoptimize : bool
        Choose the mix anew for each density, not the network's: the smallest density of any mix
        that the search visits. :func:`optimize_placement` at the density returned gives the mix.
    budget_bytes, minimum, maximum, method
        As in :func:`optimize_placement`; only with `reoptimize`.
    report : callable, optional
        Called with a line of text for each mix that lowers the density.

    Returns
    -------
    float
        Nodes per km²; at least the 1e-12 that a network must have.

    Raises
    ------
    ValueError
        If an argument breaks its rule, or no density reaches the reliability: the message gives the
        coverage that it approaches as the nodes become dense.
    TypeError
        If `net` is no network or `report` no function.
    """
    check_network(net)
    chosen_strategy(method)
    check_report(report)
    reliability = checked_open_share("reliability", reliability)
    if not isinstance(reoptimize, bool | np.bool_):
        raise ValueError(f"reoptimize is {reoptimize!r}: must be True or False")
    target = checked_target(net, ttft_target_s)
    aim = _Aim(net, target, reliability)
    if not reoptimize:
        for name, value in (
            ("budget_bytes", budget_bytes),
            ("minimum", minimum),
            ("maximum", maximum),
        ):
            if value is not None:
                raise ValueError(f"{name} is {value!r}: must be None unless reoptimize is True")
        aim.check_reach(net.profile_probabilities > 0)
        return aim.density(net.profile_probabilities)
    constraints, allowed = checked_reach(net, budget_bytes, minimum, maximum)
    aim.check_reach(allowed)

    def best(density: float, start: FloatArray | None) -> PlacementResult:
        return optimize_placement(
            replace(net, density_per_km2=density),
            ttft_target_s=target,
            budget_bytes=budget_bytes,
            minimum=minimum,
            maximum=maximum,
            method=method,
            start=start,
        )

    return _with_the_best_mix(aim, constraints, allowed, best, report)


def _with_the_best_mix(
    aim: "_Aim",
    constraints: MixConstraints,
    allowed: NDArray[np.bool_],
    best: Callable[[float, FloatArray | None], PlacementResult],
    report: Report | None,
) -> float:
    """Return the smallest density of any mix: lower it with one mix, then better the mix there.

    Every round lowers the density or ends, so that a search which misses a mix costs accuracy and
    never convergence.
    """
    density, mix = math.inf, constraints.project(aim.net.profile_probabilities)
    if aim.within_reach(mix > 0):
        density = aim.density(mix)
    else:
        density = aim.lowest(allowed.astype(np.float64))
        while (found := best(density, None)).coverage < aim.reliability:
            density *= _MIX_FACTOR
            if density > _LARGEST:
                raise ValueError(
                    f"reliability is {aim.reliability:g}: must be lower, since no mix that the "
                    f"search finds reaches it at up to {_LARGEST:g} nodes/km²"
                )
        density, mix = aim.density(found.probabilities), found.probabilities
    for _ in range(_ROUNDS):
        if report is not None:
            report(f"{density:.6g} nodes/km² with the mix {np.round(mix, 4).tolist()}")
        # Around the mix at hand first: it is cheap. From scratch before giving up.
        for start in (mix, None):
            found = best(density, start)
            if found.coverage > aim.reliability:
                lower = aim.density(found.probabilities, at_most=density)
                if lower < density * (1.0 - _LEAST_FALL):
                    density, mix = lower, found.probabilities
                    break
        else:
            return density
    return density


@dataclass(frozen=True, eq=False)
class _Aim:
    """What the nodes must deliver.

    Attributes
    ----------
    net : TieredNetwork
    target : float64 [Q]
    reliability : float
    """

    net: TieredNetwork
    target: FloatArray
    reliability: float

    def check_reach(self, profiles: NDArray[np.bool_]) -> None:
        """Refuse a reliability that no density of these profiles reaches."""
        if not self.within_reach(profiles):
            raise ValueError(
                f"reliability is {self.reliability:g}: must be less than {self._limit(profiles):g},"
                " the coverage that the densest fleet of these profiles approaches: other requests "
                "take longer than their target in prefill alone"
            )

    def within_reach(self, profiles: NDArray[np.bool_]) -> bool:
        """Return whether these profiles ``[S]`` reach the reliability at some density."""
        return self.reliability < self._limit(profiles)

    def _limit(self, profiles: NDArray[np.bool_]) -> float:
        """Return the coverage of infinitely dense nodes: no distance, no queue."""
        return float(self.net.type_probabilities @ (self._reach(profiles) > 0).any(axis=0))

    def _reach(self, profiles: NDArray[np.bool_]) -> FloatArray:
        """Return the squared distance ``[S, Q]`` up to which a node without a queue is in time."""
        net = self.net
        slack = self.target - net.radio_base_s - net.prefill_s
        usable = net.can_serve & profiles[:, None]
        return np.where(usable, np.maximum(slack, 0.0) / net.radio_xi, 0.0) ** (
            2.0 / net.radio_alpha
        )

    def lowest(self, shares: FloatArray) -> float:
        """Return a density below which none of these tiers could do, even without queues.

        A request in time has a node in time, were it idle; such nodes form a Poisson process.
        """
        # Imported here: scipy.optimize would slow down every import of the analytic model.
        from scipy.optimize import root_scalar

        area = math.pi * shares @ self._reach(shares > 0)
        shares_of_types = self.net.type_probabilities

        def missing(log_density: float) -> float:
            covered = -np.expm1(-np.exp(log_density) * area)
            return float(shares_of_types @ covered) - self.reliability

        low, high = math.log(_SMALLEST), math.log(_LARGEST)
        if missing(low) >= 0:
            return _SMALLEST
        if missing(high) <= 0:
            return _LARGEST
        return math.exp(root_scalar(missing, bracket=(low, high), xtol=1e-9).root) * (1.0 - 1e-8)

    def density(self, mix: FloatArray, at_most: float = math.inf) -> float:
        """Return the smallest density with this mix ``[S]``, if need be known to be `at_most`."""
        from scipy.optimize import root_scalar

        waits: list[FloatArray] = []

        # Remembered: from other waits the answer may differ in its last digits.
        @cache
        def missing(density: float) -> float:
            net = replace(self.net, density_per_km2=density, profile_probabilities=mix)
            eq = solve_equilibrium(net, start=waits[-1] if waits else None)
            if eq.stable:
                waits[:] = [eq.assumed_wait_s]
            return evaluate(net, eq, self.target).coverage - self.reliability

        low = self.lowest(mix)
        if missing(low) >= 0:
            return low
        while True:
            high = min(low * _FACTOR, at_most, _LARGEST)
            if high <= low:
                if at_most < math.inf:
                    return at_most
                raise ValueError(
                    f"reliability is {self.reliability:g}: must be lower, since it takes more than "
                    f"{_LARGEST:g} nodes/km²"
                )
            if missing(high) >= 0:
                found = root_scalar(
                    missing, bracket=(low, high), xtol=low * 1e-14, rtol=_RELATIVE_ERROR
                )
                density, step = float(found.root), _RELATIVE_ERROR
                # Where the coverage jumps, as the load begins to be carried, to its upper side.
                while missing(density) < 0.0:
                    density, step = min(density * (1.0 + step), high), 2.0 * step
                return density
            low = high
