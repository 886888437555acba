"""What the episodes of an environment play, and what follows from it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgegym.envs.tier_wait import advertised_tier_wait_s
from edgegym.interface.reward import PlacementReward, ServiceReward, placement_reward
from edgegym.simulator.generators import stream_generator

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgegym.world.draw import DrawnScenario, ScenarioDraw
    from edgegym.world.scenario import Scenario

_STREAM = "scenario"


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One scenario as an episode plays it.

    Attributes
    ----------
    drawn : DrawnScenario
        What was drawn.
    reward : PlacementReward
        Of that scenario.
    tier_wait_s : ndarray or None
        Waits that its router advertises, ``[S]``, if it does.
    """

    drawn: "DrawnScenario"
    reward: PlacementReward
    tier_wait_s: "NDArray[np.float64] | None"

    @property
    def scenario(self) -> "Scenario":
        """The scenario."""
        return self.drawn.scenario


class Settings:
    """Draws the settings of episodes; those of scenarios without varied fields are made once.

    Parameters
    ----------
    draw : ScenarioDraw
        Which scenario an episode plays.
    reward : str or ServiceReward, optional
        Name or strategy for the traffic's value instead of the scenario's.

    Raises
    ------
    ScenarioError
        If a router advertises waits that do not exist, in any scenario of the draw or at an extreme
        of a varied field.
    ValueError
        If no reward has that name.
    """

    def __init__(self, draw: "ScenarioDraw", reward: "str | ServiceReward | None") -> None:
        self.draw = draw
        self.reward = reward
        self._made: dict[int, Setting] = {}
        for _, scenario in () if draw.is_fixed else draw.probes():
            advertised_tier_wait_s(scenario)
        self.first = self._make(draw.first)
        """What stands before any episode."""

    def of_episode(self, seed: int) -> Setting:
        """Return what the episode of a seed plays: the same in every process, whatever is done."""
        if self.draw.is_fixed:
            return self.first
        return self.of(self.draw.sample(stream_generator(seed, _STREAM)))

    def at(self, index: int, values: tuple[Any, ...]) -> Setting:
        """Return the setting of a draw that is known, as from the state of an environment.

        Raises
        ------
        ValueError
            If it is not of this draw.
        """
        drawn = self.draw.drawn(index, tuple(values))
        return self.first if self.draw.is_fixed else self.of(drawn)

    def of(self, drawn: "DrawnScenario") -> Setting:
        """Return the setting of what was drawn."""
        if self.draw.vary:
            return self._make(drawn)
        if drawn.index not in self._made:
            self._made[drawn.index] = self._make(drawn)
        return self._made[drawn.index]

    def _make(self, drawn: "DrawnScenario") -> Setting:
        return Setting(
            drawn=drawn,
            reward=placement_reward(drawn.scenario, self.reward),
            tier_wait_s=advertised_tier_wait_s(drawn.scenario),
        )
