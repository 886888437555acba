"""The map whose fixed point is the load-association equilibrium (compiled).

Unknown is one number y per tier with y = 0 for no wait and y -> 1 as the wait grows without bound:

    W(y) = unit * y / (1 - y),    unit = mean occupancy / slots.

A tier with load a that induces the wait W answers with P = W / (W + unit). For one slot and one
type P is the utilisation; in general it is between 0 and 1, with slope 1 in the utilisation at
saturation for any number of slots. So the equation y = P(y) is well scaled from empty tiers to the
brink of overload, and continues beyond it: P goes on along its tangent and W along a straight line.
A solution there is no equilibrium; it says which tiers are overloaded.
"""

from typing import NamedTuple

import numpy as np

from edgegym.analytic.cost_integrals import law
from edgegym.analytic.queueing import delay_probability, node_queue
from edgegym.jit import kernel


class Tiers(NamedTuple):
    """Arrays of the tiers that exist and of the types that occur, type first (``[Q, S]``).

    Attributes
    ----------
    prefill, occupancy : float64 [Q, S]
        Seconds; prefill infinite where the tier may not serve the type.
    shares : float64 [Q]
        Type probabilities.
    density : float64 [S]
        Nodes per km², greater than 0.
    slots : int64 [S]
        Concurrency.
    unit : float64 [S]
        Scale of the waits, mean occupancy over slots, in seconds.
    knee : float64 [S]
        Largest wait that a stable tier is credited with, in units; :func:`knee_units`.
    intensity, xi, power, wait_scale : float
        Requests/s/km², radio coefficient, ``2 / alpha``, ``(1 + scv) / 2``.
    """

    prefill: np.ndarray
    occupancy: np.ndarray
    shares: np.ndarray
    density: np.ndarray
    slots: np.ndarray
    unit: np.ndarray
    knee: np.ndarray
    intensity: float
    xi: float
    power: float
    wait_scale: float


@kernel
def tier_loads(tiers, wait, points, weights, rate, load, rate_slope, load_slope):
    """Fill per-node arrival rates and offered loads of every tier at these assumed waits.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        Assumed waits in seconds.
    points, weights : float64 [n]
        Quadrature rule.
    rate, load : float64 [S]
        Out: requests/s per node [14], and the sum of rate times occupancy.
    rate_slope, load_slope : float64 [S, S] or [0, 0]
        Out, unless empty: derivatives in the waits.
    """
    count = wait.size
    share = np.empty(count)
    cost = np.empty(count)
    with_slope = rate_slope.size > 0
    cross = np.empty((count, count) if with_slope else (0, 0))
    for s in range(count):
        rate[s] = 0.0
        load[s] = 0.0
        if with_slope:
            for t in range(count):
                rate_slope[s, t] = 0.0
                load_slope[s, t] = 0.0
    for q in range(tiers.shares.size):
        for s in range(count):
            cost[s] = tiers.prefill[q, s] + wait[s]
        law(cost, tiers.density, tiers.xi, tiers.power, points, weights, share, cross)
        for s in range(count):
            per_node = tiers.intensity * tiers.shares[q] / tiers.density[s]
            rate[s] += per_node * share[s]
            load[s] += per_node * share[s] * tiers.occupancy[q, s]
            if with_slope:
                for t in range(count):
                    change = per_node * cross[s, t]
                    rate_slope[s, t] += change
                    rate_slope[s, s] -= change
                    change *= tiers.occupancy[q, s]
                    load_slope[s, t] += change
                    load_slope[s, s] -= change


@kernel
def induced_wait(tiers, s, rate, load):
    """Return the mean wait [19] of tier `s`; infinite where it is unstable, 0 where unused."""
    return node_queue(tiers.slots[s], rate, load, tiers.wait_scale)[0]


def knee_units(slots):
    """Return where the wait's continuation beyond saturation begins, in units.

    At least a thousand mean occupancies (so the utilization depends on the slots: 1e-7 short of 1
    for ten thousand), and at least 1e5 units: far past any stable tier of interest, and near the
    limit of what rounding leaves of the differences between waits.
    """
    return np.maximum(1e5, 1e3 * slots)


@kernel
def to_wait(y, unit, knee):
    """Return the wait of y."""
    brink = knee / (1.0 + knee)
    if y < brink:
        return unit * y / (1.0 - y)
    return unit * knee * (1.0 + (y - brink))


@kernel
def from_wait(wait, unit, knee):
    """Return the y of a wait: the inverse of :func:`to_wait`."""
    if wait < unit * knee:
        return wait / (wait + unit)
    return knee / (1.0 + knee) + (wait / (unit * knee) - 1.0)


@kernel
def wait_slope(y, unit, knee):
    """Return the derivative of the wait in y."""
    if y < knee / (1.0 + knee):
        return unit / ((1.0 - y) * (1.0 - y))
    return unit * knee


@kernel
def response(tiers, s, rate, load):
    """Return P of tier `s` and its derivatives in the load and in the rate."""
    slots = tiers.slots[s]
    scale = tiers.unit[s] * slots / tiers.wait_scale
    ratio = load / (rate * scale) if rate > 0.0 else 1.0
    ratio_by_load = 1.0 / (rate * scale) if rate > 0.0 else 0.0
    ratio_by_rate = -ratio / rate if rate > 0.0 else 0.0
    utilization = load / slots
    if utilization >= 1.0:
        excess = utilization - 1.0
        by_ratio = -excess / (ratio * ratio)
        by_load = 1.0 / (slots * ratio)
        value = 1.0 + excess / ratio
    else:
        waiting, waiting_slope = delay_probability(slots, load)
        rest = 1.0 - utilization
        below = ratio * waiting + rest
        value = ratio * waiting / below
        by_load = ratio * (waiting_slope * rest + waiting / slots) / (below * below)
        by_ratio = waiting * rest / (below * below)
    return value, by_load + by_ratio * ratio_by_load, by_ratio * ratio_by_rate


@kernel
def map_gap(tiers, wait, rate, load, gap):
    """Fill y - P at these waits, given the rates and loads that they lead to.

    Returns
    -------
    size, residual : float
        ``max |y - P|``, and ``max |W - induced W| / (1 + W)``, infinite if a tier is unstable.
    """
    size = 0.0
    residual = 0.0
    for s in range(wait.size):
        y = from_wait(wait[s], tiers.unit[s], tiers.knee[s])
        gap[s] = y - response(tiers, s, rate[s], load[s])[0]
        size = max(size, abs(gap[s]))
        induced = induced_wait(tiers, s, rate[s], load[s])
        residual = max(residual, abs(wait[s] - induced) / (1.0 + wait[s]))
    return size, residual


@kernel
def evaluate_map(tiers, wait, points, weights, gap, jacobian):
    """Fill y - P and its derivative in the waits; return the largest gap and the true residual.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
    points, weights : float64 [n]
    gap : float64 [S]
        Out.
    jacobian : float64 [S, S]
        Out.

    Returns
    -------
    size, residual : float
        ``max |y - P|``, and ``max |W - induced W| / (1 + W)``, infinite if a tier is unstable.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    rate_slope = np.empty((count, count))
    load_slope = np.empty((count, count))
    tier_loads(tiers, wait, points, weights, rate, load, rate_slope, load_slope)
    for s in range(count):
        y = from_wait(wait[s], tiers.unit[s], tiers.knee[s])
        _, by_load, by_rate = response(tiers, s, rate[s], load[s])
        for t in range(count):
            jacobian[s, t] = -by_load * load_slope[s, t] - by_rate * rate_slope[s, t]
        jacobian[s, s] += 1.0 / wait_slope(y, tiers.unit[s], tiers.knee[s])
    return map_gap(tiers, wait, rate, load, gap)
