"""Maps from assumed to induced waits, as the solver of the fixed point wants them."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.delay_map import DelayMap
from edgegym.analytic.grouping import build_tiers
from edgegym.analytic.newton import CONVERGED, FAILED, newton, polish
from edgegym.analytic.quadrature import FINE_NODES, rule
from edgegym.analytic.queue_models import CheckedQueue, ErlangC, QueueModel
from edgegym.analytic.sweeps import level, sweep
from edgegym.analytic.tier_map import (
    Tiers,
    evaluate_map,
    induced_wait,
    response,
    tier_loads,
    to_wait,
)
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]
Rule = tuple[FloatArray, FloatArray]

COARSE_NODES = 16
# Residual by the cheap rule from which the exact one takes over.
_NEAR = 1e-4
_POLISHING_STEPS = 8


@kernel
def _induced_waits(tiers, wait, points, weights, induced):
    """Fill the waits that these waits induce; beyond saturation on the finite continuation."""
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    empty = np.empty((0, 0))
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    for s in range(count):
        induced[s] = induced_wait(tiers, s, rate[s], load[s])
        if induced[s] == np.inf:
            y = response(tiers, s, rate[s], load[s])[0]
            induced[s] = to_wait(y, tiers.unit[s], tiers.knee[s])


class SolverMap(Protocol):
    """What the solver needs of a map from assumed to induced waits; each works in place."""

    tiers: Tiers

    def sweep(self, wait: FloatArray, exact: bool, tolerance: float) -> None:
        """Solve for one tier's wait after the other, the others held."""
        ...

    def level(self, wait: FloatArray) -> bool:
        """Raise the waits of all queued tiers together; say whether that ends below overload."""
        ...

    def approach(self, wait: FloatArray, tolerance: float, steps: int) -> tuple[int, float, int]:
        """Newton's iteration from here; return status, residual and iterations."""
        ...

    def induced(self, wait: FloatArray) -> FloatArray:
        """Return the waits that these waits induce; finite beyond saturation too."""
        ...

    def jacobian(self, wait: FloatArray) -> FloatArray:
        """Return the derivative of y - P in the waits, ``[S, S]``."""
        ...


class ErlangMap:
    """The map of the compiled queue, for :func:`edgegym.analytic.fixed_point.rise`.

    Parameters
    ----------
    tiers : Tiers
    coarse, fine : (points, weights)
        Cheap quadrature rule for the first steps, and that which the solution is verified on.
    """

    def __init__(self, tiers: Tiers, coarse: Rule, fine: Rule) -> None:
        self.tiers = tiers
        self._coarse = coarse
        self._fine = fine

    def sweep(self, wait: FloatArray, exact: bool, tolerance: float) -> None:
        """Solve for one tier's wait after the other, the others held."""
        sweep(self.tiers, wait, *(self._fine if exact else self._coarse), exact, tolerance)

    def level(self, wait: FloatArray) -> bool:
        """Raise the waits of all queued tiers together; say whether that ends below overload."""
        return level(self.tiers, wait, *self._coarse)

    def approach(self, wait: FloatArray, tolerance: float, steps: int) -> tuple[int, float, int]:
        """Newton by the cheap rule, then by the exact one; return status, residual, iterations."""
        coarse, fine = self._coarse, self._fine
        trial = wait.copy()
        status, _, used = newton(self.tiers, trial, *coarse, _NEAR, _NEAR, steps)
        if status == CONVERGED:
            residual, more = polish(self.tiers, trial, *fine, *coarse, tolerance, _POLISHING_STEPS)
            used += more
            if residual <= tolerance:
                wait[:] = trial
                return CONVERGED, residual, used
        if status != FAILED:
            wait[:] = trial
        status, residual, more = newton(self.tiers, wait, *fine, tolerance, 1e-14, steps)
        return status, residual, used + more

    def induced(self, wait: FloatArray) -> FloatArray:
        """Return the waits that these waits induce; finite beyond saturation too."""
        result = np.empty_like(wait)
        _induced_waits(self.tiers, wait, *self._fine, result)
        return result

    def jacobian(self, wait: FloatArray) -> FloatArray:
        """Return the derivative of y - P in the waits, ``[S, S]``."""
        gap, result = np.empty(len(wait)), np.empty((len(wait), len(wait)))
        evaluate_map(self.tiers, wait, *self._fine, gap, result)
        return result


def build_map(net: TieredNetwork, queue: QueueModel) -> tuple[SolverMap, NDArray[np.int64]]:
    """Return the map of a network and queue module, and which of its tiers each profile is in."""
    tiers, group = build_tiers(net)
    coarse, fine = rule(net.radio_alpha, COARSE_NODES), rule(net.radio_alpha, FINE_NODES)
    if isinstance(queue, ErlangC):
        return ErlangMap(tiers, coarse, fine), group
    return DelayMap(tiers, CheckedQueue(queue), net.service_scv, coarse, fine), group
