"""The analytic controller: estimate the demand, solve for the best mix, move towards it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from edgegym.interface.layout import DEMAND_EWMA_S
from edgegym.policies.base import CounterRandom, Memory, Policy
from edgegym.policies.estimate import PlacementModel
from edgegym.policies.mix import close_largest_deficit
from edgegym.world.rounding import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.world.scenario import Scenario


_SMALL = 64


@dataclass(frozen=True, kw_only=True)
class ReplanSettings:
    """When the placement is solved anew, and for which demand.

    Attributes
    ----------
    least_requests : float
        Requests that the estimated family rates rest upon, at least 0. The observed rates are means
        over 30 s; where fewer requests come in that time, they are averaged further.
    interval : int
        Decisions between two looks at whether to solve anew, at least 1, for up to 64 pairs of
        profile and request type; in proportion more for more, whose solution takes longer.
    tolerance : float
        Solve anew only if the family rates have changed since by more than this share of all
        requests (half the sum of absolute differences).

    Raises
    ------
    ValueError
        If a value is out of range.

    Notes
    -----
    Tuned on seeds 0 to 7 of the urban presets. Coverage hardly depends on them: solving at every
    decision without smoothing gains less than its error and takes ten times as long.
    """

    least_requests: float = 3000.0
    interval: int = 2
    tolerance: float = 0.04

    def __post_init__(self) -> None:
        if not self.least_requests >= 0.0:
            raise ValueError(f"least_requests is {self.least_requests}: it must not be negative")
        if self.interval < 1:
            raise ValueError(f"interval is {self.interval}: it must be at least 1")
        if not self.tolerance >= 0.0:
            raise ValueError(f"tolerance is {self.tolerance}: it must not be negative")


@dataclass(frozen=True)
class Target:
    """What a controller aims at.

    Attributes
    ----------
    mix : ndarray, shape [S]
        Share of the up nodes that should hold each profile.
    family_rates_per_s : ndarray, shape [F]
        Estimated requests/s of each family over the whole region.
    """

    mix: "NDArray[np.float64]"
    family_rates_per_s: "NDArray[np.float64]"


class MoveChooser(Protocol):
    """A strategy that turns a target mix into one move."""

    def choose(self, view: "FleetView", target: Target, random: CounterRandom) -> int:
        """Return a legal move or the no-op.

        Parameters
        ----------
        view : FleetView
            The fleet now.
        target : Target
            What the fleet should look like, and for which demand.
        random : CounterRandom
            The random numbers of this decision.
        """
        ...


class LargestDeficit:
    """Closes the largest deficit of the mix at a random node, wherever it is.

    Parameters
    ----------
    scenario : Scenario
        Gives the bytes of each move.
    """

    def __init__(self, scenario: "Scenario") -> None:
        self._move_bytes = scenario.compile().move_bytes

    def choose(self, view: "FleetView", target: Target, random: CounterRandom) -> int:
        """Return the legal move to the profile that lacks most nodes, or the no-op."""
        counts = largest_remainder(target.mix, int(view.up.sum()))
        return close_largest_deficit(view, counts, self._move_bytes, random)


class AnalyticPolicy(Policy):
    """Solves the placement for the demand that it observes, and makes a move towards it.

    Its memory: the mean family rates, the rates it last solved for, the solution, and the number
    of decisions until it looks again.

    Parameters
    ----------
    scenario : Scenario
        The world.
    chooser : MoveChooser
        Which move brings the fleet nearer to the mix.
    settings : ReplanSettings
        When to solve anew.
    seed : int
        Seed of the random choices.
    """

    def __init__(
        self,
        scenario: "Scenario",
        chooser: MoveChooser,
        settings: ReplanSettings | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(scenario, seed)
        self.chooser = chooser
        self.settings = settings or ReplanSettings()
        self.model = PlacementModel(scenario)
        self._interval = math.ceil(self.settings.interval * max(1.0, self.model.size / _SMALL))
        self._newest_weight = self._weight_of_newest(scenario.control.epoch_s)

    def begin(self, view: "FleetView") -> Memory:
        """Return the memory of an episode's start: the optimum of the long-run means."""
        del view
        long_run = self.model.long_run
        return (long_run, long_run, self.model.long_run_optimum, np.array(0))

    def decide(
        self, view: "FleetView", memory: Memory, random: CounterRandom
    ) -> tuple[int, Memory]:
        """Return the next move towards the optimum of the observed demand."""
        memory = self._replan(view, memory)
        return self.chooser.choose(view, Target(memory[2], memory[0]), random), memory

    def _replan(self, view: "FleetView", memory: Memory) -> Memory:
        rates, solved_for, mix, wait = memory
        observed = self.model.observed(view)
        rates = rates + self._newest_weight * (observed - rates)
        if wait > 0:
            return (rates, solved_for, mix, np.asarray(wait - 1))
        wait = np.array(self._interval - 1)
        change = 0.5 * np.abs(rates - solved_for).sum()
        if change <= self.settings.tolerance * solved_for.sum():
            return (rates, solved_for, mix, wait)
        nodes = int(view.up.sum())
        if nodes == 0:
            return (rates, solved_for, mix, wait)
        return (rates, rates, self.model.optimum(rates, nodes, start=mix), wait)

    def _weight_of_newest(self, epoch_s: float) -> float:
        """Return the weight of a new observation in the mean rates.

        An exponential mean with time constant T rests on about 2 T rate requests.
        """
        needed_s = self.settings.least_requests / (2.0 * self.model.mean_rate_per_s)
        further_s = needed_s - DEMAND_EWMA_S
        return 1.0 if further_s <= 0.0 else -math.expm1(-epoch_s / further_s)
