"""Solver of the load-association fixed point: rising sweeps with Newton, and damping."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.newton import CONVERGED, FAILED, OVERLOADED
from edgegym.analytic.saturation import near_saturation
from edgegym.analytic.solver_map import ErlangMap, Rule, SolverMap
from edgegym.analytic.tier_map import Tiers

FloatArray = NDArray[np.float64]

# In an overloaded network, a tier whose wait is above this share of its knee counts as unstable.
_SATURATED_SHARE = 0.1
# Rounds that end near the knee or beyond before the load is called too high.
_OVERLOAD_ROUNDS = 6
_COARSE_ROUNDS = 4
# Rounds before the load of saturation is asked for.
_FIRST_ROUNDS = 3
# A residual that rounding may leave where waits are long and tiers nearly tied.
_ROUNDING = 1e-6
_RESCUE_STEPS = 40
_ADOPTING_ROUNDS = 24
# Waits that come back to this share of a step's length repeat themselves.
_REPEATED = 1e-6
# While a cycle is still settling, points of its shortest period are only this near.
_ALIKE = 1e-3


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
    return rise(ErlangMap(tiers, coarse, fine), wait, warm, tolerance, rounds)


def rise(
    solver_map: SolverMap, wait: FloatArray, warm: bool, tolerance: float, rounds: int
) -> tuple[int, int]:
    """Solve the fixed point of a map; arguments and results as in :func:`solve`.

    Where the first rounds fail, or find the load too high, the load of saturation tells whether it
    is; near that load, sweeps by a cheap rule can overshoot, and a start from the side of
    saturation is the better one.
    """
    status, iterations = _rounds(solver_map, wait, warm, tolerance, min(rounds, _FIRST_ROUNDS))
    if status == CONVERGED or rounds <= _FIRST_ROUNDS:
        return status, iterations
    near = near_saturation(solver_map.tiers)
    if near is None and status == OVERLOADED:
        return status, iterations
    if near is not None:
        status, residual, used = solver_map.approach(near, tolerance, _RESCUE_STEPS)
        iterations += used
        if residual <= max(tolerance, _ROUNDING):
            wait[:] = near
            return status, iterations
    status, more = _rounds(solver_map, wait, False, tolerance, rounds)
    return status, iterations + more


def _rounds(
    solver_map: SolverMap, wait: FloatArray, warm: bool, tolerance: float, rounds: int
) -> tuple[int, int]:
    """Make rounds of a rising sweep and Newton steps."""
    trial = wait.copy()
    iterations = 0
    hopeless = 0
    status, residual = FAILED, np.inf
    for turn in range(0 if warm else 1, rounds + 1):
        if turn == 1:
            wait[:] = 0.0
        if turn > 0:
            exact = turn > _COARSE_ROUNDS
            solver_map.sweep(wait, exact, max(1e-3 * 0.5**turn, 1e-12) if exact else 1e-2)
            iterations += 1
            if turn > 1:
                within = solver_map.level(wait)
                hopeless += not within or saturated(solver_map.tiers, wait).any()
        trial[:] = wait
        status, residual, used = solver_map.approach(trial, tolerance, 12 + turn)
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


class DampedRun(NamedTuple):
    """How a damped iteration went."""

    wait: FloatArray
    """Waits at its end, ``[S]``."""
    iterations: int
    """Steps made."""
    cycle_length: int
    """Steps after which it repeats itself; 0 if it does not."""
    history: FloatArray
    """Waits before the first step and after each, ``[iterations + 1, S]``."""


def damped(
    solver_map: SolverMap, wait: FloatArray, damping: float, tolerance: float, steps: int
) -> DampedRun:
    """Iterate W <- (1 - damping) W + damping * induced W [33] until it settles or repeats itself.

    Beyond saturation the induced wait is the finite continuation of the map.
    """
    history = [wait]
    # Brent's way to find a cycle: look back to a landmark that moves on at powers of two.
    landmark, since, stretch = wait, 0, 1
    for step in range(steps):
        induced = solver_map.induced(wait)
        change = induced - wait
        if np.max(np.abs(change) / (1.0 + wait)) <= tolerance:
            return DampedRun(wait, step, 0, np.array(history))
        wait = wait + damping * change
        history.append(wait)
        since += 1
        length = damping * np.max(np.abs(change))
        if np.max(np.abs(wait - landmark)) <= _REPEATED * length:
            near = (np.abs(np.array(history[-1 - since : -1]) - wait) <= _ALIKE * length).all(
                axis=1
            )
            return DampedRun(wait, step + 1, int(near[::-1].argmax()) + 1, np.array(history))
        if since == stretch:
            landmark, since, stretch = wait, 0, 2 * stretch
    return DampedRun(wait, steps, 0, np.array(history))
