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
def means(j_from, step, active, order, cost, density, xi, power, mean, slope):
    """Fill m_t and m_t' of the first `active` tiers at ``j_from + step``; return the sum of m_t.

    The two parts of j are kept apart, so that a step far below ``j_from`` is not lost to rounding.
    """
    total = 0.0
    for k in range(active):
        t = order[k]
        beyond = (j_from - cost[t]) + step
        if beyond <= _NEAREST:
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
def tail_length(start, most, active, order, cost, density, xi, power, mean, slope):
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
        total = means(start, length, active, order, cost, density, xi, power, mean, slope)
        gradient = 0.0
        for k in range(active):
            gradient += slope[k]
        if not (total > most and gradient > 0.0):
            break
        length *= math.exp(-math.log(total / most) * total / (length * gradient))
    return max(length, 0.0)


@kernel
def _piece(start, gap, active, order, cost, density, xi, power, mean, slope):
    """Return the length of a piece up to the tail's cut, 0 if there is none, and its probability.

    The piece begins at cost `start` and is `gap` long. Its probability is known exactly, which
    removes most of the rule's error from the tiers' parts.
    """
    if gap <= 0.0:
        return 0.0, 0.0
    before = means(start, 0.0, active, order, cost, density, xi, power, mean, slope)
    if before >= _TAIL:
        return 0.0, 0.0
    length = tail_length(start, _TAIL, active, order, cost, density, xi, power, mean, slope)
    if length <= gap:  # what the cut leaves is below rounding, and belongs to this piece
        return length, math.exp(-before)
    after = means(start, gap, active, order, cost, density, xi, power, mean, slope)
    return gap, math.exp(-before) - math.exp(-after)


@kernel
def _intensities(
    start, length, active, order, cost, density, xi, power, points, weights, slope, weight
):
    """Fill m_t' at a piece's points, ``[active, n]``, and the rule's weight times exp(-sum m_t).

    Tier by tier over all points, which the compiler turns into vector instructions.
    """
    weight[:] = 0.0
    for k in range(active):
        t = order[k]
        offset = start - cost[t]
        nodes = math.pi * density[t]
        if power == 1.0:
            for i in range(points.size):
                slope[k, i] = nodes / xi
                weight[i] += nodes / xi * (offset + points[i] * length)
            continue
        for i in range(points.size):
            beyond = offset + points[i] * length
            near = beyond <= _NEAREST
            safe = 1.0 if near else beyond
            value = 0.0 if near else nodes * fast_power(safe / xi, power)
            slope[k, i] = power * value / safe
            weight[i] += value
    for i in range(points.size):
        weight[i] = weights[i] * length * fast_exp(-weight[i])


@kernel(fastmath={"reassoc"})
def _dot(a, b):
    """Return the sum of products, in an order that suits vector instructions."""
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


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
    slopes = np.empty((tiers, points.size))
    weight = np.empty(points.size)
    product = np.empty(points.size)
    part = np.empty(tiers)
    with_cross = cross.size > 0
    cross_part = np.zeros((tiers, tiers) if with_cross else (0, 0))
    share[:] = 0.0
    cross[:, :] = 0.0
    count = sorted_tiers(cost, density, order)
    for active in range(1, count + 1):
        start = cost[order[active - 1]]
        gap = cost[order[active]] - start if active < count else np.inf
        length, mass = _piece(start, gap, active, order, cost, density, xi, power, mean, slope)
        if length <= 0.0:
            continue
        _intensities(
            start,
            length,
            active,
            order,
            cost,
            density,
            xi,
            power,
            points,
            weights,
            slopes,
            weight,
        )
        for k in range(active):
            part[k] = _dot(weight, slopes[k])
            if with_cross:
                for i in range(points.size):
                    product[i] = weight[i] * slopes[k, i]
                for other in range(k):
                    cross_part[k, other] = _dot(product, slopes[other])
        found = part[:active].sum()
        scale = mass / found if found > 0.0 else 0.0
        for k in range(active):
            share[order[k]] += scale * part[k]
            if with_cross:
                for other in range(k):
                    value = scale * cross_part[k, other]
                    cross[order[k], order[other]] += value
                    cross[order[other], order[k]] += value


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
    slopes = np.empty((tiers, points.size))
    weight = np.empty(points.size)
    part = np.empty((tiers, 3))
    share[:] = 0.0
    distance[:] = 0.0
    radio[:] = 0.0
    count = sorted_tiers(cost, density, order)
    for active in range(1, count + 1):
        start = cost[order[active - 1]]
        gap = cost[order[active]] - start if active < count else np.inf
        length, mass = _piece(start, gap, active, order, cost, density, xi, power, mean, slope)
        if length <= 0.0:
            continue
        _intensities(
            start,
            length,
            active,
            order,
            cost,
            density,
            xi,
            power,
            points,
            weights,
            slopes,
            weight,
        )
        part[:active] = 0.0
        for k in range(active):
            t = order[k]
            offset = start - cost[t]
            area = power * math.pi * density[t]
            for i in range(points.size):
                won = weight[i] * slopes[k, i]
                beyond = offset + points[i] * length
                part[k, 0] += won
                part[k, 1] += won * math.sqrt(slopes[k, i] * beyond / area)
                part[k, 2] += won * beyond
        found = part[:active, 0].sum()
        scale = mass / found if found > 0.0 else 0.0
        for k in range(active):
            t = order[k]
            share[t] += scale * part[k, 0]
            distance[t] += scale * part[k, 1]
            radio[t] += scale * part[k, 2]


@kernel
def _breaks(limit, delay, decay, count, order, cost, ends):
    """Fill the costs between which coverage is smooth, in order; return how many there are.

    The integrand jumps where a tier's slack ends, and may fall steeply just before.
    """
    size = 0
    for k in range(count):
        t = order[k]
        ends[size] = cost[t]
        ends[size + 1] = limit[t]
        size += 2
        if delay[t] > 1e-10 and decay[t] > 0.0:
            ends[size] = limit[t] - 8.0 / decay[t]
            size += 1
    ends[:size] = np.sort(ends[:size])
    return size


@kernel
def covered(cost, density, xi, power, points, weights, limit, delay, decay, fitting, reached):
    """Fill the probability that each tier wins and its wait fits into what the cost leaves.

    Parameters
    ----------
    cost, density, xi, power, points, weights
        See :func:`law`.
    limit : float64 [S]
        Cost j up to which tier s has time left: its slack is ``limit[s] - j``.
    delay, decay : float64 [S]
        The wait of tier s exceeds w with probability ``delay * exp(-decay * w)``; an unstable tier
        has delay 1 and decay 0, and so never fits.
    fitting, reached : float64 [S]
        Out: P(s wins with a wait of at most its slack), and P(s wins with slack left).
    """
    tiers = cost.size
    order = np.empty(tiers, np.int64)
    mean = np.empty(tiers)
    slope = np.empty(tiers)
    slopes = np.empty((tiers, points.size))
    weight = np.empty(points.size)
    late = np.empty(points.size)
    part = np.empty((tiers, 2))
    ends = np.empty(3 * tiers)
    fitting[:] = 0.0
    reached[:] = 0.0
    count = sorted_tiers(cost, density, order)
    size = _breaks(limit, delay, decay, count, order, cost, ends)
    last = -np.inf
    for k in range(count):
        last = max(last, limit[order[k]])
    active = 0
    for i in range(size):
        start = ends[i]
        if start >= last:
            break
        while active < count and cost[order[active]] <= start:
            active += 1
        gap = ends[i + 1] - start if i + 1 < size else np.inf
        if active == 0 or gap <= 0.0:
            continue
        length, mass = _piece(start, gap, active, order, cost, density, xi, power, mean, slope)
        if length <= 0.0:
            break
        _intensities(
            start,
            length,
            active,
            order,
            cost,
            density,
            xi,
            power,
            points,
            weights,
            slopes,
            weight,
        )
        found = 0.0
        for k in range(active):
            t = order[k]
            won = _dot(weight, slopes[k])
            found += won
            part[k, :] = 0.0
            if limit[t] > start:
                part[k, :] = won
                if delay[t] > 0.0:
                    left = limit[t] - start
                    for i in range(points.size):
                        slack = max(left - points[i] * length, 0.0)
                        late[i] = delay[t] * fast_exp(-decay[t] * slack) * weight[i]
                    part[k, 0] -= _dot(late, slopes[k])
        scale = mass / found if found > 0.0 else 0.0
        for k in range(active):
            fitting[order[k]] += scale * part[k, 0]
            reached[order[k]] += scale * part[k, 1]
