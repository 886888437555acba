"""Projected simultaneous perturbation (Algorithm 1): two solves a step, however many profiles."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.placement.search import Search
from edgegym.world.network import checked_number, checked_whole

FloatArray = NDArray[np.float64]

_MOST = 10**9
_MOST_SEED = 2**63 - 1
# Spall's exponents: the slowest decay of the gains that still converges.
_STEP_DECAY = 0.602
_PERTURBATION_DECAY = 0.101
# Iterations that count into the first gain, and iterations of rest that end the search.
_CALIBRATING = 5
_RESTING = 20


@dataclass(frozen=True)
class ProjectedSpsa:
    """Climb along random directions, each iterate projected on the allowed mixes.

    The inner loop is the load-association equilibrium, warm-started. The outer one perturbs all
    shares at once by plus or minus c_k, projects both mixes, and moves along the difference of
    their scores: with gains a_k = a / (A + k + 1)**0.602 and c_k = c / (k + 1)**0.101, A a tenth of
    the iterations. The best mix seen counts, not the last.

    Parameters
    ----------
    iterations : int
        Most steps; each solves three mixes.
    perturbation : float
        c, a share: above 0 and at most 0.5.
    first_step : float
        The gain a is such that the first steps change a share by about this, above 0 and at most 1;
        no step changes one by more (before the projection).
    tolerance : float
        The search ends when 20 steps in a row change no share by more than this.
    seed : int
        Of the directions.

    Raises
    ------
    ValueError
        If a setting breaks its rule.
    """

    iterations: int = 300
    perturbation: float = 0.05
    first_step: float = 0.1
    tolerance: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        changes = {
            "iterations": checked_whole("iterations", self.iterations, 1, _MOST),
            "perturbation": checked_number(
                "perturbation", self.perturbation, 0.0, 0.5, strict=True
            ),
            "first_step": checked_number("first_step", self.first_step, 0.0, 1.0, strict=True),
            "tolerance": checked_number("tolerance", self.tolerance, 0.0, 1.0),
            "seed": checked_whole("seed", self.seed, 0, _MOST_SEED),
        }
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def search(self, search: Search) -> bool:
        """Climb from the start; return whether the iterate came to rest."""
        rng = np.random.Generator(np.random.Philox(self.seed))
        search.total = 3 * self.iterations + 2 * _CALIBRATING + 1
        mix = search.start
        _, wait = search.assess(mix, search.wait)
        slopes = []
        for _ in range(_CALIBRATING):
            slope, wait = self._slope(search, mix, wait, self.perturbation, rng)
            slopes.append(np.abs(slope).max())
        delay = 0.1 * self.iterations
        typical = float(np.mean(slopes))
        gain = self.first_step * (delay + 1) ** _STEP_DECAY / typical if typical > 0 else 0.0
        resting = 0
        for k in range(self.iterations):
            width = self.perturbation / (k + 1) ** _PERTURBATION_DECAY
            slope, wait = self._slope(search, mix, wait, width, rng)
            step = np.clip(
                gain / (delay + k + 1) ** _STEP_DECAY * slope, -self.first_step, self.first_step
            )
            moved = search.constraints.project(mix + step)
            resting = resting + 1 if np.abs(moved - mix).max() <= self.tolerance else 0
            mix = moved
            _, wait = search.assess(mix, wait)
            if resting == _RESTING:
                return True
        return False

    def _slope(
        self,
        search: Search,
        mix: FloatArray,
        wait: FloatArray,
        width: float,
        rng: np.random.Generator,
    ) -> tuple[FloatArray, FloatArray]:
        """Return an estimate of the gradient along one random direction ``[S]``, and the waits.

        Where the constraints cut a perturbation short, the difference is over what is left of it.
        """
        direction = rng.choice((-1.0, 1.0), search.size)
        direction -= direction.mean()  # along the simplex
        high = search.constraints.project(mix + width * direction)
        low = search.constraints.project(mix - width * direction)
        span = high - low
        length = float(span @ span)
        if length < (1e-6 * width) ** 2:
            return np.zeros(search.size), wait
        high_score, wait = search.assess(high, wait)
        low_score, wait = search.assess(low, wait)
        if not (np.isfinite(high_score) and np.isfinite(low_score)):
            return np.zeros(search.size), wait
        return search.size * (high_score - low_score) / length * span, wait
