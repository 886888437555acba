"""The load-association fixed point, compiled.

Unknown is one number y per tier with y = 0 for no wait and y -> 1 as the wait grows without bound:

    W(y) = unit * y / (1 - y),    unit = mean occupancy / slots.

A tier with load a that induces the wait W answers with P = W / (W + unit). For one slot and one type
P is the utilisation; in general it is between 0 and 1, with slope 1 in the utilisation at saturation
for any number of slots. So the equation y = P(y) is well scaled from empty tiers to the brink of
overload, and continues beyond it: P goes on along its tangent and W along a straight line. A solution
there is no equilibrium; it says which tiers are overloaded.
"""

from typing import NamedTuple

import numpy as np

from edgegym.analytic.quadrature import law
from edgegym.analytic.queueing import delay_probability
from edgegym.jit import kernel

# Beyond this y the wait is 1e5 times the unit: far past any stable tier of interest, and near the
# limit of what rounding leaves of the differences between waits.
_KNEE = 1.0 - 1e-5
_OVERLOAD_TOLERANCE = 1e-5
# In an overloaded network, waits from here on count as unstable: continued waits are about 1e5 units.
_SATURATED_UNITS = 1e4
# From this y on a tier counts as one with a queue.
_QUEUED = 1e-3
# Rounds that end beyond the knee before the load is called too high.
_OVERLOAD_ROUNDS = 4
_COARSE_ROUNDS = 4
_HALVINGS = 6

CONVERGED = 0
OVERLOADED = 1
FAILED = 2


class Tiers(NamedTuple):
    """Arrays of the tiers that exist and of the types that occur, type first (``[Q, S]``).

    Attributes
    ----------
    prefill, occupancy : float64 [Q, S]
        Seconds; prefill infinite where the tier may not serve the type.
    shares : float64 [Q]
        Type probabilities.
    density : float64 [S]
        Nodes per km², greater than 0.
    slots : int64 [S]
        Concurrency.
    unit : float64 [S]
        Scale of the waits, mean occupancy over slots, in seconds.
    intensity, xi, power, wait_scale : float
        Requests/s/km², radio coefficient, ``2 / alpha``, ``(1 + scv) / 2``.
    """

    prefill: np.ndarray
    occupancy: np.ndarray
    shares: np.ndarray
    density: np.ndarray
    slots: np.ndarray
    unit: np.ndarray
    intensity: float
    xi: float
    power: float
    wait_scale: float


@kernel
def tier_loads(tiers, wait, points, weights, rate, load, rate_slope, load_slope):
    """Fill per-node arrival rates and offered loads of every tier at these assumed waits.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        Assumed waits in seconds.
    points, weights : float64 [n]
        Quadrature rule.
    rate, load : float64 [S]
        Out: requests/s per node [14], and the sum of rate times occupancy.
    rate_slope, load_slope : float64 [S, S] or [0, 0]
        Out, unless empty: derivatives in the waits.
    """
    count = wait.size
    share = np.empty(count)
    cost = np.empty(count)
    with_slope = rate_slope.size > 0
    cross = np.empty((count, count) if with_slope else (0, 0))
    rate[:] = 0.0
    load[:] = 0.0
    rate_slope[:, :] = 0.0
    load_slope[:, :] = 0.0
    for q in range(tiers.shares.size):
        for s in range(count):
            cost[s] = tiers.prefill[q, s] + wait[s]
        law(cost, tiers.density, tiers.xi, tiers.power, points, weights, share, cross)
        for s in range(count):
            per_node = tiers.intensity * tiers.shares[q] / tiers.density[s]
            rate[s] += per_node * share[s]
            load[s] += per_node * share[s] * tiers.occupancy[q, s]
            if with_slope:
                for t in range(count):
                    change = per_node * cross[s, t]
                    rate_slope[s, t] += change
                    rate_slope[s, s] -= change
                    change *= tiers.occupancy[q, s]
                    load_slope[s, t] += change
                    load_slope[s, s] -= change


@kernel
def induced_wait(tiers, s, rate, load):
    """Return the mean wait [19] of tier `s`; infinite where it is unstable, 0 where unused."""
    if rate <= 0.0:
        return 0.0
    if load >= tiers.slots[s]:
        return np.inf
    waiting = delay_probability(tiers.slots[s], load)[0]
    return tiers.wait_scale * (load / rate) * waiting / (tiers.slots[s] - load)


@kernel
def to_wait(y, unit):
    """Return the wait of y."""
    if y < _KNEE:
        return unit * y / (1.0 - y)
    return unit * (_KNEE / (1.0 - _KNEE)) * (1.0 + (y - _KNEE))


@kernel
def from_wait(wait, unit):
    """Return the y of a wait: the inverse of :func:`to_wait`."""
    knee = unit * (_KNEE / (1.0 - _KNEE))
    if wait < knee:
        return wait / (wait + unit)
    return _KNEE + (wait / knee - 1.0)


@kernel
def _wait_slope(y, unit):
    if y < _KNEE:
        return unit / ((1.0 - y) * (1.0 - y))
    return unit * (_KNEE / (1.0 - _KNEE))


@kernel
def response(tiers, s, rate, load):
    """Return P of tier `s` and its derivatives in the load and in the rate."""
    slots = tiers.slots[s]
    scale = tiers.unit[s] * slots / tiers.wait_scale
    ratio = load / (rate * scale) if rate > 0.0 else 1.0
    ratio_by_load = 1.0 / (rate * scale) if rate > 0.0 else 0.0
    ratio_by_rate = -ratio / rate if rate > 0.0 else 0.0
    utilization = load / slots
    if utilization >= 1.0:
        excess = utilization - 1.0
        by_ratio = -excess / (ratio * ratio)
        by_load = 1.0 / (slots * ratio)
        value = 1.0 + excess / ratio
    else:
        waiting, waiting_slope = delay_probability(slots, load)
        rest = 1.0 - utilization
        below = ratio * waiting + rest
        value = ratio * waiting / below
        by_load = ratio * (waiting_slope * rest + waiting / slots) / (below * below)
        by_ratio = waiting * rest / (below * below)
    return value, by_load + by_ratio * ratio_by_load, by_ratio * ratio_by_rate


@kernel
def _gap(tiers, y, s, points, weights, wait, rate, load):
    """Return y - P of tier `s`."""
    empty = np.empty((0, 0))
    wait[s] = to_wait(y, tiers.unit[s])
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    return y - response(tiers, s, rate[s], load[s])[0]


@kernel
def sweep(tiers, wait, points, weights, tolerance):
    """Solve y_s = P_s for one tier after the other, the others held (in place, one pass).

    P falls in the tier's own wait, so each root is unique and lies between the present y and its P.
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
        low = from_wait(wait[s], tiers.unit[s])
        low_gap = _gap(tiers, low, s, points, weights, wait, rate, load)
        if low_gap > 0.0:
            high, high_gap = low, low_gap
            low = 0.0
            low_gap = _gap(tiers, low, s, points, weights, wait, rate, load)
        else:
            high = low - low_gap
            high_gap = 0.0
            if high > low:
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
        wait[s] = to_wait(low, tiers.unit[s])


@kernel
def _level_gap(tiers, wait, rise, points, weights, trial):
    """Raise all queues' waits by `rise`; return the sum of y - P over them, weighted by capacity."""
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    empty = np.empty((0, 0))
    for s in range(count):
        queued = from_wait(wait[s], tiers.unit[s]) > _QUEUED
        trial[s] = wait[s] + rise if queued else wait[s]
    tier_loads(tiers, trial, points, weights, rate, load, empty, empty)
    total = 0.0
    for s in range(count):
        if from_wait(wait[s], tiers.unit[s]) > _QUEUED:
            gap = from_wait(trial[s], tiers.unit[s]) - response(tiers, s, rate[s], load[s])[0]
            total += tiers.density[s] * tiers.slots[s] * gap
    return total


@kernel
def level(tiers, wait, points, weights):
    """Raise the waits of all queued tiers together until they answer with them on average (in place).

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
        if from_wait(wait[s], tiers.unit[s]) > _QUEUED:
            wait[s] += low
            within = within and from_wait(wait[s], tiers.unit[s]) < _KNEE
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
def evaluate_map(tiers, wait, points, weights, gap, jacobian):
    """Fill y - P and its derivative in the waits; return the largest gap and the true residual.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
    points, weights : float64 [n]
    gap : float64 [S]
        Out.
    jacobian : float64 [S, S]
        Out.

    Returns
    -------
    size, residual : float
        ``max |y - P|``, and ``max |W - induced W| / (1 + W)``, infinite if a tier is unstable.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    rate_slope = np.empty((count, count))
    load_slope = np.empty((count, count))
    tier_loads(tiers, wait, points, weights, rate, load, rate_slope, load_slope)
    size = 0.0
    residual = 0.0
    for s in range(count):
        y = from_wait(wait[s], tiers.unit[s])
        value, by_load, by_rate = response(tiers, s, rate[s], load[s])
        gap[s] = y - value
        size = max(size, abs(gap[s]))
        induced = induced_wait(tiers, s, rate[s], load[s])
        residual = max(residual, abs(wait[s] - induced) / (1.0 + wait[s]))
        for t in range(count):
            jacobian[s, t] = -by_load * load_slope[s, t] - by_rate * rate_slope[s, t]
        jacobian[s, s] += 1.0 / _wait_slope(y, tiers.unit[s])
    return size, residual


@kernel
def _stepped(wait, step, unit):
    """Return the wait after a Newton step, made in y instead where it would fall to 0 or below.

    Only differences of waits move requests, so a common rise of all waits must stay one: steps are
    made in the wait where they can be.
    """
    if wait + step >= 0.1 * wait:
        return wait + step
    y = from_wait(wait, unit)
    return to_wait(max(y + step / _wait_slope(y, unit), 0.0), unit)


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
            trial[s] = _stepped(base[s], length * direction[s], tiers.unit[s])
    wait[:] = base
    if residual <= tolerance:
        return CONVERGED, residual, used
    if residual == np.inf and size <= _OVERLOAD_TOLERANCE:
        return OVERLOADED, residual, used
    return FAILED, residual, used


@kernel
def solve(tiers, wait, warm, coarse_points, coarse_weights, points, weights, tolerance, rounds):
    """Solve the fixed point: Newton from a warm start, else rising sweeps, each polished by Newton.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        In: start if `warm`. Out: the solution.
    warm : bool
        Whether to try Newton from `wait` first.
    coarse_points, coarse_weights : float64 [m]
        Cheap quadrature rule for the first sweeps.
    points, weights : float64 [n]
        The rule that the solution is verified on.
    tolerance : float
        Residual to reach.
    rounds : int
        Most rounds of sweeps.

    Returns
    -------
    status, residual, iterations
        As :func:`newton`; iterations count sweeps and Newton steps.
    """
    trial = wait.copy()
    iterations = 0
    hopeless = 0
    status = FAILED
    residual = np.inf
    for turn in range(0 if warm else 1, rounds + 1):
        if turn == 1:
            wait[:] = 0.0
        if turn > 0:
            fine = turn > _COARSE_ROUNDS
            goal = max(1e-3 * 0.5**turn, 1e-12) if fine else 1e-2
            sweep(
                tiers,
                wait,
                points if fine else coarse_points,
                weights if fine else coarse_weights,
                goal,
            )
            iterations += 1
            if turn > 1 and not level(tiers, wait, coarse_points, coarse_weights):
                hopeless += 1
        trial[:] = wait
        status, residual, used = newton(tiers, trial, points, weights, tolerance, 12 + turn)
        iterations += used
        done = status == CONVERGED or (status == OVERLOADED and turn > 0)
        if done or hopeless == _OVERLOAD_ROUNDS or turn == rounds:
            break
        # Newton never leaves a larger gap than it found, so its end is mostly the better start for
        # the next sweep; now and then the sweeps go on from their own, which cannot cycle.
        if turn % 4 != 0:
            wait[:] = trial
    if status == FAILED and hopeless > 0 and residual == np.inf:
        status = OVERLOADED
    wait[:] = trial
    return status, residual, iterations


@kernel
def any_saturated(wait, unit):
    """Return whether a wait is one of the finite continuation beyond saturation."""
    for s in range(wait.size):
        if wait[s] > unit[s] * _SATURATED_UNITS:
            return True
    return False


@kernel
def newton_step(tiers, wait, gap, jacobian, moved):
    """Fill `moved` with the waits after a full Newton step; return False if there is none."""
    direction = -gap
    if not _solve_in_place(jacobian, direction) or not np.isfinite(direction.sum()):
        return False
    for s in range(wait.size):
        moved[s] = _stepped(wait[s], direction[s], tiers.unit[s])
    return True


def saturated(wait, unit):
    """Return which tiers are at the brink or beyond, by their wait in an overloaded network."""
    return wait > unit * _SATURATED_UNITS


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
                induced[s] = to_wait(response(tiers, s, rate[s], load[s])[0], tiers.unit[s])
            residual = max(residual, abs(wait[s] - induced[s]) / (1.0 + wait[s]))
        if residual <= tolerance:
            return step
        for s in range(count):
            wait[s] += damping * (induced[s] - wait[s])
    return steps
