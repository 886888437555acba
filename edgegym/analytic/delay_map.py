"""The fixed point for a user's queue module: the steps of the solver around a Python function.

The association law and its derivatives are compiled; the module is asked once per tier and
evaluation, and its derivatives in the rates of the request types are differences. Unknowns and
scaling are those of :mod:`edgegym.analytic.tier_map`; where the module gives up (an infinite wait,
or more load than slots) the answer is continued by the excess load.
"""

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.cost_integrals import law
from edgegym.analytic.newton import (
    CONVERGED,
    FAILED,
    OVERLOAD_TOLERANCE,
    OVERLOADED,
    newton_step,
)
from edgegym.analytic.queue_models import CheckedQueue
from edgegym.analytic.sweeps import QUEUED
from edgegym.analytic.tier_map import Tiers, from_wait, to_wait, wait_slope
from edgegym.jit import kernel

FloatArray = NDArray[np.float64]
Rule = tuple[FloatArray, FloatArray]

_DIFFERENCE = 1e-6
_HALVINGS = 10


@kernel
def type_rates(tiers, wait, points, weights, rates, slopes):
    """Fill what each type brings to a node of each tier, and its derivatives in the waits.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
    points, weights : float64 [n]
    rates : float64 [S, Q]
        Out: requests/s per node.
    slopes : float64 [S, Q, S] or [0, 0, 0]
        Out, unless empty.
    """
    count = wait.size
    share = np.empty(count)
    cost = np.empty(count)
    with_slope = slopes.size > 0
    cross = np.empty((count, count) if with_slope else (0, 0))
    for q in range(tiers.shares.size):
        for s in range(count):
            cost[s] = tiers.prefill[q, s] + wait[s]
        law(cost, tiers.density, tiers.xi, tiers.power, points, weights, share, cross)
        for s in range(count):
            per_node = tiers.intensity * tiers.shares[q] / tiers.density[s]
            rates[s, q] = per_node * share[s]
            if with_slope:
                total = 0.0
                for t in range(count):
                    slopes[s, q, t] = per_node * cross[s, t]
                    total += slopes[s, q, t]
                slopes[s, q, s] = -total


class DelayMap:
    """The map of one network and queue module.

    Parameters
    ----------
    tiers : Tiers
    queue : CheckedQueue
    service_scv : float
        As the network states it.
    coarse, fine : (points, weights)
        Quadrature rules for sweeps, and for the solution.
    """

    def __init__(
        self, tiers: Tiers, queue: CheckedQueue, service_scv: float, coarse: Rule, fine: Rule
    ) -> None:
        self.tiers = tiers
        self._queue = queue
        self._scv = service_scv
        self._coarse = coarse
        self._fine = fine
        self._occupancy = np.ascontiguousarray(tiers.occupancy.T)
        self._count, self._types = self._occupancy.shape

    def _rates(self, wait: FloatArray, nodes: Rule) -> FloatArray:
        rates = np.empty((self._count, self._types))
        type_rates(self.tiers, wait, *nodes, rates, np.empty((0, 0, 0)))
        return rates

    def _induced(self, s: int, rates: FloatArray) -> float:
        slots = int(self.tiers.slots[s])
        return self._queue.delay(rates, self._occupancy[s], slots, self._scv).mean_wait_s

    def _answer(self, s: int, rates: FloatArray) -> float:
        """Return P of tier `s`: the y of the wait that these rates ``[Q]`` induce."""
        wait = self._induced(s, rates)
        if wait < np.inf:
            return float(from_wait(wait, self.tiers.unit[s], self.tiers.knee[s]))
        utilization = float(rates @ self._occupancy[s]) / self.tiers.slots[s]
        return 1.0 + max(utilization - 1.0, 0.0)

    def _y(self, s: int, wait: float) -> float:
        return float(from_wait(wait, self.tiers.unit[s], self.tiers.knee[s]))

    def _gap(self, wait: FloatArray, rates: FloatArray) -> FloatArray:
        return np.array([self._y(s, wait[s]) - self._answer(s, rates[s]) for s in range(len(wait))])

    def _residual(self, wait: FloatArray, rates: FloatArray) -> float:
        induced = np.array([self._induced(s, rates[s]) for s in range(self._count)])
        return float(np.max(np.abs(wait - induced) / (1.0 + wait)))

    def induced(self, wait: FloatArray) -> FloatArray:
        """Return the waits that these waits induce, finite beyond saturation too."""
        rates = self._rates(wait, self._fine)
        unit, knee = self.tiers.unit, self.tiers.knee
        result = np.empty(self._count)
        for s in range(self._count):
            result[s] = self._induced(s, rates[s])
            if result[s] == np.inf:
                result[s] = to_wait(self._answer(s, rates[s]), unit[s], knee[s])
        return result

    def sweep(self, wait: FloatArray, exact: bool, tolerance: float) -> None:
        """Solve y = P for one tier after the other, the others held (in place)."""
        from scipy.optimize import root_scalar

        nodes = self._fine if exact else self._coarse
        for s in range(self._count):

            def gap(y: float, s: int = s) -> float:
                wait[s] = to_wait(y, self.tiers.unit[s], self.tiers.knee[s])
                return y - self._answer(s, self._rates(wait, nodes)[s])

            start = self._y(s, wait[s])
            if gap(0.0) >= 0.0:
                root = 0.0
            else:
                low, high = 0.0, 1.0
                while gap(high) < 0.0 and high < 1e6:
                    low, high = high, 2.0 * high
                root = start
                if high < 1e6:
                    precision = tolerance * max(1.0 - start, 1e-9)
                    root = root_scalar(gap, bracket=(low, high), xtol=max(precision, 1e-14)).root
            wait[s] = to_wait(root, self.tiers.unit[s], self.tiers.knee[s])

    def level(self, wait: FloatArray) -> bool:
        """Raise the waits of all queued tiers together until they answer with them on average.

        Returns
        -------
        bool
            Whether there is such a level short of overload.
        """
        unit, knee = self.tiers.unit, self.tiers.knee
        queued = np.array([self._y(s, wait[s]) > QUEUED for s in range(self._count)])
        size = self.tiers.density * self.tiers.slots * queued

        def total(rise: float) -> float:
            trial = wait + rise * queued
            return float(size @ self._gap(trial, self._rates(trial, self._coarse)))

        if not queued.any() or total(0.0) >= 0.0:
            return True
        low, high = 0.0, float(unit.max())
        for _ in range(60):
            if total(high) >= 0.0:
                break
            low, high = high, 2.0 * high
        while high - low > 1e-3 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if total(middle) < 0.0 else (low, middle)
        wait += low * queued
        return bool((wait < unit * knee)[queued].all())

    def jacobian(self, wait: FloatArray) -> FloatArray:
        """Return the derivative of y - P in the waits, ``[S, S]``."""
        return self._gap_slopes(wait, self.slopes(wait)[0])

    def _gap_slopes(self, wait: FloatArray, slopes: FloatArray) -> FloatArray:
        unit, knee = self.tiers.unit, self.tiers.knee
        by_y = [wait_slope(self._y(s, wait[s]), unit[s], knee[s]) for s in range(self._count)]
        return np.diag(1.0 / np.array(by_y)) - slopes

    def slopes(self, wait: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivative of each tier's P in the waits ``[S, S]``, and the rates."""
        rates = np.empty((self._count, self._types))
        law_slopes = np.empty((self._count, self._types, self._count))
        type_rates(self.tiers, wait, *self._fine, rates, law_slopes)
        result = np.empty((self._count, self._count))
        for s in range(self._count):
            # A step of the rates within what one node could carry, so that it is never lost.
            size = _DIFFERENCE * max(rates[s].sum(), 1e-3 * self._capacity(s))
            by_rate = np.empty(self._types)
            for q in range(self._types):
                up, down = rates[s].copy(), rates[s].copy()
                up[q] += size
                down[q] = max(down[q] - size, 0.0)
                by_rate[q] = (self._answer(s, up) - self._answer(s, down)) / (up[q] - down[q])
            result[s] = by_rate @ law_slopes[s]
        return result, rates

    def _capacity(self, s: int) -> float:
        return float(self.tiers.slots[s] / self._occupancy[s].max())

    def approach(self, wait: FloatArray, tolerance: float, steps: int) -> tuple[int, float, int]:
        """Newton's iteration with halving (in place); return status, residual, iterations."""
        residual, used = np.inf, 0
        moved = wait.copy()
        gap = self._gap(wait, self._rates(wait, self._fine))
        while used < steps:
            slopes, rates = self.slopes(wait)
            residual = self._residual(wait, rates)
            size = float(np.abs(gap).max())
            if residual <= 1e-13 or (residual == np.inf and size <= OVERLOAD_TOLERANCE):
                break
            moved[:] = wait
            newton_step(self.tiers, wait, gap, self._gap_slopes(wait, slopes), moved)
            used += 1
            length = 1.0
            for _ in range(_HALVINGS):
                trial = wait + length * (moved - wait)
                trial_gap = self._gap(trial, self._rates(trial, self._fine))
                if np.abs(trial_gap).max() < (1.0 - 0.1 * length) * size:
                    break
                length *= 0.5
            else:
                break
            wait[:], gap = trial, trial_gap
        residual = self._residual(wait, self._rates(wait, self._fine))
        if residual <= tolerance:
            return CONVERGED, residual, used
        if residual == np.inf and np.abs(gap).max() <= OVERLOAD_TOLERANCE:
            return OVERLOADED, residual, used
        return FAILED, residual, used
