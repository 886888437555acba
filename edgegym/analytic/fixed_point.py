"""Solvers for the load-association fixed point: rising sweeps with Newton, and damping."""

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.newton import CONVERGED, FAILED, OVERLOADED, newton, polish
from edgegym.analytic.sweeps import level, sweep
from edgegym.analytic.tier_map import Tiers, induced_wait, response, tier_loads, to_wait
from edgegym.jit import kernel

FloatArray = NDArray[np.float64]
Rule = tuple[FloatArray, FloatArray]

# In an overloaded network, a tier whose wait is above this share of its knee counts as unstable.
_SATURATED_SHARE = 0.1
# Rounds that end near the knee or beyond before the load is called too high.
_OVERLOAD_ROUNDS = 6
_COARSE_ROUNDS = 4
_ADOPTING_ROUNDS = 24
# Residual by the cheap rule from which the exact one takes over.
_NEAR = 1e-4
_POLISHING_STEPS = 8


def _approach(
    tiers: Tiers, wait: FloatArray, coarse: Rule, fine: Rule, tolerance: float, steps: int
) -> tuple[int, float, int]:
    """Newton by the cheap rule, then by the exact one; return status, residual, iterations."""
    trial = wait.copy()
    status, _, used = newton(tiers, trial, *coarse, _NEAR, _NEAR, steps)
    if status == CONVERGED:
        residual, more = polish(tiers, trial, *fine, *coarse, tolerance, _POLISHING_STEPS)
        used += more
        if residual <= tolerance:
            wait[:] = trial
            return CONVERGED, residual, used
    if status != FAILED:
        wait[:] = trial
    status, residual, more = newton(tiers, wait, *fine, tolerance, 1e-14, steps)
    return status, residual, used + more


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
            if late:
                sweep(tiers, wait, *fine, True, max(1e-3 * 0.5**turn, 1e-12))
            else:
                sweep(tiers, wait, *coarse, False, 1e-2)
            iterations += 1
            if turn > 1:
                within = level(tiers, wait, *coarse)
                hopeless += not within or saturated(tiers, wait).any()
        trial[:] = wait
        status, residual, used = _approach(tiers, trial, coarse, fine, tolerance, 12 + turn)
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
