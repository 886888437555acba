"""edgegym's environment with our scenario, and one of our own derived from it."""

from typing import Any

import numpy as np

from campus.scenarios import campus
from edgegym import Scenario
from edgegym.envs.placement import PlacementEnv
from edgegym.envs.vector import PlacementVectorEnv


def campus_placement(scenario: Scenario | None = None, **kwargs: Any) -> PlacementEnv:
    """Make edgegym's environment with the campus, or with another scenario."""
    return PlacementEnv(scenario or campus(), **kwargs)


def campus_placements(scenario: Scenario | None = None, **kwargs: Any) -> PlacementVectorEnv:
    """Make many of them as one."""
    return PlacementVectorEnv(scenario=scenario or campus(), **kwargs)


class ThriftyPlacementEnv(PlacementEnv):
    """Charges a little for each move, whatever its size.

    Parameters
    ----------
    scenario : Scenario, optional
        The campus if omitted.
    price : float
        Reward that a move costs.
    **kwargs
        Of :class:`~edgegym.envs.placement.PlacementEnv`.
    """

    def __init__(
        self, scenario: Scenario | None = None, price: float = 0.01, **kwargs: Any
    ) -> None:
        super().__init__(scenario or campus(), **kwargs)
        self.price = price

    def step(self, action: int | np.integer[Any]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Run an epoch; the reward is what edgegym says, less the price of its moves."""
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward - self.price * info["moves"], terminated, truncated, info
