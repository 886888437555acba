"""Which tiers saturate first as the load grows, and at which load.

Let r_s(W) be the load per slot of tier s under one request per second and km², when tiers advertise
the waits W. A fleet has an equilibrium below

    critical = max over W of min over s of 1 / r_s(W):

at an equilibrium the load is below this; and if waits W exist under which every tier has less load
than slots, no set of tiers can be driven into saturation, for the tier of the set whose wait has
risen most above W has no more load than there.

At the critical load some set of tiers is saturated to the last slot. Their waits are beyond all
bounds, so that they serve only what no other tier may serve, and only differences between their
waits matter. Any differences d bound the answer: for this set and its own requests,
``1 / max r_s(d) <= critical <= 1 / min r_s(d)``. Without a mask of what may be served where, the
set is all tiers.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.quadrature import FINE_NODES, rule
from edgegym.analytic.tier_map import Tiers, tier_loads

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

# Strength of the pull that keeps the waits of tiers that do not saturate at a finite distance.
_PULLS = (1.0, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
_COARSE_NODES = 24
_STEPS = 40
_FINISHING_STEPS = 25
_HALVINGS = 8
# Of the critical load, relative.
ACCURACY = 1e-9
_RELAXATIONS = 10
_FLOOR = 1e-300


class _Balance(NamedTuple):
    """Waits whose tiers are (nearly) equally loaded."""

    wait: FloatArray
    """Up to a common constant, ``[S]``."""
    level: float
    """Mean logarithm of the load per slot."""
    spread: float
    """Largest violation of the balance, as a logarithm."""


class Saturation(NamedTuple):
    """The tiers that saturate first, and the load at which they do."""

    lower: float
    upper: float
    """Bounds of that load, in requests/s/km²."""
    members: BoolArray
    """Which tiers, ``[S]``."""
    wait: FloatArray
    """Waits of these tiers up to a common constant, ``[S]``; those of the others are no answer."""


class Pressure:
    """Loads per slot of some tiers under one request/s/km² of all types."""

    def __init__(self, tiers: Tiers) -> None:
        self.tiers = tiers._replace(intensity=1.0)
        alpha = 2.0 / tiers.power
        self._coarse = rule(alpha, _COARSE_NODES)
        self._fine = rule(alpha, FINE_NODES)
        total = math.pi * tiers.density.sum()
        self.unit = tiers.xi * (1.0 / total) ** (1.0 / tiers.power) + float(tiers.unit.mean())

    def loads(self, wait: FloatArray, fine: bool = True) -> FloatArray:
        """Return the load per slot ``[S]``."""
        rate, load = np.empty(len(wait)), np.empty(len(wait))
        empty = np.empty((0, 0))
        nodes = self._fine if fine else self._coarse
        tier_loads(self.tiers, wait, *nodes, rate, load, empty, empty)
        return load / self.tiers.slots

    def slopes(self, wait: FloatArray) -> FloatArray:
        """Return the derivatives of the load per slot in the waits ``[S, S]``, to a few digits."""
        size = len(wait)
        rate, load = np.empty(size), np.empty(size)
        rate_slope, load_slope = np.empty((size, size)), np.empty((size, size))
        tier_loads(self.tiers, wait, *self._coarse, rate, load, rate_slope, load_slope)
        return load_slope / self.tiers.slots[:, None]

    def start(self) -> FloatArray:
        """Return waits that make up for differences in mean prefill time."""
        reachable = np.isfinite(self.tiers.prefill)
        weight = self.tiers.shares[:, None] * reachable
        prefill = np.where(reachable, self.tiers.prefill, 0.0)
        return -(weight * prefill).sum(axis=0) / weight.sum(axis=0)

    def balance(self, start: FloatArray, pull: float, steps: int, fine: bool) -> _Balance:
        """Solve log r_s - pull * W_s / unit = level for the waits and the level.

        For a pull above 0 there is one solution, whatever may be served where.
        """
        wait = start - start.mean()
        strength = pull / self.unit
        loads = self.loads(wait, fine)
        gap, level = self._gap(wait, loads, strength)
        for _ in range(steps):
            size = float(np.abs(gap).max())
            if size <= (1e-12 if fine else 1e-6):
                break
            direction = self._direction(wait, loads, gap, strength)
            if direction is None:
                break
            length = 1.0
            for _ in range(_HALVINGS):
                trial = wait + length * direction
                trial_loads = self.loads(trial, fine)
                trial_gap, trial_level = self._gap(trial, trial_loads, strength)
                if np.abs(trial_gap).max() < (1.0 - 0.1 * length) * size:
                    break
                length *= 0.5
            else:
                break
            wait, loads, gap, level = trial, trial_loads, trial_gap, trial_level
        return _Balance(wait, level, float(np.abs(gap).max()))

    def settle(self, intensity: float, start: FloatArray) -> FloatArray:
        """Return waits near the equilibrium of tiers that are close to saturation.

        There every queue's utilization is about W / (W + unit), whatever its slots. The equation is
        solved for the logarithm of the load, in which it stays well scaled.
        """
        wait = start.copy()
        gap, loads, unit = self._queue_gap(wait, intensity)
        for _ in range(_STEPS):
            size = float(np.abs(gap).max())
            if size <= 1e-9:
                break
            matrix = self.slopes(wait) / np.maximum(loads, _FLOOR)[:, None]
            matrix -= np.diag(unit / (wait * (wait + unit)))
            try:
                step = np.linalg.solve(matrix, -gap)
            except np.linalg.LinAlgError:
                break
            length = 1.0
            for _ in range(_HALVINGS):
                trial = np.maximum(wait + length * step, 0.2 * wait)
                trial_gap, trial_loads, trial_unit = self._queue_gap(trial, intensity)
                if np.abs(trial_gap).max() < (1.0 - 0.1 * length) * size:
                    break
                length *= 0.5
            else:
                break
            wait, gap, loads, unit = trial, trial_gap, trial_loads, trial_unit
        return wait

    def _queue_gap(
        self, wait: FloatArray, intensity: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gaps of the logarithms of the loads, the loads, and the scales of waits."""
        rate, load = np.empty(len(wait)), np.empty(len(wait))
        tier_loads(self.tiers, wait, *self._fine, rate, load, np.empty((0, 0)), np.empty((0, 0)))
        occupancy = np.divide(load, rate, out=self.tiers.unit * self.tiers.slots, where=rate > 0.0)
        unit = self.tiers.wait_scale * occupancy / self.tiers.slots
        unit = np.maximum(unit, _FLOOR)
        loads = load / self.tiers.slots
        gap = np.log(np.maximum(intensity * loads, _FLOOR)) - np.log(wait / (wait + unit))
        return gap, loads, unit

    def _gap(
        self, wait: FloatArray, loads: FloatArray, strength: float
    ) -> tuple[FloatArray, float]:
        value = np.log(np.maximum(loads, _FLOOR)) - strength * wait
        level = 0.5 * float(value.max() + value.min())
        return value - level, level

    def _direction(
        self, wait: FloatArray, loads: FloatArray, gap: FloatArray, strength: float
    ) -> FloatArray | None:
        """Return Newton's step of the waits, which keeps their mean."""
        size = len(wait)
        matrix = np.zeros((size + 1, size + 1))
        matrix[:size, :size] = self.slopes(wait) / np.maximum(loads, _FLOOR)[:, None]
        matrix[:size, :size] -= strength * np.eye(size)
        matrix[:size, size] = -1.0
        matrix[size, :size] = 1.0
        try:
            step = np.linalg.solve(matrix, np.append(-gap, 0.0))[:size]
        except np.linalg.LinAlgError:
            return None
        if not np.isfinite(step).all():
            return None
        most = np.max(np.abs(step) / (self.unit + np.abs(wait)))
        return np.asarray(step * min(1.0, 3.0 / max(most, 1e-300)), np.float64)

    def relax(self, wait: FloatArray, pull: float) -> FloatArray:
        """Balance one tier after the other, once: slow, but sure to lead to the solution."""
        from scipy.optimize import root_scalar

        wait = wait.copy()
        strength = pull / self.unit
        _, level = self._gap(wait, self.loads(wait, fine=False), strength)
        for s in range(len(wait)):

            def excess(value: float, s: int = s) -> float:
                wait[s] = value
                load = max(self.loads(wait, fine=False)[s], _FLOOR)
                return math.log(load) - strength * value - level

            here = wait[s]
            low, high = here, here
            step = self.unit
            while excess(low) < 0.0 and step < 1e30:
                low, step = low - step, 2.0 * step
            step = self.unit
            while excess(high) > 0.0 and step < 1e30:
                high, step = high + step, 2.0 * step
            wait[s] = here
            if excess(low) > 0.0 > excess(high):
                wait[s] = root_scalar(excess, bracket=(low, high), xtol=1e-6 * self.unit).root
            else:
                wait[s] = here
        return wait


def _part(tiers: Tiers, members: BoolArray) -> Tiers | None:
    """Return these tiers with the types that only they may serve; None if some is left without."""
    reachable = np.isfinite(tiers.prefill)
    own = np.asarray(~reachable[:, ~members].any(axis=1))
    if not reachable[own][:, members].any(axis=0).all() or not own.any():
        return None
    return _chosen(tiers, own, members)


def _chosen(tiers: Tiers, types: BoolArray, members: BoolArray) -> Tiers:
    """Return some of the tiers and types."""
    return tiers._replace(
        prefill=np.ascontiguousarray(tiers.prefill[types][:, members]),
        occupancy=np.ascontiguousarray(tiers.occupancy[types][:, members]),
        shares=tiers.shares[types],
        density=tiers.density[members],
        slots=tiers.slots[members],
        unit=tiers.unit[members],
        knee=tiers.knee[members],
    )


def _leading_sets(wait: FloatArray) -> list[BoolArray]:
    """Return sets of the tiers of highest wait, those set off by the widest gap first."""
    order = np.argsort(-wait)
    gaps = -np.diff(wait[order])
    sets = [np.ones(len(wait), np.bool_)]
    for k in np.argsort(-gaps):
        members = np.zeros(len(wait), np.bool_)
        members[order[: k + 1]] = True
        sets.append(members)
    return sets


def _load_of(slots_per_request: float) -> float:
    """Return the load that fills a slot; infinite where it takes none, within rounding."""
    return 1.0 / float(slots_per_request) if slots_per_request > 0.0 else math.inf


def _saturation(whole: Pressure, members: BoolArray, wait: FloatArray) -> Saturation | None:
    """Return what happens if it is these tiers that saturate; None if they cannot."""
    tiers = _part(whole.tiers, members)
    if tiers is None:
        return None
    part = Pressure(tiers)
    found = part.balance(wait[members], 0.0, _FINISHING_STEPS, fine=True)
    if found.spread > 1e-3:
        return None
    loads = part.loads(found.wait)
    upper = _load_of(loads.min())
    if members.all():
        return Saturation(_load_of(loads.max()), upper, members, found.wait)
    # All other tiers must have less load however far above theirs these waits are.
    everywhere = wait.copy()
    everywhere[members] = found.wait
    lower = 0.0
    for rise in 10.0 ** np.arange(0, 10):
        least = float(everywhere[~members].max())
        trial = everywhere.copy()
        trial[members] += least - float(found.wait.min()) + rise * whole.unit
        lower = max(lower, _load_of(whole.loads(trial).max()))
    return Saturation(lower, upper, members, everywhere)


def first_saturation(tiers: Tiers) -> Saturation:
    """Return which tiers saturate first, at which load, with which waits between them.

    Parameters
    ----------
    tiers : Tiers
        Each of which may serve some type, and each type of which some tier may serve.

    Returns
    -------
    Saturation
        With the narrowest bounds found.
    """
    whole = Pressure(tiers)
    wait = whole.start()
    best = Saturation(0.0, math.inf, np.ones(len(wait), np.bool_), wait)
    for pull in _PULLS:
        found = whole.balance(wait, pull, _STEPS, fine=False)
        for _ in range(_RELAXATIONS):
            if found.spread <= 1e-3:
                break
            found = whole.balance(whole.relax(found.wait, pull), pull, _STEPS, fine=False)
        wait = found.wait
        for members in _leading_sets(wait):
            tried = _saturation(whole, members, wait)
            if tried is None or tried.lower <= best.lower:
                continue
            best = tried
            if best.upper - best.lower <= ACCURACY * best.upper:
                return best
    return best


def serving_tiers(tiers: Tiers) -> tuple[Tiers, BoolArray] | None:
    """Return the tiers that may serve something, with the types that something may serve.

    Returns
    -------
    tiers : Tiers
    members : bool [S]
        Which tiers they are; nothing at all is returned where there is none.
    """
    reachable = np.isfinite(tiers.prefill)
    types, members = (np.asarray(reachable.any(axis=axis)) for axis in (1, 0))
    if not types.any():
        return None
    return _chosen(tiers, types, members), members


def near_saturation(tiers: Tiers) -> FloatArray | None:
    """Return waits near the equilibrium of a network that is close to its critical load.

    Parameters
    ----------
    tiers : Tiers

    Returns
    -------
    float64 [S] or None
        None if the load is too high for an equilibrium.
    """
    chosen = serving_tiers(tiers)
    if chosen is None or tiers.intensity <= 0.0:
        return np.zeros(len(tiers.slots))
    serving, used = chosen
    found = first_saturation(serving)
    if tiers.intensity >= found.lower:
        return None
    rest = 1.0 - tiers.intensity / found.lower
    unit = np.maximum(tiers.wait_scale, 1e-6) * serving.unit
    start = unit.copy()
    members = found.members
    difference = found.wait[members] - found.wait[members].min()
    start[members] = difference + 0.3 * unit[members].min() / rest
    wait = np.zeros(len(tiers.slots))
    wait[used] = Pressure(serving).settle(tiers.intensity, start)
    return wait
