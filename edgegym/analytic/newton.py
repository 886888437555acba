"""Newton's iteration for the load-association fixed point (compiled)."""

import numpy as np

from edgegym.analytic.tier_map import (
    evaluate_map,
    from_wait,
    map_gap,
    tier_loads,
    to_wait,
    wait_slope,
)
from edgegym.jit import kernel

OVERLOAD_TOLERANCE = 1e-5
_HALVINGS = 6

CONVERGED = 0
OVERLOADED = 1
FAILED = 2


@kernel
def _solve_in_place(matrix, vector):
    """Solve a small linear system by elimination with pivoting; return False if it is singular."""
    size = vector.size
    for k in range(size):
        best = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if not abs(matrix[best, k]) > 1e-300:
            return False
        if best != k:
            for j in range(k, size):
                matrix[k, j], matrix[best, j] = matrix[best, j], matrix[k, j]
            vector[k], vector[best] = vector[best], vector[k]
        for i in range(k + 1, size):
            factor = matrix[i, k] / matrix[k, k]
            if factor != 0.0:
                for j in range(k, size):
                    matrix[i, j] -= factor * matrix[k, j]
                vector[i] -= factor * vector[k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            vector[k] -= matrix[k, j] * vector[j]
        vector[k] /= matrix[k, k]
    return True


@kernel
def _solved(gap, jacobian, direction):
    """Fill Newton's direction, changing the Jacobian; return False if there is none."""
    for s in range(gap.size):
        direction[s] = -gap[s]
    if not _solve_in_place(jacobian, direction):
        return False
    total = 0.0
    for s in range(gap.size):
        total += direction[s]
    return np.isfinite(total)


@kernel
def _copy(source, target):
    """Copy a vector: a loop compiles much faster than the assignment of a slice."""
    for s in range(source.size):
        target[s] = source[s]


@kernel
def _stepped(wait, step, unit, knee):
    """Return the wait after a Newton step, made in y instead where it would fall to 0 or below.

    Only differences of waits move requests, so a common rise of all waits must stay one: steps are
    made in the wait where they can be.
    """
    if wait + step >= 0.1 * wait:
        return wait + step
    y = from_wait(wait, unit, knee)
    return to_wait(max(y + step / wait_slope(y, unit, knee), 0.0), unit, knee)


@kernel
def newton_step(tiers, wait, gap, jacobian, moved):
    """Fill `moved` with the waits after a full Newton step; leave it if there is none."""
    direction = np.empty(gap.size)
    if not _solved(gap, jacobian, direction):
        return
    for s in range(wait.size):
        moved[s] = _stepped(wait[s], direction[s], tiers.unit[s], tiers.knee[s])


@kernel
def newton(tiers, wait, points, weights, tolerance, floor, steps):
    """Newton's iteration with a halving line search (in place).

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In: start. Out: best point found.
    points, weights : float64 [n]
    tolerance : float
        Residual to accept; iterations go on below it while they still gain much.
    floor : float
        Residual at which to stop.
    steps : int
        Most iterations.

    Returns
    -------
    status, residual, used
        ``CONVERGED``, ``OVERLOADED`` or ``FAILED``; residual on the true map; iterations made.
    """
    count = wait.size
    gap = np.empty(count)
    direction = np.empty(count)
    jacobian = np.empty((count, count))
    base = wait.copy()
    length = 0.0
    halvings = 0
    size, residual = np.inf, np.inf
    used = 0
    trial = wait.copy()
    # One call site for the map: it holds most of the machine code.
    while True:
        trial_size, trial_residual = evaluate_map(tiers, trial, points, weights, gap, jacobian)
        polishing = residual <= tolerance
        if polishing:
            accepted = trial_residual < 0.5 * residual
        else:
            accepted = trial_size < (1.0 - 0.1 * length) * size or trial_residual <= tolerance
        if accepted:
            _copy(trial, base)
            size, residual = trial_size, trial_residual
            overloaded = residual == np.inf and size <= OVERLOAD_TOLERANCE
            if used == steps or residual <= floor or overloaded:
                break
            if not _solved(gap, jacobian, direction):
                break
            used += 1
            length = 1.0
            halvings = 0
        else:
            if polishing or halvings == _HALVINGS:
                break
            length *= 0.5
            halvings += 1
        for s in range(count):
            trial[s] = _stepped(base[s], length * direction[s], tiers.unit[s], tiers.knee[s])
    _copy(base, wait)
    if residual <= tolerance:
        return CONVERGED, residual, used
    if residual == np.inf and size <= OVERLOAD_TOLERANCE:
        return OVERLOADED, residual, used
    return FAILED, residual, used


@kernel
def polish(tiers, wait, points, weights, slope_points, slope_weights, tolerance, steps):
    """Newton's iteration from close by, with slopes by a cheaper quadrature rule (in place).

    Slopes to three digits cost a digit or two per step at most, and most of the work is theirs.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In: start. Out: best point found.
    points, weights, slope_points, slope_weights : float64 [n]
        Quadrature rules for the map and for its slopes.
    tolerance : float
        Residual to accept; iterations go on below it while they still gain much.
    steps : int
        Most iterations.

    Returns
    -------
    residual, used
        Residual on the true map; iterations made. Above the tolerance where a step gained little.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    gap = np.empty(count)
    rough_gap = np.empty(count)
    jacobian = np.empty((count, count))
    trial = wait.copy()
    residual = np.inf
    used = 0
    empty = np.empty((0, 0))
    while True:
        tier_loads(tiers, trial, points, weights, rate, load, empty, empty)
        trial_residual = map_gap(tiers, trial, rate, load, gap)[1]
        if not trial_residual < 0.3 * residual:
            break
        residual = trial_residual
        _copy(trial, wait)
        if residual <= 1e-14 or used == steps:
            break
        evaluate_map(tiers, wait, slope_points, slope_weights, rough_gap, jacobian)
        newton_step(tiers, wait, gap, jacobian, trial)
        used += 1
    return residual, used
