"""A TTFT target at which it matters what the nodes hold."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SERVED_WITHOUT_HITS = 0.5
_STEPS = (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)
CANDIDATES_S = tuple(float(f"{step * 10.0**power:.3g}") for power in (-1, 0, 1) for step in _STEPS)
"""Round numbers from 0.1 to 80 s."""


@dataclass(frozen=True, kw_only=True, eq=False)
class IdleTtft:
    """TTFT of each request type on idle nodes, without and with a hit."""

    share: NDArray[np.float64]
    """Share of requests ``[Q]``."""
    cold_prefill_s: NDArray[np.float64]
    """Prefill time without a hit ``[Q]``."""
    best_prefill_s: NDArray[np.float64]
    """Prefill time with the deepest hit that any profile offers ``[Q]``."""
    density_per_km2: float
    """Nodes per km²."""
    holder_share: float
    """Share of nodes that hold a given profile."""
    radio_xi: float
    """Seconds per km^alpha."""
    radio_alpha: float
    """Exponent of the distance."""

    def attainment(self, target_s: float) -> tuple[float, float]:
        """Return the shares of requests within a target, without any hit and at their best.

        Without a hit the nearest node computes the whole prompt. At its best a request takes
        the nearest holder of its best profile, or the nearest node if that has better odds.
        Distances to Poisson nodes of density λ: P(R <= r) = 1 - exp(-π λ r²) (theory, eq. 8).
        """
        cold = self._within(target_s - self.cold_prefill_s, self.density_per_km2)
        holder = self._within(
            target_s - self.best_prefill_s, self.density_per_km2 * self.holder_share
        )
        return float(self.share @ cold), float(self.share @ np.maximum(cold, holder))

    def _within(self, slack_s: NDArray[np.float64], density: float) -> NDArray[np.float64]:
        reach_km = (np.maximum(slack_s, 0.0) / self.radio_xi) ** (1.0 / self.radio_alpha)
        return -np.expm1(-np.pi * density * reach_km**2)

    def most_telling_target_s(self) -> float:
        """Return the round target at which hits change the attainment most.

        Only targets that at least half of the requests meet without hits are considered, so that
        the target is one that the hardware can serve. The least of equals; the largest candidate
        if there is none.
        """

        def difference(target_s: float) -> float:
            cold, best = self.attainment(target_s)
            return best - cold

        served = [t for t in CANDIDATES_S if self.attainment(t)[0] >= _SERVED_WITHOUT_HITS]
        return max(served, key=difference, default=CANDIDATES_S[-1])
