"""How many fallback nodes pay: the best mix under bursts, late telemetry, uncertain popularity.

The framework paper argues that the share of the fallback profile (nothing cached, most slots)
should grow with each of the three. :func:`fallback_study` works it out for a network.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import check_network, checked_target
from edgegym.analytic.placement.exchange import Exchange
from edgegym.analytic.placement.optimize import (
    checked_reach,
    checked_start,
    chosen_strategy,
)
from edgegym.analytic.placement.result import PlacementResult
from edgegym.analytic.placement.search import Report, Search, Strategy, check_report
from edgegym.analytic.robust import ExpectedCoverage, TrafficUncertainty
from edgegym.world.network import TieredNetwork, checked_number, checked_numbers, checked_whole

FloatArray = NDArray[np.float64]

STUDY_TRAFFIC = TrafficUncertainty(
    burst_scv=0.1, telemetry_delay_s=5.0, concentration=30.0, samples=8
)
"""Where the sweeps of the study cross: moderate in everything."""

_COARSE_STEP, _STEP = 0.04, 0.01
_LARGEST_LOAD = 1e9


@dataclass(frozen=True, eq=False)
class RobustPlacement:
    """The mix with the largest expected coverage that a search found.

    Attributes
    ----------
    probabilities : float64 [S]
        Share of the nodes that hold each profile.
    coverage : float
        Expected over the traffic states, at the accuracy of a search (about 1e-5).
    evaluations : int
        Mixes solved, each in all traffic states.
    converged : bool
        Whether the search ended by its own rule.
    history : float64 [K, 2]
        Evaluations and score at each improvement.
    """

    probabilities: FloatArray
    coverage: float
    evaluations: int
    converged: bool
    history: FloatArray


def robust_placement(
    net: TieredNetwork,
    traffic: TrafficUncertainty,
    *,
    ttft_target_s: ArrayLike,
    budget_bytes: float | None = None,
    minimum: ArrayLike | None = None,
    maximum: ArrayLike | None = None,
    method: str | Strategy = "exchange",
    start: PlacementResult | RobustPlacement | ArrayLike | None = None,
    report: Report | None = None,
) -> RobustPlacement:
    """Search the mix with the largest coverage expected over varying traffic.

    Parameters
    ----------
    net : TieredNetwork
        Its request intensity and type probabilities are the means of the traffic.
    traffic : TrafficUncertainty
    ttft_target_s, budget_bytes, minimum, maximum, method, start, report
        As in :func:`edgegym.analytic.optimize_placement`.

    Returns
    -------
    RobustPlacement

    Raises
    ------
    ValueError
        If an argument breaks its rule, no mix satisfies the constraints, or they exclude all
        profiles that may serve a type of request.
    TypeError
        If `net` is no network or `traffic` no description of traffic.
    """
    check_network(net)
    _check_traffic("traffic", traffic)
    check_report(report)
    strategy = chosen_strategy(method)
    target = checked_target(net, ttft_target_s)
    constraints, _ = checked_reach(net, budget_bytes, minimum, maximum)
    objective = ExpectedCoverage.for_network(net, target, traffic)
    known = isinstance(start, PlacementResult | RobustPlacement)
    mix = checked_start(net, start.probabilities if known else start)
    search = Search(
        objective=objective,
        constraints=constraints,
        start=constraints.project(mix),
        wait=objective.first_wait(),
        warm=start is not None,
        report=report,
    )
    converged = search.run(strategy)
    return RobustPlacement(
        probabilities=search.mix,
        coverage=search.score,
        evaluations=search.evaluations,
        converged=converged,
        history=search.improvements(),
    )


@dataclass(frozen=True)
class FallbackRow:
    """One point of the study.

    Attributes
    ----------
    parameter : str
        Field of :class:`TrafficUncertainty` that is swept.
    value : float
        Its value; infinite for a popularity that is known.
    fallback_share : float
        Share of the fallback profile in the best mix.
    probabilities : tuple of float
        The best mix.
    coverage : float
        Its expected coverage.
    nominal_coverage : float
        Expected coverage, in the same traffic, of the mix that is best in the stationary one.
    """

    parameter: str
    value: float
    fallback_share: float
    probabilities: tuple[float, ...]
    coverage: float
    nominal_coverage: float


def fallback_study(
    net: TieredNetwork,
    base: TrafficUncertainty = STUDY_TRAFFIC,
    *,
    ttft_target_s: ArrayLike,
    fallback: int = 0,
    burst_scv: Sequence[float] = (0.0, 0.025, 0.05, 0.1, 0.2),
    telemetry_delay_s: Sequence[float] = (0.0, 2.0, 10.0, 30.0, 120.0),
    concentration: Sequence[float] = (math.inf, 100.0, 30.0, 10.0, 3.0),
    budget_bytes: float | None = None,
    minimum: ArrayLike | None = None,
    maximum: ArrayLike | None = None,
    report: Report | None = None,
) -> list[FallbackRow]:
    """Return the best fallback share against each of three kinds of uncertainty.

    Each is swept with the other two as in `base`. The mixes have shares in hundredths.

    What comes out, with the defaults:

    * Burstiness raises the share, in the ``paper`` scenario (5 requests/s/km², at most 20 % deep
      nodes) from 0 to 0.80 and in :func:`two_family_network` (1.2 s) from 0 to 0.16: bursts need
      slots.
    * Telemetry delay lowers it, from 0.29 to 0 and from 0.06 to 0, contrary to the paper: a router
      that does not know of the burst goes on as in quiet times, the deep nodes overflow, and the
      slots of the fallback nodes stay idle when they are needed. That holds for the router of the
      model, which acts on mean waits of tiers. One that acts on late reports of each node's own
      backlog sends all requests to the same nodes until the next report, and simulated fleets with
      it gain by fallback nodes as the reports get older.
    * Uncertain popularity raises it, from 0.14 to 0.43, where profiles are nested: a draw with more
      long requests is a higher load. It lowers it, from 0.08 to 0, where profiles bet on families
      whose whole prompt a fallback node cannot prefill within the target: in a draw that favours
      one family, it misses more requests in time than its slots save.

    The simulated fleets are those of ``tests/analytic/test_fallback_simulated.py``. They confirm
    the effects of bursts and of late waits; that of uncertain popularity they do not.

    Parameters
    ----------
    net : TieredNetwork
    base : TrafficUncertainty
    ttft_target_s : float or array_like [Q]
    fallback : int
        Index of the fallback profile.
    burst_scv, telemetry_delay_s, concentration : sequence of float
        Values to sweep; see :class:`TrafficUncertainty`.
    budget_bytes, minimum, maximum
        As in :func:`edgegym.analytic.optimize_placement`.
    report : callable, optional
        Called with a line of text after each point.

    Returns
    -------
    list of FallbackRow
        The sweeps one after the other.

    Raises
    ------
    ValueError
        If an argument breaks its rule or no mix satisfies the constraints.
    TypeError
        If `net` is no network or `base` no description of traffic.
    """
    check_network(net)
    _check_traffic("base", base)
    check_report(report)
    fallback = checked_whole("fallback", fallback, 0, net.num_profiles - 1)
    target = checked_target(net, ttft_target_s)

    @cache
    def best(traffic: TrafficUncertainty) -> RobustPlacement:
        found = None
        for step in (_COARSE_STEP, _STEP):
            found = robust_placement(
                net,
                traffic,
                ttft_target_s=target,
                budget_bytes=budget_bytes,
                minimum=minimum,
                maximum=maximum,
                method=Exchange(step=step),
                start=found,
            )
        assert found is not None
        return found

    points = [
        (name, value, replace(base, **{name: value}))
        for name, values in (
            ("burst_scv", burst_scv),
            ("telemetry_delay_s", telemetry_delay_s),
            ("concentration", concentration),
        )
        for value in _checked_sweep(name, values)
    ]
    nominal = best(TrafficUncertainty()).probabilities
    rows = []
    for name, value, traffic in points:
        found = best(traffic)
        objective = ExpectedCoverage.for_network(net, target, traffic)
        nominal_coverage, _ = objective.assess(nominal, objective.first_wait())
        rows.append(
            FallbackRow(
                parameter=name,
                value=value,
                fallback_share=float(found.probabilities[fallback]),
                probabilities=tuple(found.probabilities.tolist()),
                coverage=max(found.coverage, nominal_coverage),
                nominal_coverage=nominal_coverage,
            )
        )
        if report is not None:
            report(
                f"{len(rows)} of {len(points)}: {name} {value:g}, "
                f"fallback share {rows[-1].fallback_share:.2f}"
            )
    return rows


def two_family_network(load: float = 0.5) -> TieredNetwork:
    """Return an example for the study: two families with a prefix each, and requests without.

    Profiles are the fallback (nothing cached, 16 slots) and one per family (3072 of 4096 tokens, 11
    slots): unlike the nested profiles of the ``paper`` scenario, these bet on a popularity. Three
    eighths of the requests are of each family; the rest are of 1024 tokens that nobody holds.
    Decoding, 2 s, takes more of a slot's time than prefill, so that slots are what a busy fleet
    lacks. Radio and prefill are those of the ``paper`` scenario. An invented fleet, not a measured
    one.

    Parameters
    ----------
    load : float
        Request intensity over what a fleet of fallback nodes alone could serve.

    Returns
    -------
    TieredNetwork

    Raises
    ------
    ValueError
        If the load is negative or not finite.
    """
    load = checked_number("load", load, 0.0, _LARGEST_LOAD)
    net = TieredNetwork(
        density_per_km2=1.0,
        request_intensity=1.0,
        profile_probabilities=np.full(3, 1 / 3),
        concurrency=np.array([16, 11, 11]),
        input_tokens=np.array([4096.0, 4096.0, 1024.0]),
        hit_tokens=np.array([[0, 0, 0], [3072, 0, 0], [0, 3072, 0]]),
        type_probabilities=np.array([0.375, 0.375, 0.25]),
        prefill_linear_s=2.5e-4,
        prefill_quadratic_s=1.4e-8,
        decode_occupancy_s=np.full(3, 2.0),
        radio_xi=0.36,
        radio_alpha=2.0,
        radio_base_s=0.0,
    )
    capacity = 16.0 / float(net.type_probabilities @ net.occupancy_s[0])
    return replace(net, request_intensity=load * capacity)


def _check_traffic(name: str, traffic: object) -> None:
    if not isinstance(traffic, TrafficUncertainty):
        raise TypeError(f"{name} is {traffic!r}: must be a TrafficUncertainty")


def _checked_sweep(name: str, values: Sequence[float]) -> list[float]:
    swept = checked_numbers(name, values, "[n]")
    if swept.ndim != 1:
        raise ValueError(f"{name} has shape {swept.shape}: must be [n], the values to sweep")
    return swept.tolist()
