"""Solvers for the load-association fixed point (compiled): rising sweeps, Newton, damping."""

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.tier_map import (
    Tiers,
    evaluate_map,
    from_wait,
    induced_wait,
    response,
    tier_loads,
    to_wait,
    wait_slope,
)
from edgegym.jit import kernel

FloatArray = NDArray[np.float64]
Rule = tuple[FloatArray, FloatArray]

_OVERLOAD_TOLERANCE = 1e-5
# In an overloaded network, a tier whose wait is above this share of its knee counts as unstable.
_SATURATED_SHARE = 0.1
# From this y on a tier counts as one with a queue.
_QUEUED = 1e-3
# Rounds that end near the knee or beyond before the load is called too high.
_OVERLOAD_ROUNDS = 6
_COARSE_ROUNDS = 4
_ADOPTING_ROUNDS = 24
_HALVINGS = 6

CONVERGED = 0
OVERLOADED = 1
FAILED = 2


@kernel
def _gap(tiers, y, s, points, weights, wait, rate, load):
    """Return y - P of tier `s`."""
    empty = np.empty((0, 0))
    wait[s] = to_wait(y, tiers.unit[s], tiers.knee[s])
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    return y - response(tiers, s, rate[s], load[s])[0]


@kernel
def sweep(tiers, wait, points, weights, tolerance):
    """Solve y_s = P_s for one tier after the other, the others held (in place, one pass).

    P mostly falls in the tier's own wait, so that each root lies between the present y and its P.
    From no wait the passes rise towards the smallest equilibrium.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In and out.
    points, weights : float64 [n]
        Quadrature rule.
    tolerance : float
        Relative to ``1 - y``.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    for s in range(count):
        low = from_wait(wait[s], tiers.unit[s], tiers.knee[s])
        low_gap = _gap(tiers, low, s, points, weights, wait, rate, load)
        if low_gap > 0.0:
            high, high_gap = low, low_gap
            low = 0.0
            low_gap = _gap(tiers, low, s, points, weights, wait, rate, load)
        else:
            # P mostly falls, so the root is at most the present P; but types that are slow to leave
            # can raise the mean occupancy and P with it.
            high, high_gap = low, low_gap
            for _ in range(20):
                if high_gap >= 0.0:
                    break
                low, low_gap = high, high_gap
                high = low - low_gap
                high_gap = _gap(tiers, high, s, points, weights, wait, rate, load)
        side = 0
        for _ in range(60):
            if high - low <= tolerance * max(1.0 - low, 1e-9) or low_gap >= 0.0 or high_gap <= 0.0:
                break
            middle = (low * high_gap - high * low_gap) / (high_gap - low_gap)
            if not (low < middle < high):
                middle = 0.5 * (low + high)
            gap = _gap(tiers, middle, s, points, weights, wait, rate, load)
            # Illinois: halve the stale end's value, or the root creeps in from one side.
            if gap <= 0.0:
                low, low_gap = middle, gap
                if side == 1:
                    high_gap *= 0.5
                side = 1
            else:
                high, high_gap = middle, gap
                if side == -1:
                    low_gap *= 0.5
                side = -1
            if abs(gap) <= 0.1 * tolerance * max(1.0 - middle, 1e-9):
                low = middle
                break
        wait[s] = to_wait(low, tiers.unit[s], tiers.knee[s])


@kernel
def _level_gap(tiers, wait, rise, points, weights, trial):
    """Raise the waits of all queues by `rise`; return their sum of y - P, by capacity."""
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    empty = np.empty((0, 0))
    for s in range(count):
        queued = from_wait(wait[s], tiers.unit[s], tiers.knee[s]) > _QUEUED
        trial[s] = wait[s] + rise if queued else wait[s]
    tier_loads(tiers, trial, points, weights, rate, load, empty, empty)
    total = 0.0
    for s in range(count):
        if from_wait(wait[s], tiers.unit[s], tiers.knee[s]) > _QUEUED:
            y = from_wait(trial[s], tiers.unit[s], tiers.knee[s])
            gap = y - response(tiers, s, rate[s], load[s])[0]
            total += tiers.density[s] * tiers.slots[s] * gap
    return total


@kernel
def level(tiers, wait, points, weights):
    """Raise the waits of all queued tiers together until they answer with them on average.

    Requests hardly tell tiers of nearly equal cost apart: sweeps then raise them past each other by
    small steps for very long, while the common level of their waits is one scalar root away.

    Returns
    -------
    bool
        Whether there is such a level short of overload.
    """
    count = wait.size
    trial = np.empty(count)
    low, high = 0.0, tiers.unit.max()
    if _level_gap(tiers, wait, 0.0, points, weights, trial) >= 0.0:
        return True
    for _ in range(60):
        if _level_gap(tiers, wait, high, points, weights, trial) >= 0.0:
            break
        low = high
        high *= 2.0
    for _ in range(20):
        middle = 0.5 * (low + high)
        if high - low <= 1e-3 * high:
            break
        if _level_gap(tiers, wait, middle, points, weights, trial) < 0.0:
            low = middle
        else:
            high = middle
    within = True
    for s in range(count):
        if from_wait(wait[s], tiers.unit[s], tiers.knee[s]) > _QUEUED:
            wait[s] += low
            within = within and wait[s] < tiers.unit[s] * tiers.knee[s]
    return within


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
    direction = -gap
    if not _solve_in_place(jacobian, direction) or not np.isfinite(direction.sum()):
        return
    for s in range(wait.size):
        moved[s] = _stepped(wait[s], direction[s], tiers.unit[s], tiers.knee[s])


@kernel
def newton(tiers, wait, points, weights, tolerance, steps):
    """Newton's iteration with a halving line search (in place).

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In: start. Out: best point found.
    points, weights : float64 [n]
    tolerance : float
        Residual to accept; iterations go on below it while they still gain much.
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
            base[:] = trial
            size, residual = trial_size, trial_residual
            overloaded = residual == np.inf and size <= _OVERLOAD_TOLERANCE
            if used == steps or residual <= 1e-14 or overloaded:
                break
            direction[:] = -gap
            if not _solve_in_place(jacobian, direction) or not np.isfinite(direction.sum()):
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
    wait[:] = base
    if residual <= tolerance:
        return CONVERGED, residual, used
    if residual == np.inf and size <= _OVERLOAD_TOLERANCE:
        return OVERLOADED, residual, used
    return FAILED, residual, used


def solve(
    tiers: Tiers,
    wait: FloatArray,
    *,
    warm: bool,
    coarse: Rule,
    fine: Rule,
    tolerance: float,
    rounds: int,
) -> tuple[int, int]:
    """Solve the fixed point: Newton from a warm start, else rising sweeps, each polished by Newton.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In: start if `warm`. Out: the solution.
    warm : bool
        Whether to try Newton from `wait` first.
    coarse, fine : (points, weights)
        Cheap quadrature rule for the first sweeps, and that which the solution is verified on.
    tolerance : float
        Residual to reach.
    rounds : int
        Most rounds of sweeps.

    Returns
    -------
    status, iterations
        ``CONVERGED``, ``OVERLOADED`` or ``FAILED``; sweeps and Newton steps made.
    """
    trial = wait.copy()
    iterations = 0
    hopeless = 0
    status, residual = FAILED, np.inf
    for turn in range(0 if warm else 1, rounds + 1):
        if turn == 1:
            wait[:] = 0.0
        if turn > 0:
            late = turn > _COARSE_ROUNDS
            sweep(
                tiers,
                wait,
                *(fine if late else coarse),
                max(1e-3 * 0.5**turn, 1e-12) if late else 1e-2,
            )
            iterations += 1
            if turn > 1:
                within = level(tiers, wait, *coarse)
                hopeless += not within or saturated(tiers, wait).any()
        trial[:] = wait
        status, residual, used = newton(tiers, trial, *fine, tolerance, 12 + turn)
        iterations += used
        if status == CONVERGED or (status == OVERLOADED and turn > 0):
            break
        if hopeless == _OVERLOAD_ROUNDS:
            break
        # Newton never leaves a larger gap than it found, so its end can save many sweeps; but
        # taking it every time may cycle, and the sweeps alone cannot.
        if turn == rounds or (turn % 3 == 1 and turn <= _ADOPTING_ROUNDS):
            wait[:] = trial
    if status == FAILED and hopeless > 0 and residual == np.inf:
        status = OVERLOADED
    wait[:] = trial
    return status, iterations


def saturated(tiers, wait):
    """Return which tiers of an overloaded network ``[S]`` are at the brink or beyond."""
    return wait > _SATURATED_SHARE * tiers.knee * tiers.unit


@kernel
def damped(tiers, wait, points, weights, damping, tolerance, steps):
    """Iterate W <- (1 - damping) W + damping * induced W [33] in place; return the steps made.

    Beyond saturation the induced wait is the finite continuation of the module's text.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    induced = np.empty(count)
    empty = np.empty((0, 0))
    for step in range(steps):
        tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
        residual = 0.0
        for s in range(count):
            induced[s] = induced_wait(tiers, s, rate[s], load[s])
            if induced[s] == np.inf:
                y = response(tiers, s, rate[s], load[s])[0]
                induced[s] = to_wait(y, tiers.unit[s], tiers.knee[s])
            residual = max(residual, abs(wait[s] - induced[s]) / (1.0 + wait[s]))
        if residual <= tolerance:
            return step
        for s in range(count):
            wait[s] += damping * (induced[s] - wait[s])
    return steps
