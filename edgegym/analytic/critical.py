"""The load at which the equilibrium ceases to exist, and what bounds it [35]."""

import math
from typing import Any, cast

import numpy as np

from edgegym.analytic.arguments import check_network
from edgegym.analytic.grouping import build_tiers
from edgegym.analytic.saturation import first_saturation, serving_tiers
from edgegym.analytic.tier_map import Tiers
from edgegym.world.network import TieredNetwork

_ACCURACY = 1e-7
_RARE = 1e-9


def critical_intensity(net: TieredNetwork) -> float:
    """Return the request intensity at which the load-aware equilibrium ceases to exist.

    Below it the network has a stable equilibrium, whatever its queues' service times (only the load
    per slot counts); from it on it has none.

    Parameters
    ----------
    net : TieredNetwork
        Its own `request_intensity` does not matter.

    Returns
    -------
    float
        Requests/s/km², to a relative 1e-7, mostly 1e-9; infinite where no tier may serve any of
        the requests.

    Raises
    ------
    ArithmeticError
        If the limit could not be found to that accuracy; the message gives the bounds found.
    TypeError
        If `net` is no network.
    """
    check_network(net)
    tiers = _serving_tiers(net)
    if tiers is None:
        return math.inf
    found = first_saturation(tiers)
    if not (math.isfinite(found.upper) and found.upper - found.lower <= _ACCURACY * found.upper):
        raise ArithmeticError(
            "the critical intensity could only be found to lie between "
            f"{found.lower:.9g} and {found.upper:.9g}"
        )
    return math.sqrt(found.lower) * math.sqrt(found.upper)


def _serving_tiers(net: TieredNetwork) -> Tiers | None:
    chosen = serving_tiers(build_tiers(net)[0])
    return None if chosen is None else chosen[0]


def capacity_intensity(net: TieredNetwork) -> float:
    """Return the load that all slots could carry if requests chose the tier that holds them least.

    The necessary condition [35]. A loose upper bound of :func:`critical_intensity`: nothing sees to
    it that slots are free where requests are short.

    Parameters
    ----------
    net : TieredNetwork
        Its own `request_intensity` does not matter.

    Returns
    -------
    float
        Requests/s/km²; infinite where no tier may serve any of the requests.

    Raises
    ------
    TypeError
        If `net` is no network.
    """
    check_network(net)
    tiers = _serving_tiers(net)
    if tiers is None:
        return math.inf
    shortest = np.where(np.isfinite(tiers.prefill), tiers.occupancy, np.inf).min(axis=1)
    return float(tiers.density @ tiers.slots) / float(tiers.shares @ shortest)


def lp_intensity(net: TieredNetwork) -> float:
    """Return the load that the fleet could carry if a planner chose each request's tier.

    A linear program over the shares of each type that each tier serves. An upper bound of
    :func:`critical_intensity`, loose where requests cannot be steered so finely: a tier advertises
    one wait to requests of all types and from everywhere. At most :func:`capacity_intensity`.

    Parameters
    ----------
    net : TieredNetwork
        Its own `request_intensity` does not matter.

    Returns
    -------
    float
        Requests/s/km²; infinite where no tier may serve any of the requests.

    Raises
    ------
    TypeError
        If `net` is no network.
    """
    from scipy import optimize

    # Without annotations: a type checker would infer what it returns from all of its source.
    linprog = cast("Any", optimize.linprog)
    check_network(net)
    tiers = _serving_tiers(net)
    if tiers is None:
        return math.inf
    types, members = np.nonzero(np.isfinite(tiers.prefill))
    # Flows as the parts of their tiers' slots that they take when all slots together would do: then
    # the least load is a number not far above 1, however small a tier is.
    limit = capacity_intensity(net)
    taken = limit * tiers.occupancy[types, members] / (tiers.density * tiers.slots)[members]
    size = len(types)
    tier_rows = np.zeros((len(tiers.slots), size + 1))
    tier_rows[members, np.arange(size)] = 1.0
    tier_rows[:, size] = -1.0
    type_rows = np.zeros((len(tiers.shares), size + 1))
    # Rare types, too, are to be served to the last request and not within a tolerance.
    weight = np.where(tiers.shares > _RARE, tiers.shares, 1.0)
    type_rows[types, np.arange(size)] = 1.0 / (taken * weight[types])
    goal = np.zeros(size + 1)
    goal[size] = 1.0
    found = linprog(
        goal,
        A_ub=tier_rows,
        b_ub=np.zeros(len(tiers.slots)),
        A_eq=type_rows,
        b_eq=tiers.shares / weight,
        method="highs",
    )
    return limit / max(float(found.fun), 1.0)


__all__ = ["capacity_intensity", "critical_intensity", "lp_intensity"]
