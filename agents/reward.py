"""The reward that training uses: the environment's, with less noise."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from edgegym.interface.reward import expected_arrivals_per_epoch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgegym.simulator import WindowStats
    from edgegym.simulator.batch import WindowBatch
    from edgegym.world.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class BaselinedCoverage:
    """Coverage reward in which a decided request that is no hit costs something.

    (hits − baseline × decided) / expected arrivals per epoch. How many requests come is not in the
    agent's hand, and each is decided sooner or later, so a policy's advantage over another one is
    that of the plain reward. But the number of requests, most of the plain reward's noise, drops
    out as far as the baseline is near the coverage, and values lie around zero from the start.

    Attributes
    ----------
    baseline : float
        About the coverage that is reached.
    expected_arrivals : float
        Long-run mean arrivals per epoch.
    """

    baseline: float
    expected_arrivals: float

    @classmethod
    def of(cls, scenario: "Scenario", baseline: float) -> "BaselinedCoverage":
        """Return the reward for a scenario."""
        return cls(baseline=baseline, expected_arrivals=expected_arrivals_per_epoch(scenario))

    def __call__(self, window: "WindowStats") -> float:
        """Return the reward of an epoch."""
        return (window.hits - self.baseline * window.decided) / self.expected_arrivals

    def of_batch(self, windows: "WindowBatch") -> "NDArray[np.float64]":
        """Return the rewards of many epochs."""
        return (windows.hits - self.baseline * windows.decided) / self.expected_arrivals
