"""Rising sweeps towards the load-association fixed point (compiled): a scalar root per tier."""

import numpy as np

from edgegym.analytic.tier_map import from_wait, response, tier_loads, to_wait
from edgegym.analytic.tier_row import lone_reach, row_share
from edgegym.jit import kernel

# From this y on a tier counts as one with a queue.
QUEUED = 1e-3


@kernel
def _row_loads(tiers, wait, s, points, weights, reach, cost, rate, load):
    """Fill the arrival rate and the load of tier `s` alone, to three digits."""
    rate[s] = 0.0
    load[s] = 0.0
    for q in range(tiers.shares.size):
        for t in range(cost.size):
            cost[t] = tiers.prefill[q, t] + wait[t]
        share = row_share(cost, tiers.density, tiers.xi, tiers.power, reach, s, points, weights)
        served = tiers.intensity * tiers.shares[q] / tiers.density[s] * share
        rate[s] += served
        load[s] += served * tiers.occupancy[q, s]


@kernel
def _gap(tiers, y, s, points, weights, exact, reach, cost, wait, rate, load):
    """Return y - P of tier `s`."""
    wait[s] = to_wait(y, tiers.unit[s], tiers.knee[s])
    if exact:
        empty = np.empty((0, 0))
        tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    else:
        _row_loads(tiers, wait, s, points, weights, reach, cost, rate, load)
    return y - response(tiers, s, rate[s], load[s])[0]


@kernel
def sweep(tiers, wait, points, weights, exact, tolerance):
    """Solve y_s = P_s for one tier after the other, the others held (in place, one pass).

    P mostly falls in the tier's own wait, so that each root lies between the present y and its P.
    From no wait the passes rise towards the smallest equilibrium.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In and out.
    points, weights : float64 [n]
        Quadrature rule.
    exact : bool
        Whether to use the whole law; else three digits of it, much faster.
    tolerance : float
        Relative to ``1 - y``.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    cost = np.empty(count)
    reach = lone_reach(tiers.density, tiers.xi, tiers.power)
    for s in range(count):
        low = from_wait(wait[s], tiers.unit[s], tiers.knee[s])
        low_gap = _gap(tiers, low, s, points, weights, exact, reach, cost, wait, rate, load)
        if low_gap > 0.0:
            high, high_gap = low, low_gap
            low = 0.0
            low_gap = _gap(tiers, low, s, points, weights, exact, reach, cost, wait, rate, load)
        else:
            # P mostly falls, so the root is at most the present P; but types that are slow to leave
            # can raise the mean occupancy and P with it.
            high, high_gap = low, low_gap
            for _ in range(20):
                if high_gap >= 0.0:
                    break
                low, low_gap = high, high_gap
                high = low - low_gap
                high_gap = _gap(
                    tiers, high, s, points, weights, exact, reach, cost, wait, rate, load
                )
        side = 0
        for _ in range(60):
            if high - low <= tolerance * max(1.0 - low, 1e-9) or low_gap >= 0.0 or high_gap <= 0.0:
                break
            middle = (low * high_gap - high * low_gap) / (high_gap - low_gap)
            if not (low < middle < high):
                middle = 0.5 * (low + high)
            gap = _gap(tiers, middle, s, points, weights, exact, reach, cost, wait, rate, load)
            # Illinois: halve the stale end's value, or the root creeps in from one side.
            if gap <= 0.0:
                low, low_gap = middle, gap
                if side == 1:
                    high_gap *= 0.5
                side = 1
            else:
                high, high_gap = middle, gap
                if side == -1:
                    low_gap *= 0.5
                side = -1
            if abs(gap) <= 0.1 * tolerance * max(1.0 - middle, 1e-9):
                low = middle
                break
        wait[s] = to_wait(low, tiers.unit[s], tiers.knee[s])


@kernel
def _level_gap(tiers, wait, rise, points, weights, trial):
    """Raise the waits of all queues by `rise`; return their sum of y - P, by capacity."""
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    empty = np.empty((0, 0))
    for s in range(count):
        queued = from_wait(wait[s], tiers.unit[s], tiers.knee[s]) > QUEUED
        trial[s] = wait[s] + rise if queued else wait[s]
    tier_loads(tiers, trial, points, weights, rate, load, empty, empty)
    total = 0.0
    for s in range(count):
        if from_wait(wait[s], tiers.unit[s], tiers.knee[s]) > QUEUED:
            y = from_wait(trial[s], tiers.unit[s], tiers.knee[s])
            gap = y - response(tiers, s, rate[s], load[s])[0]
            total += tiers.density[s] * tiers.slots[s] * gap
    return total


@kernel
def level(tiers, wait, points, weights):
    """Raise the waits of all queued tiers together until they answer with them on average.

    Requests hardly tell tiers of nearly equal cost apart: sweeps then raise them past each other by
    small steps for very long, while the common level of their waits is one scalar root away.

    Returns
    -------
    bool
        Whether there is such a level short of overload.
    """
    count = wait.size
    trial = np.empty(count)
    low, high = 0.0, tiers.unit.max()
    if _level_gap(tiers, wait, 0.0, points, weights, trial) >= 0.0:
        return True
    for _ in range(60):
        if _level_gap(tiers, wait, high, points, weights, trial) >= 0.0:
            break
        low = high
        high *= 2.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        if high - low <= 1e-3 * high:
            break
        if _level_gap(tiers, wait, middle, points, weights, trial) < 0.0:
            low = middle
        else:
            high = middle
    within = True
    for s in range(count):
        if from_wait(wait[s], tiers.unit[s], tiers.knee[s]) > QUEUED:
            wait[s] += low
            within = within and wait[s] < tiers.unit[s] * tiers.knee[s]
    return within
