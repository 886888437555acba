"""Pieces of the cost of the best tier, and rules to integrate over them (compiled).

Every function here works on one request type: ``cost[t]`` is the part of the cost that does not
depend on distance (prefill plus advertised wait), infinite where tier t may not serve the type, and
``density[t]`` the tier's nodes per km². With j the total cost less the fixed radio latency, the
nodes of tier t that cost at most j are Poisson with mean

    m_t(j) = pi * density_t * ((j - cost_t)+ / xi) ** (2 / alpha),

so tier s wins at cost j with density m_s'(j) * exp(-sum_t m_t(j)) (Theorem 1 of the framework
paper, with the substitution j = cost_s + xi * r**alpha). All tiers share the exponent: one pass
serves all.
"""

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.elementary import fast_exp, fast_power
from edgegym.jit import kernel

# Points per piece for an error below 1e-9.
FINE_NODES = 64
# exp(-40) is below the rounding of a probability.
_TAIL = 40.0
# Radio costs in seconds outside this range are beyond what numbers can tell.
_NEAREST, _FARTHEST = 1e-280, 1e280


@cache
def rule(alpha: float, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return points and weights on [0, 1] that resolve the singularity at a piece's lower end.

    Parameters
    ----------
    alpha : float
        Path-loss exponent.
    nodes : int
        Number of points.

    Returns
    -------
    points, weights : numpy.ndarray [nodes]
        Gauss-Legendre in x with the substitution ``x ** (2 * max(2, alpha))``: at a tier's own cost
        the density behaves as a power ``2 / alpha - 1`` of the distance to it.
    """
    x, w = np.polynomial.legendre.leggauss(nodes)
    x, w = (x + 1.0) / 2.0, w / 2.0
    power = 2.0 * max(2.0, alpha)
    return x**power, w * power * x ** (power - 1.0)


@kernel
def sorted_tiers(cost, density, order):
    """Write the tiers that exist and may serve into `order` by increasing cost; return how many."""
    count = 0
    for t in range(cost.size):
        if density[t] > 0.0 and cost[t] < np.inf:
            k = count
            while k > 0 and cost[order[k - 1]] > cost[t]:
                order[k] = order[k - 1]
                k -= 1
            order[k] = t
            count += 1
    return count


@kernel
def means(j_from, step, active, order, cost, density, xi, power, slope):
    """Fill m_t' of the first `active` tiers at ``j_from + step``; return the sum of m_t.

    The two parts of j are kept apart, so that a step far below ``j_from`` is not lost to rounding.
    """
    total = 0.0
    for k in range(active):
        t = order[k]
        beyond = (j_from - cost[t]) + step
        if beyond <= _NEAREST:
            slope[k] = 0.0
            continue
        scaled = beyond / xi
        if power != 1.0:
            scaled = math.exp(power * math.log(scaled))  # a third faster than the power function
        value = math.pi * density[t] * scaled
        slope[k] = power * value / beyond
        total += value
    return total


@kernel
def tail_length(start, most, active, order, cost, density, xi, power, slope):
    """Return how far beyond `start`, where it is less, the sum of m_t has passed `most`.

    A length, not a cost: where radio is tiny beside prefill, adding it to the cost would lose it.
    """
    length = _FARTHEST
    for k in range(active):
        t = order[k]
        alone = xi * (most / (math.pi * density[t])) ** (1.0 / power)
        length = min(length, (cost[t] - start) + alone)
    # One tier's bound may be far too long when many share the requests: Newton on the logarithm of
    # the sum, which is convex in that of the length, so that no step goes too far. A fixed number
    # of steps keeps the result a smooth function of the costs.
    for _ in range(3):
        total = means(start, length, active, order, cost, density, xi, power, slope)
        gradient = 0.0
        for k in range(active):
            gradient += slope[k]
        if not (total > most and gradient > 0.0):
            break
        length *= math.exp(-math.log(total / most) * total / (length * gradient))
    return max(length, 0.0)


@kernel
def _length_and_mass(start, gap, active, order, cost, density, xi, power, slope):
    """Return the length of a piece up to the tail's cut, 0 if there is none, and its probability.

    The piece begins at cost `start` and is `gap` long. Its probability is known exactly, which
    removes most of the rule's error from the tiers' parts.
    """
    if gap <= 0.0:
        return 0.0, 0.0
    before = means(start, 0.0, active, order, cost, density, xi, power, slope)
    if before >= _TAIL:
        return 0.0, 0.0
    length = tail_length(start, _TAIL, active, order, cost, density, xi, power, slope)
    if length <= gap:  # what the cut leaves is below rounding, and belongs to this piece
        return length, math.exp(-before)
    after = means(start, gap, active, order, cost, density, xi, power, slope)
    return gap, math.exp(-before) - math.exp(-after)


@kernel
def _intensities(
    start, length, active, order, cost, density, xi, power, points, weights, slopes, weight
):
    """Fill m_t' at a piece's points, ``[active, n]``, and the rule's weight times exp(-sum m_t).

    Tier by tier over all points, which the compiler turns into vector instructions.
    """
    for i in range(points.size):
        weight[i] = 0.0
    for k in range(active):
        t = order[k]
        offset = start - cost[t]
        nodes = math.pi * density[t]
        if power == 1.0:
            for i in range(points.size):
                slopes[k, i] = nodes / xi
                weight[i] += nodes / xi * (offset + points[i] * length)
            continue
        for i in range(points.size):
            beyond = offset + points[i] * length
            near = beyond <= _NEAREST
            safe = 1.0 if near else beyond
            value = 0.0 if near else nodes * fast_power(safe / xi, power)
            slopes[k, i] = power * value / safe
            weight[i] += value
    for i in range(points.size):
        weight[i] = weights[i] * length * fast_exp(-weight[i])


@kernel
def weigh_piece(
    start, gap, active, order, cost, density, xi, power, points, weights, slope, slopes, weight
):
    """Fill what the integrals over a piece of costs need; return its length and probability.

    Parameters
    ----------
    start, gap : float
        The piece begins at this cost and ends there plus `gap` (infinite for the last one), or
        where what is left is below rounding.
    active : int
        So many tiers compete in it, the first of `order`.
    order : int64 [S]
        From :func:`sorted_tiers`.
    cost, density : float64 [S]
    xi, power : float
    points, weights : float64 [n]
        From :func:`rule`.
    slope : float64 [S]
        Scratch.
    slopes : float64 [S, n]
        Out: m_t' of the active tiers at the points.
    weight : float64 [n]
        Out: the rule's weight times ``exp(-sum_t m_t)``.

    Returns
    -------
    length, mass : float
        Length, 0 if nothing is left there (then nothing is filled), and the probability that some
        tier wins in the piece. The sum of ``weight * slopes`` over points and tiers is that
        probability up to the rule's error: parts of it are to be scaled by the ratio.
    """
    length, mass = _length_and_mass(start, gap, active, order, cost, density, xi, power, slope)
    if length > 0.0:
        _intensities(
            start, length, active, order, cost, density, xi, power, points, weights, slopes, weight
        )
    return length, mass


@kernel(fastmath={"reassoc"})
def dot(a, b):
    """Return the sum of products, in an order that suits vector instructions."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total
