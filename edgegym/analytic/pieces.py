"""Pieces of all types' costs, and integrals of the winning density over them (compiled).

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

PANELS = 6
_NODES = 16
_FEW_NODES = 6
# The few nodes do for parts up to this times the root of x, about a tenth of a panel.
_SHORT = 0.04
TAIL = 40.0


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
    slope = np.empty(tiers)
    for q in range(pieces.cost.shape[0]):
        cost, density, order = pieces.cost[q], pieces.density[q], pieces.order[q]
        count = sorted_tiers(cost, density, order)
        pieces.rivals[q] = count
        for k in range(count):
            start = cost[order[k]]
            gap = cost[order[k + 1]] - start if k + 1 < count else np.inf
            before = means(start, 0.0, k + 1, order, cost, density, pieces.xi, pieces.power, slope)
            length = 0.0
            if before < 2.0 * TAIL:
                length = tail_length(
                    start,
                    before + TAIL,
                    k + 1,
                    order,
                    cost,
                    density,
                    pieces.xi,
                    pieces.power,
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
def panel_edge(panel):
    """Return the x at which a panel begins."""
    return (panel / PANELS) ** 2


@kernel
def integrate_part(pieces, q, k, x_from, x_to, shift, first, decay, slope, plain, faded):
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
    slope : float64 [S]
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
    before = means(start, first_step, k + 1, order, cost, density, xi, power, slope)
    after = means(start, last_step, k + 1, order, cost, density, xi, power, slope)
    found = 0.0
    for rank in range(first, k + 1):
        plain[rank] = 0.0
        faded[rank] = 0.0
    for n in range(points.size):
        x = x_from + width * points[n]
        share = math.exp((stretch - 1.0) * math.log(x))
        step = length * share * x
        total = means(start, step, k + 1, order, cost, density, xi, power, slope)
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
    slope = np.empty(tiers)
    plain, faded = np.empty(tiers), np.empty(tiers)
    upto[:, :, :] = 0.0
    for q in range(pieces.cost.shape[0]):
        for k in range(pieces.rivals[q]):
            shift = min(pieces.before[q, k], 2.0 * TAIL)
            for p in range(PANELS):
                at = k * PANELS + p
                plain[: k + 1] = 0.0
                if pieces.length[q, k] > 0.0:
                    integrate_part(
                        pieces,
                        q,
                        k,
                        panel_edge(p),
                        panel_edge(p + 1),
                        shift,
                        0,
                        0.0,
                        slope,
                        plain,
                        faded,
                    )
                for rank in range(k + 1):
                    seen = math.exp(pieces.before[q, rank] - shift)
                    upto[q, rank, at + 1] = upto[q, rank, at] + seen * plain[rank]


def all_panel_sums(pieces: Pieces) -> FloatArray:
    """Return :func:`panel_sums` of these pieces, ``[Q, S, S * panels + 1]``."""
    types, tiers = pieces.cost.shape
    upto = np.empty((types, tiers, tiers * PANELS + 1))
    panel_sums(pieces, upto)
    return upto
