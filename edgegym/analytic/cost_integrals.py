"""Who wins, from how far, and in time: integrals over the cost of the best tier (compiled).

One request type at a time, as in :mod:`edgegym.analytic.quadrature`: between the tiers' own costs
the integrands are smooth, and one pass over such a piece serves all tiers.
"""

import math

import numpy as np

from edgegym.analytic.elementary import fast_exp
from edgegym.analytic.quadrature import dot, sorted_tiers, weigh_piece
from edgegym.jit import kernel


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
    slope = np.empty(tiers)
    slopes = np.empty((tiers, points.size))
    weight = np.empty(points.size)
    product = np.empty(points.size)
    part = np.empty(tiers)
    with_cross = cross.size > 0
    cross_part = np.zeros((tiers, tiers) if with_cross else (0, 0))
    for s in range(tiers):
        share[s] = 0.0
    if with_cross:
        for s in range(tiers):
            for t in range(tiers):
                cross[s, t] = 0.0
    count = sorted_tiers(cost, density, order)
    for active in range(1, count + 1):
        start = cost[order[active - 1]]
        gap = cost[order[active]] - start if active < count else np.inf
        length, mass = weigh_piece(
            start,
            gap,
            active,
            order,
            cost,
            density,
            xi,
            power,
            points,
            weights,
            slope,
            slopes,
            weight,
        )
        if length <= 0.0:
            continue
        found = 0.0
        for k in range(active):
            part[k] = dot(weight, slopes[k])
            found += part[k]
            if with_cross:
                for i in range(points.size):
                    product[i] = weight[i] * slopes[k, i]
                for other in range(k):
                    cross_part[k, other] = dot(product, slopes[other])
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
    slope = np.empty(tiers)
    slopes = np.empty((tiers, points.size))
    weight = np.empty(points.size)
    part = np.empty((tiers, 3))
    for s in range(tiers):
        share[s] = 0.0
        distance[s] = 0.0
        radio[s] = 0.0
    count = sorted_tiers(cost, density, order)
    for active in range(1, count + 1):
        start = cost[order[active - 1]]
        gap = cost[order[active]] - start if active < count else np.inf
        length, mass = weigh_piece(
            start,
            gap,
            active,
            order,
            cost,
            density,
            xi,
            power,
            points,
            weights,
            slope,
            slopes,
            weight,
        )
        if length <= 0.0:
            continue
        found = 0.0
        for k in range(active):
            t = order[k]
            won_all, distance_all, radio_all = 0.0, 0.0, 0.0
            offset = start - cost[t]
            area = power * math.pi * density[t]
            for i in range(points.size):
                won = weight[i] * slopes[k, i]
                beyond = offset + points[i] * length
                won_all += won
                distance_all += won * math.sqrt(slopes[k, i] * beyond / area)
                radio_all += won * beyond
            part[k, 0] = won_all
            part[k, 1] = distance_all
            part[k, 2] = radio_all
            found += won_all
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
    # By insertion: numpy's sort takes longer to compile than all the rest.
    for i in range(1, size):
        end = ends[i]
        k = i
        while k > 0 and ends[k - 1] > end:
            ends[k] = ends[k - 1]
            k -= 1
        ends[k] = end
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
    slope = np.empty(tiers)
    slopes = np.empty((tiers, points.size))
    weight = np.empty(points.size)
    late = np.empty(points.size)
    part = np.empty((tiers, 2))
    ends = np.empty(3 * tiers)
    for s in range(tiers):
        fitting[s] = 0.0
        reached[s] = 0.0
    count = sorted_tiers(cost, density, order)
    size = _breaks(limit, delay, decay, count, order, cost, ends)
    last = -np.inf
    for k in range(count):
        last = max(last, limit[order[k]])
    active = 0
    for n in range(size):
        start = ends[n]
        if start >= last:
            break
        while active < count and cost[order[active]] <= start:
            active += 1
        gap = ends[n + 1] - start if n + 1 < size else np.inf
        if active == 0 or gap <= 0.0:
            continue
        length, mass = weigh_piece(
            start,
            gap,
            active,
            order,
            cost,
            density,
            xi,
            power,
            points,
            weights,
            slope,
            slopes,
            weight,
        )
        if length <= 0.0:
            break
        found = 0.0
        for k in range(active):
            t = order[k]
            won = dot(weight, slopes[k])
            found += won
            part[k, 0] = 0.0
            part[k, 1] = 0.0
            if limit[t] > start:
                part[k, 0] = won
                part[k, 1] = won
                if delay[t] > 0.0:
                    left = limit[t] - start
                    for i in range(points.size):
                        slack = max(left - points[i] * length, 0.0)
                        late[i] = delay[t] * fast_exp(-decay[t] * slack) * weight[i]
                    part[k, 0] -= dot(late, slopes[k])
        scale = mass / found if found > 0.0 else 0.0
        for k in range(active):
            fitting[order[k]] += scale * part[k, 0]
            reached[order[k]] += scale * part[k, 1]
