"""Integrals of the winning tier's density up to a given cost (compiled).

As in :mod:`edgegym.analytic.quadrature` a request type's costs are cut into pieces that begin at
the tiers' own costs. Within a piece, ``cost = start + length * x ** stretch`` takes x from 0 to 1,
in which the density is smooth; it is integrated over panels, narrow ones near 0 where tiers of
nearly equal cost part, or over a part of one. Tiers go by their rank in the order of cost: in piece
k those of ranks 0 to k compete.
"""

import math
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.quadrature import means, sorted_tiers, tail_length
from edgegym.jit import kernel

FloatArray = NDArray[np.float64]

_PANELS = 6
_NODES = 16
_FEW_NODES = 6
# The few nodes do for parts up to this times the root of x, about a tenth of a panel.
_SHORT = 0.04
_TAIL = 40.0


class Pieces(NamedTuple):
    """The pieces of all types, type first.

    Attributes
    ----------
    cost : float64 [Q, S]
        Prefill plus advertised wait; infinite where a tier may not serve a type.
    density : float64 [Q, S]
        Nodes per km² of the tiers, as the type sees them.
    xi, power, stretch : float
        Radio coefficient, ``2 / alpha``, and the exponent of x.
    points, weights, few_points, few_weights : float64 [n]
        Gauss-Legendre rules on [0, 1], for panels and for short parts of them.
    rivals : int64 [Q]
        Number of tiers that exist and may serve the type.
    order : int64 [Q, S]
        Those tiers by increasing cost.
    length, before : float64 [Q, S]
        Length of each piece, cut where the rest has a relative probability below rounding, and the
        sum of m_t at its start.
    """

    cost: FloatArray
    density: FloatArray
    xi: float
    power: float
    stretch: float
    points: FloatArray
    weights: FloatArray
    few_points: FloatArray
    few_weights: FloatArray
    rivals: NDArray[np.int64]
    order: NDArray[np.int64]
    length: FloatArray
    before: FloatArray


@cache
def _gauss(nodes: int) -> tuple[FloatArray, FloatArray]:
    x, w = np.polynomial.legendre.leggauss(nodes)
    return (x + 1.0) / 2.0, w / 2.0


@kernel
def _fill_pieces(pieces):
    tiers = pieces.cost.shape[1]
    mean = np.empty(tiers)
    slope = np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        cost, density, order = pieces.cost[q], pieces.density[q], pieces.order[q]
        count = sorted_tiers(cost, density, order)
        pieces.rivals[q] = count
        for k in range(count):
            start = cost[order[k]]
            gap = cost[order[k + 1]] - start if k + 1 < count else np.inf
            before = means(
                start, 0.0, k + 1, order, cost, density, pieces.xi, pieces.power, mean, slope
            )
            length = 0.0
            if before < 2.0 * _TAIL:
                length = tail_length(
                    start,
                    before + _TAIL,
                    k + 1,
                    order,
                    cost,
                    density,
                    pieces.xi,
                    pieces.power,
                    mean,
                    slope,
                )
            pieces.before[q, k] = before
            pieces.length[q, k] = min(gap, length)


def build_pieces(cost: FloatArray, density: FloatArray, xi: float, alpha: float) -> Pieces:
    """Return the pieces of types with these costs and tier densities, both float64 ``[Q, S]``."""
    pieces = Pieces(
        cost,
        density,
        xi,
        2.0 / alpha,
        2.0 * max(2.0, alpha),
        *_gauss(_NODES),
        *_gauss(_FEW_NODES),
        rivals=np.empty(len(cost), np.int64),
        order=np.empty(cost.shape, np.int64),
        length=np.empty(cost.shape),
        before=np.empty(cost.shape),
    )
    _fill_pieces(pieces)
    return pieces


@kernel
def _edge(panel):
    """Return the x at which a panel begins."""
    return (panel / _PANELS) ** 2


@kernel
def _segment(pieces, q, k, x_from, x_to, shift, first, decay, mean, slope, plain, faded):
    """Integrate the densities of ranks `first` to k over a part of piece k.

    Parameters
    ----------
    pieces, q, k
        Which piece of which type.
    x_from, x_to : float
        The part.
    shift : float
        The densities are multiplied by ``exp(shift)``.
    first : int
    decay : float
    mean, slope : float64 [S]
        Scratch.
    plain, faded : float64 [S]
        Out, by rank: the integral, and that of the density times ``exp(-decay * distance)`` with
        the distance in cost to the part's upper end.
    """
    order, cost, density = pieces.order[q], pieces.cost[q], pieces.density[q]
    xi, power = pieces.xi, pieces.power
    start = cost[order[k]]
    length, stretch = pieces.length[q, k], pieces.stretch
    width = x_to - x_from
    first_step, last_step = length * x_from**stretch, length * x_to**stretch
    few = width < _SHORT * math.sqrt(x_to) and decay * (last_step - first_step) < 1.0
    points = pieces.few_points if few else pieces.points
    weights = pieces.few_weights if few else pieces.weights
    before = means(start, first_step, k + 1, order, cost, density, xi, power, mean, slope)
    after = means(start, last_step, k + 1, order, cost, density, xi, power, mean, slope)
    found = 0.0
    for rank in range(first, k + 1):
        plain[rank] = 0.0
        faded[rank] = 0.0
    for n in range(points.size):
        x = x_from + width * points[n]
        share = math.exp((stretch - 1.0) * math.log(x))
        step = length * share * x
        total = means(start, step, k + 1, order, cost, density, xi, power, mean, slope)
        weight = weights[n] * width * length * stretch * share * math.exp(shift - total)
        fade = math.exp(-decay * (last_step - step))
        for rank in range(k + 1):
            won = weight * slope[rank]
            found += won
            if rank >= first:
                plain[rank] += won
                faded[rank] += won * fade
    # The probability that some tier wins here is known exactly.
    mass = -math.exp(shift - before) * math.expm1(before - after)
    scale = mass / found if found > 0.0 else 0.0
    for rank in range(first, k + 1):
        plain[rank] *= scale
        faded[rank] *= scale


@kernel
def panel_sums(pieces, upto):
    """Fill the integrals of every type's and rank's density up to the end of each panel.

    Parameters
    ----------
    pieces : Pieces
    upto : float64 [Q, S, S * panels + 1]
        Out: entry ``k * panels + p`` belongs to the start of panel p of piece k. Relative to
        the probability that nothing cheaper than the tier's own cost wins, so that rare tiers are
        as accurate as common ones.
    """
    tiers = pieces.cost.shape[1]
    mean, slope = np.empty(tiers), np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    upto[:, :, :] = 0.0
    for q in range(pieces.cost.shape[0]):
        for k in range(pieces.rivals[q]):
            shift = min(pieces.before[q, k], 2.0 * _TAIL)
            for p in range(_PANELS):
                at = k * _PANELS + p
                plain[: k + 1] = 0.0
                if pieces.length[q, k] > 0.0:
                    _segment(
                        pieces,
                        q,
                        k,
                        _edge(p),
                        _edge(p + 1),
                        shift,
                        0,
                        0.0,
                        mean,
                        slope,
                        plain,
                        faded,
                    )
                for rank in range(k + 1):
                    seen = math.exp(pieces.before[q, rank] - shift)
                    upto[q, rank, at + 1] = upto[q, rank, at] + seen * plain[rank]


@kernel
def _part_of_panel(pieces, q, rank, k, x_from, x_to, mean, slope, plain, faded):
    """Return what a part of a panel adds to the sums of :func:`panel_sums`."""
    shift = pieces.before[q, k]
    _segment(pieces, q, k, x_from, x_to, shift, rank, 0.0, mean, slope, plain, faded)
    return math.exp(pieces.before[q, rank] - shift) * plain[rank]


@kernel
def cumulative_shares(pieces, upto, steps, result):
    """Fill the probability that radio costs at most so much, given type and tier.

    Parameters
    ----------
    pieces : Pieces
    upto : float64 [Q, S, S * panels + 1]
        From :func:`panel_sums`.
    steps : float64 [R]
        Radio costs in seconds.
    result : float64 [R, S, Q]
        Out; only pairs that may occur are written.
    """
    tiers = pieces.cost.shape[1]
    mean, slope = np.empty(tiers), np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        count, order, cost = pieces.rivals[q], pieces.order[q], pieces.cost[q]
        for rank in range(count):
            if pieces.before[q, rank] > _TAIL:
                break
            s = order[rank]
            total = upto[q, rank, count * _PANELS]
            for i in range(steps.size):
                k = rank
                while k + 1 < count and cost[order[k + 1]] - cost[s] <= steps[i]:
                    k += 1
                beyond = steps[i] - (cost[order[k]] - cost[s])
                if beyond >= pieces.length[q, k]:
                    value = upto[q, rank, (k + 1) * _PANELS]
                else:
                    x = (beyond / pieces.length[q, k]) ** (1.0 / pieces.stretch)
                    p = min(int(math.sqrt(x) * _PANELS), _PANELS - 1)
                    at = k * _PANELS + p
                    value = upto[q, rank, at]
                    if x > _edge(p):
                        value += _part_of_panel(
                            pieces, q, rank, k, _edge(p), x, mean, slope, plain, faded
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
    mean, slope = np.empty(tiers), np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        count, order, cost = pieces.rivals[q], pieces.order[q], pieces.cost[q]
        for rank in range(count):
            if pieces.before[q, rank] > _TAIL:
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
                    mean,
                    slope,
                )
                left = math.exp(pieces.before[q, rank] - total)
                result[i, s, q] = left / upto[q, rank, count * _PANELS]


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
    mean, slope = np.empty(tiers), np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        count, order, cost = pieces.rivals[q], pieces.order[q], pieces.cost[q]
        for rank in range(count):
            if pieces.before[q, rank] > _TAIL:
                break
            s = order[rank]
            sums = upto[q, rank, : count * _PANELS + 1]
            for i in range(shares.size):
                goal = shares[i] * sums[-1]
                at = min(max(np.searchsorted(sums, goal, side="right") - 1, 0), sums.size - 2)
                k = at // _PANELS
                base = _edge(at - k * _PANELS)
                low, high = base, _edge(at - k * _PANELS + 1)
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
                    gap += _part_of_panel(pieces, q, rank, k, base, x, mean, slope, plain, faded)
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


@kernel
def _next_stop(position, limit, base, length, edge_x, stretch, decay):
    """Return how far to integrate next, in cost beyond `base`, and its x.

    To the next limit or the panel's end, but in short steps before a limit where the wait's tail is
    steep: what lies far before it hardly counts there.
    """
    stop = length * edge_x**stretch
    x = edge_x
    if limit - base < stop:
        stop = max(limit - base, position)
        x = min((stop / length) ** (1.0 / stretch), edge_x)
    fall = decay * (stop - position)
    if fall > 10.0:
        stop -= (32.0 if fall > 40.0 else 8.0) / decay
        x = (stop / length) ** (1.0 / stretch)
    return stop, x


@kernel
def fitting_by_limit(pieces, q, rank, limits, delay, decay, result):
    """Fill the probability that the tier wins and its wait fits, for many limits at once.

    Parameters
    ----------
    pieces, q, rank
        Which tier of which type.
    limits : float64 [T]
        Increasing costs up to which there is time left.
    delay, decay : float
        The wait exceeds w with probability ``delay * exp(-decay * w)``.
    result : float64 [T]
        Out.
    """
    tiers = pieces.cost.shape[1]
    mean, slope = np.empty(tiers), np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    order, cost = pieces.order[q], pieces.cost[q]
    own = cost[order[rank]]
    i = 0
    while i < limits.size and limits[i] <= own:
        result[i] = 0.0
        i += 1
    # Won so far, and won so far times the chance of a wait beyond what is left at `position`.
    won, late = 0.0, 0.0
    base, position = own, 0.0
    for k in range(rank, pieces.rivals[q]):
        length = pieces.length[q, k]
        if pieces.before[q, k] > _TAIL:
            break
        if length <= 0.0:
            continue
        late *= math.exp(-decay * max(cost[order[k]] - (base + position), 0.0))
        base, position = cost[order[k]], 0.0
        x = 0.0
        panel = 0
        while panel < _PANELS and i < limits.size:
            edge = _edge(panel + 1)
            stop, x_to = _next_stop(position, limits[i], base, length, edge, pieces.stretch, decay)
            if x_to > x:
                _segment(pieces, q, k, x, x_to, 0.0, rank, decay, mean, slope, plain, faded)
                won += plain[rank]
                late = late * math.exp(-decay * (stop - position)) + faded[rank]
            x, position = max(x, x_to), stop
            while i < limits.size and limits[i] - base <= position:
                result[i] = max(won - delay * late, 0.0)
                i += 1
            if x >= edge:
                panel += 1
    while i < limits.size:
        left = limits[i] - (base + position)
        result[i] = max(won - delay * late * math.exp(-decay * left), 0.0)
        i += 1


def all_panel_sums(pieces: Pieces) -> FloatArray:
    """Return :func:`panel_sums` of these pieces, ``[Q, S, S * panels + 1]``."""
    types, tiers = pieces.cost.shape
    upto = np.empty((types, tiers, tiers * _PANELS + 1))
    panel_sums(pieces, upto)
    return upto
