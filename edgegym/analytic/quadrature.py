"""Integrals over the cost of the best tier, one request type at a time (compiled).

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

from edgegym.jit import kernel

# Points per piece for an error below 1e-9.
FINE_NODES = 64
# exp(-40) is below the rounding of a probability.
_TAIL = 40.0


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
def _sorted_tiers(cost, density, order):
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
def _means(j_from, step, active, order, cost, density, xi, power, mean, slope):
    """Fill m_t and m_t' of the first `active` tiers at ``j_from + step``; return the sum of m_t.

    The two parts of j are kept apart, so that a step far below ``j_from`` is not lost to rounding.
    """
    total = 0.0
    for k in range(active):
        t = order[k]
        beyond = (j_from - cost[t]) + step
        if beyond <= 0.0:
            mean[k] = 0.0
            slope[k] = 0.0
            continue
        scaled = beyond / xi
        if power != 1.0:
            scaled = math.exp(power * math.log(scaled))  # a third faster than the power function
        value = math.pi * density[t] * scaled
        mean[k] = value
        slope[k] = power * value / beyond
        total += value
    return total


@kernel
def _tail_end(start, active, order, cost, density, xi, power, mean, slope):
    """Return the cost at which the sum of m_t has passed the tail cut, at least `start`."""
    end = np.inf
    for k in range(active):
        t = order[k]
        alone = cost[t] + xi * (_TAIL / (math.pi * density[t])) ** (1.0 / power)
        end = min(end, alone)
    if end <= start:
        return start
    # One tier's bound may be far too long when many share the requests: Newton on the sum's root,
    # which is nearly linear. A fixed number of steps keeps the result a smooth function of the
    # costs.
    goal = _TAIL ** (1.0 / power)
    for _ in range(3):
        total = _means(end, 0.0, active, order, cost, density, xi, power, mean, slope)
        if total <= 0.0:
            break
        gradient = 0.0
        for k in range(active):
            gradient += slope[k]
        root = total ** (1.0 / power)
        end = end - (root - goal) * power * total / (root * gradient)
        if end <= start:
            return start
    return end


@kernel
def law(cost, density, xi, power, points, weights, share, cross):
    """Fill the probability of each tier and, unless `cross` is empty, its derivatives.

    Parameters
    ----------
    cost, density : float64 [S]
        See the module.
    xi, power : float
        Radio coefficient and ``2 / alpha``.
    points, weights : float64 [n]
        From :func:`rule`.
    share : float64 [S]
        Out: probability that the tier serves the request.
    cross : float64 [S, S] or [0, 0]
        Out: for s != t the derivative of ``share[s]`` in ``cost[t]``; symmetric, diagonal 0. The
        diagonal derivative is minus the sum of the row, as only cost differences matter. Infinite
        derivatives (ties at alpha >= 4) come out large.
    """
    tiers = cost.size
    order = np.empty(tiers, np.int64)
    mean = np.empty(tiers)
    slope = np.empty(tiers)
    part = np.empty(tiers)
    with_cross = cross.size > 0
    cross_part = np.zeros((tiers, tiers) if with_cross else (0, 0))
    share[:] = 0.0
    cross[:, :] = 0.0
    count = _sorted_tiers(cost, density, order)
    after = 0.0
    for active in range(1, count + 1):
        start = cost[order[active - 1]]
        # The tier that joins has no node at its own cost yet: a piece begins as the last one ended.
        before = after
        end = cost[order[active]] if active < count else np.inf
        if end <= start:
            continue
        length = end - start
        if active < count:
            after = _means(start, length, active, order, cost, density, xi, power, mean, slope)
        last = active == count or after > _TAIL
        if last:
            end = _tail_end(start, active, order, cost, density, xi, power, mean, slope)
            if end <= start:
                break
            length = end - start
            after = _means(start, length, active, order, cost, density, xi, power, mean, slope)
        part[:active] = 0.0
        if with_cross:
            cross_part[:active, :active] = 0.0
        for i in range(points.size):
            step = points[i] * length
            total = _means(start, step, active, order, cost, density, xi, power, mean, slope)
            weight = weights[i] * length * math.exp(-total)
            for k in range(active):
                part[k] += weight * slope[k]
                if with_cross:
                    for other in range(k):
                        cross_part[k, other] += weight * slope[k] * slope[other]
        # The piece's whole probability is known exactly: it removes most of the rule's error.
        found = part[:active].sum()
        scale = (math.exp(-before) - math.exp(-after)) / found if found > 0.0 else 0.0
        for k in range(active):
            share[order[k]] += scale * part[k]
            if with_cross:
                for other in range(k):
                    value = scale * cross_part[k, other]
                    cross[order[k], order[other]] += value
                    cross[order[other], order[k]] += value
        if last:
            break


@kernel
def moments(cost, density, xi, power, points, weights, share, distance, radio):
    """Fill the probability of each tier and the means of distance and radio cost on that event.

    Parameters
    ----------
    cost, density, xi, power, points, weights
        See :func:`law`.
    share, distance, radio : float64 [S]
        Out: P(s wins), E[r; s wins] in km and E[xi * r**alpha; s wins] in seconds.
    """
    tiers = cost.size
    order = np.empty(tiers, np.int64)
    mean = np.empty(tiers)
    slope = np.empty(tiers)
    part = np.empty((tiers, 3))
    share[:] = 0.0
    distance[:] = 0.0
    radio[:] = 0.0
    count = _sorted_tiers(cost, density, order)
    for active in range(1, count + 1):
        start = cost[order[active - 1]]
        end = _tail_end(start, active, order, cost, density, xi, power, mean, slope)
        if active < count:
            end = min(end, cost[order[active]])
        if end <= start:
            continue
        length = end - start
        before = _means(start, 0.0, active, order, cost, density, xi, power, mean, slope)
        after = _means(start, length, active, order, cost, density, xi, power, mean, slope)
        part[:active] = 0.0
        for i in range(points.size):
            step = points[i] * length
            total = _means(start, step, active, order, cost, density, xi, power, mean, slope)
            weight = weights[i] * length * math.exp(-total)
            for k in range(active):
                t = order[k]
                won = weight * slope[k]
                part[k, 0] += won
                part[k, 1] += won * math.sqrt(mean[k] / (math.pi * density[t]))
                part[k, 2] += won * ((start - cost[t]) + step)
        found = part[:active, 0].sum()
        scale = (math.exp(-before) - math.exp(-after)) / found if found > 0.0 else 0.0
        for k in range(active):
            t = order[k]
            share[t] += scale * part[k, 0]
            distance[t] += scale * part[k, 1]
            radio[t] += scale * part[k, 2]


@kernel
def covered(cost, density, xi, power, points, weights, limit, delay, decay):
    """Return the probability that the winning tier's wait fits into what the cost leaves.

    Parameters
    ----------
    cost, density, xi, power, points, weights
        See :func:`law`.
    limit : float64 [S]
        Cost j up to which tier s has time left: its slack is ``limit[s] - j``.
    delay, decay : float64 [S]
        The wait of tier s exceeds w with probability ``delay * exp(-decay * w)``; an unstable tier
        has delay 1 and decay 0, and so never fits.

    Returns
    -------
    float
        Sum over s of the integral of the density of "s wins at j" times P(wait <= limit[s] - j).
    """
    tiers = cost.size
    order = np.empty(tiers, np.int64)
    mean = np.empty(tiers)
    slope = np.empty(tiers)
    count = _sorted_tiers(cost, density, order)
    if count == 0:
        return 0.0
    # The integrand jumps where a tier's slack ends and may fall steeply just before.
    ends = np.empty(3 * count)
    size = 0
    last = -np.inf
    for k in range(count):
        t = order[k]
        last = max(last, limit[t])
        ends[size] = cost[t]
        ends[size + 1] = limit[t]
        size += 2
        if delay[t] > 1e-10 and decay[t] > 0.0:
            ends[size] = limit[t] - 8.0 / decay[t]
            size += 1
    ends = np.sort(ends[:size])
    active = 0
    result = 0.0
    for piece in range(size):
        start = ends[piece]
        if start >= last:
            break
        while active < count and cost[order[active]] <= start:
            active += 1
        if active == 0:
            continue
        end = _tail_end(start, active, order, cost, density, xi, power, mean, slope)
        if piece + 1 < size:
            end = min(end, ends[piece + 1])
        if end <= start:
            continue
        length = end - start
        before = _means(start, 0.0, active, order, cost, density, xi, power, mean, slope)
        if before > _TAIL:
            break
        after = _means(start, length, active, order, cost, density, xi, power, mean, slope)
        mass = 0.0
        fits = 0.0
        for i in range(points.size):
            step = points[i] * length
            total = _means(start, step, active, order, cost, density, xi, power, mean, slope)
            weight = weights[i] * length * math.exp(-total)
            for k in range(active):
                t = order[k]
                won = weight * slope[k]
                mass += won
                slack = (limit[t] - start) - step
                if slack >= 0.0 and end <= limit[t]:
                    fits += won * (1.0 - delay[t] * math.exp(-decay[t] * slack))
        if mass > 0.0:
            result += fits * (math.exp(-before) - math.exp(-after)) / mass
    return result
