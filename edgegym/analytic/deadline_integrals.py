"""Who is served in time, for many deadlines in one pass over the pieces (compiled)."""

import math

import numpy as np

from edgegym.analytic.pieces import PANELS, TAIL, integrate_part, panel_edge
from edgegym.jit import kernel


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
    slope = np.empty(tiers)
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
        if pieces.before[q, k] > TAIL:
            break
        if length <= 0.0:
            continue
        late *= math.exp(-decay * max(cost[order[k]] - (base + position), 0.0))
        base, position = cost[order[k]], 0.0
        x = 0.0
        panel = 0
        while panel < PANELS and i < limits.size:
            edge = panel_edge(panel + 1)
            stop, x_to = _next_stop(position, limits[i], base, length, edge, pieces.stretch, decay)
            if x_to > x:
                integrate_part(pieces, q, k, x, x_to, 0.0, rank, decay, slope, plain, faded)
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
