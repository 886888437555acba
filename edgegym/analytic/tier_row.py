"""One tier's share of the requests, quickly and to three digits (compiled).

A sweep solves for one tier's wait after the other. The whole law would work out every tier's share
to use one of them; here that one is integrated alone, in a single piece from the tier's own cost on
(the kinks at the other tiers' costs cost digits, which a sweep does not need).
"""

import math

import numpy as np

from edgegym.jit import kernel

# exp(-16) is far below what a sweep can see.
_TAIL = 16.0


@kernel
def lone_reach(density, xi, power):
    """Return the radio costs within which each tier alone has `_TAIL` nodes on average, ``[S]``."""
    reach = np.empty(density.size)
    for t in range(density.size):
        reach[t] = xi * (_TAIL / (math.pi * density[t])) ** (1.0 / power)
    return reach


@kernel
def _mean_at(cost, density, xi, power, j):
    """Return the mean number of nodes that cost at most `j`, and its derivative."""
    total = 0.0
    gradient = 0.0
    for t in range(cost.size):
        beyond = j - cost[t]
        if beyond > 0.0:
            scaled = beyond / xi
            if power != 1.0:
                scaled = math.exp(power * math.log(scaled))
            value = math.pi * density[t] * scaled
            total += value
            gradient += power * value / beyond
    return total, gradient


@kernel
def _tail_end(cost, density, xi, power, reach, start):
    """Return the cost beyond which hardly any request is left, at least `start`."""
    end = np.inf
    for t in range(cost.size):
        end = min(end, cost[t] + reach[t])
    # Many tiers that share the requests reach the cut much earlier than each alone.
    for _ in range(2):
        if end <= start:
            return start
        total, gradient = _mean_at(cost, density, xi, power, end)
        root = (total / _TAIL) ** (1.0 / power)
        end -= (root - 1.0) * power * total / (root * gradient)
    return max(end, start)


@kernel
def row_share(cost, density, xi, power, reach, s, points, weights):
    """Return the probability that tier `s` serves the request, to about three digits.

    Parameters
    ----------
    cost, density : float64 [S]
        As in :func:`edgegym.analytic.cost_integrals.law`, all densities above 0.
    xi, power : float
        Radio coefficient and ``2 / alpha``.
    reach : float64 [S]
        From :func:`lone_reach`.
    s : int
    points, weights : float64 [n]
        From :func:`edgegym.analytic.quadrature.rule`.
    """
    start = cost[s]
    if not start < np.inf:
        return 0.0
    end = _tail_end(cost, density, xi, power, reach, start)
    length = end - start
    if length <= 0.0:
        return 0.0
    share = 0.0
    for i in range(points.size):
        step = points[i] * length
        total = 0.0
        slope = 0.0
        for t in range(cost.size):
            beyond = (start - cost[t]) + step
            if beyond > 0.0:
                scaled = beyond / xi
                if power != 1.0:
                    scaled = math.exp(power * math.log(scaled))
                value = math.pi * density[t] * scaled
                total += value
                if t == s:
                    slope = power * value / beyond
        share += weights[i] * length * slope * math.exp(-total)
    return share
