"""Laws of the radio cost given type and tier, from integrals over pieces (compiled)."""

import math

import numpy as np

from edgegym.analytic.pieces import PANELS, TAIL, integrate_part, panel_edge
from edgegym.analytic.quadrature import means
from edgegym.jit import kernel


@kernel
def _part_of_panel(pieces, q, rank, k, x_from, x_to, slope, plain, faded):
    """Return what a part of a panel adds to the sums up to its start."""
    shift = pieces.before[q, k]
    integrate_part(pieces, q, k, x_from, x_to, shift, rank, 0.0, slope, plain, faded)
    return math.exp(pieces.before[q, rank] - shift) * plain[rank]


@kernel
def cumulative_shares(pieces, upto, steps, result):
    """Fill the probability that radio costs at most so much, given type and tier.

    Parameters
    ----------
    pieces : Pieces
    upto : float64 [Q, S, S * panels + 1]
        From :func:`edgegym.analytic.pieces.panel_sums`.
    steps : float64 [R]
        Radio costs in seconds.
    result : float64 [R, S, Q]
        Out; only pairs that may occur are written.
    """
    tiers = pieces.cost.shape[1]
    slope = np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        count, order, cost = pieces.rivals[q], pieces.order[q], pieces.cost[q]
        for rank in range(count):
            if pieces.before[q, rank] > TAIL:
                break
            s = order[rank]
            total = upto[q, rank, count * PANELS]
            for i in range(steps.size):
                k = rank
                while k + 1 < count and cost[order[k + 1]] - cost[s] <= steps[i]:
                    k += 1
                beyond = steps[i] - (cost[order[k]] - cost[s])
                if beyond >= pieces.length[q, k]:
                    value = upto[q, rank, (k + 1) * PANELS]
                else:
                    x = (beyond / pieces.length[q, k]) ** (1.0 / pieces.stretch)
                    p = min(int(math.sqrt(x) * PANELS), PANELS - 1)
                    at = k * PANELS + p
                    value = upto[q, rank, at]
                    if x > panel_edge(p):
                        value += _part_of_panel(
                            pieces, q, rank, k, panel_edge(p), x, slope, plain, faded
                        )
                    value = min(value, upto[q, rank, at + 1])
                result[i, s, q] = value / total


@kernel
def relative_density(pieces, upto, steps, result):
    """Fill ``exp(-sum_t m_t)`` at these radio costs over its integral against ``m_s'``.

    Parameters
    ----------
    pieces, upto, steps, result
        See :func:`cumulative_shares`.
    """
    tiers = pieces.cost.shape[1]
    slope = np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        count, order, cost = pieces.rivals[q], pieces.order[q], pieces.cost[q]
        for rank in range(count):
            if pieces.before[q, rank] > TAIL:
                break
            s = order[rank]
            for i in range(steps.size):
                total = means(
                    cost[s],
                    steps[i],
                    count,
                    order,
                    cost,
                    pieces.density[q],
                    pieces.xi,
                    pieces.power,
                    slope,
                )
                left = math.exp(pieces.before[q, rank] - total)
                result[i, s, q] = left / upto[q, rank, count * PANELS]


@kernel
def share_quantiles(pieces, upto, shares, result):
    """Fill the radio costs in seconds that these shares of a pair's requests do not exceed.

    Parameters
    ----------
    pieces, upto
        See :func:`cumulative_shares`.
    shares : float64 [P]
        Between 0 and 1.
    result : float64 [P, S, Q]
        Out; only pairs that may occur are written.
    """
    tiers = pieces.cost.shape[1]
    slope = np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        count, order, cost = pieces.rivals[q], pieces.order[q], pieces.cost[q]
        for rank in range(count):
            if pieces.before[q, rank] > TAIL:
                break
            s = order[rank]
            sums = upto[q, rank, : count * PANELS + 1]
            for i in range(shares.size):
                goal = shares[i] * sums[-1]
                at = min(max(np.searchsorted(sums, goal, side="right") - 1, 0), sums.size - 2)
                k = at // PANELS
                base = panel_edge(at - k * PANELS)
                low, high = base, panel_edge(at - k * PANELS + 1)
                low_gap, high_gap = sums[at] - goal, sums[at + 1] - goal
                x = low
                side = 0
                for _ in range(60):
                    if high - low <= 4e-16 * high or low_gap >= 0.0 or high_gap <= 0.0:
                        break
                    x = (low * high_gap - high * low_gap) / (high_gap - low_gap)
                    if not (low < x < high):
                        x = 0.5 * (low + high)
                    gap = sums[at] - goal
                    gap += _part_of_panel(pieces, q, rank, k, base, x, slope, plain, faded)
                    if abs(gap) <= 1e-16 * goal:
                        break
                    # Illinois: halve the stale end's value, or the root creeps in from one side.
                    if gap < 0.0:
                        low, low_gap = x, gap
                        if side == 1:
                            high_gap *= 0.5
                        side = 1
                    else:
                        high, high_gap = x, gap
                        if side == -1:
                            low_gap *= 0.5
                        side = -1
                offset = cost[order[k]] - cost[s]
                result[i, s, q] = offset + pieces.length[q, k] * x**pieces.stretch
