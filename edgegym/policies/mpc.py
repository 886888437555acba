"""The controller with a receding horizon: foresee the demand, plan, make the first move."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from edgegym.policies.analytic import Target
from edgegym.policies.base import CounterRandom, Memory, Policy
from edgegym.policies.estimate import PlacementModel
from edgegym.policies.forecast import DemandForecaster, ForecastSettings, ForecastState
from edgegym.policies.local import LocalDemand, LocalSettings, holding_savings_s
from edgegym.world.network import checked_number, checked_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.world.scenario import Scenario

_LONGEST_S = 1e6


@dataclass(frozen=True, kw_only=True)
class MpcSettings:
    """How far the controller looks ahead, and how often it plans.

    Attributes
    ----------
    ahead_s : float
        Demand is foreseen for so many seconds ahead when a node is chosen.
    dwell_s : float
        Time over which a move must pay: of it, the transfer is lost.
    periods : int
        K, periods of the planned path of mixes.
    period_s : float
        Length of a period.
    interval_s : float
        Time between two looks at whether to plan anew.
    tolerance : float
        Plan anew only if the foreseen family rates differ from those planned for by more than this
        share of all requests.
    local : LocalSettings
        How nodes are chosen, given the mix.
    forecast : ForecastSettings
        Time scales of the forecast.

    Raises
    ------
    ValueError
        If a value is out of range.
    TypeError
        If `local` or `forecast` are other settings.

    Notes
    -----
    Tuned on seeds 0 to 11 of the urban presets. There the mix hardly matters beside the places:
    with the plan left out, coverage is the same within its error. Foreseeing the places is worth
    two points where demand moves.
    """

    ahead_s: float = 30.0
    dwell_s: float = 90.0
    periods: int = 2
    period_s: float = 30.0
    interval_s: float = 60.0
    tolerance: float = 0.15
    local: LocalSettings = field(default_factory=LocalSettings)
    forecast: ForecastSettings = field(default_factory=ForecastSettings)

    def __post_init__(self) -> None:
        checked_number("ahead_s", self.ahead_s, 0.0, _LONGEST_S)
        checked_number("tolerance", self.tolerance, 0.0, 1.0)
        for name in ("dwell_s", "period_s", "interval_s"):
            checked_number(name, getattr(self, name), 0.0, _LONGEST_S, strict=True)
        checked_whole("periods", self.periods, 1, 1000)
        for name, kind in (("local", LocalSettings), ("forecast", ForecastSettings)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} is {getattr(self, name)!r}: must be {kind.__name__}")


class MpcPolicy(Policy):
    """Foresees the demand, plans a path of mixes for it, and moves state ahead of the crowd.

    Everything comes from the observations of the episode so far: no clock, no true future.

    1. :class:`~edgegym.policies.forecast.DemandForecaster` foresees the demand around each node.
    2. When the foreseen family rates have changed, :func:`~edgegym.analytic.plan_path` plans the
       mixes of the next periods at the load-association equilibrium, under the budget of bytes.
    3. The best move is made: what it saves the foreseen demand around its node, less what the
       transfer loses, less what it takes the fleet away from the first planned mix.

    Its memory: decisions made, the planned mix, the rates it was planned for, decisions until the
    next look, and the forecaster's.

    Parameters
    ----------
    scenario : Scenario
        The world.
    settings : MpcSettings, optional
        Horizon and thresholds.
    seed : int
        Not used: the policy makes no random choice.
    """

    def __init__(
        self, scenario: "Scenario", settings: MpcSettings | None = None, seed: int = 0
    ) -> None:
        super().__init__(scenario, seed)
        self.settings = MpcSettings() if settings is None else settings
        if not isinstance(self.settings, MpcSettings):
            raise TypeError(f"settings is {settings!r}: must be MpcSettings")
        self.model = PlacementModel(scenario)
        self.chooser = LocalDemand(scenario, self.settings.local)
        world = scenario.compile()
        epoch_s = scenario.control.epoch_s
        self._savings_s = holding_savings_s(scenario)
        profiles = len(scenario.profiles)
        self.forecaster = DemandForecaster(
            epoch_s=epoch_s,
            warmup_s=scenario.initial.warmup_s,
            start_rate_per_s=float(self.layout.feature("demand").scale or 0.0),
            mean_rate_per_s=self.model.mean_rate_per_s,
            value=self._savings_s[:profiles].max(axis=0),
            settings=self.settings.forecast,
        )
        self._meet = world.meet
        self._move_bytes = world.move_bytes
        self._transfer_part = np.minimum(
            world.move_bytes / (world.backhaul_bytes_per_s * self.settings.dwell_s), 1.0
        )
        self._burst_bytes = float(world.burst_bytes)
        self._period_bytes = float(world.budget_bytes_per_s) * self.settings.period_s
        epochs = self.settings.period_s / epoch_s
        self._weight = scenario.objective.migration_weight / (scenario.fleet_memory_bytes * epochs)
        self._interval = max(1, round(self.settings.interval_s / epoch_s))

    def begin(self, view: "FleetView") -> Memory:
        """Return the memory of an episode's start: the optimum of the long-run means."""
        forecast = self.forecaster.begin(*self._observed(view))
        mix, rates = self.model.long_run_optimum, self.model.long_run
        return (np.array(0), mix, rates, np.array(0), *forecast)

    def decide(
        self, view: "FleetView", memory: Memory, random: CounterRandom
    ) -> tuple[int, Memory]:
        """Return the move that is worth most for the demand to come, or the no-op."""
        del random
        made, mix, planned_for, wait = memory[:4]
        forecast = ForecastState(*memory[4:])
        if made > 0:  # the first observation is in the memory that begin returned
            forecast = self.forecaster.update(forecast, *self._observed(view))
        if wait > 0:
            wait = np.asarray(wait - 1)
        else:
            wait = np.array(self._interval - 1)
            mix, planned_for = self._planned(view, forecast, mix, planned_for)
        action = self._best_move(view, forecast, Target(mix, planned_for))
        return action, (np.asarray(made + 1), mix, planned_for, wait, *forecast)

    def _observed(
        self, view: "FleetView"
    ) -> tuple["NDArray[np.float64]", float, "NDArray[np.bool_]"]:
        """Return what the forecaster wants to know."""
        return view.near_demand_per_s, float(self.model.observed(view).sum()), view.up

    def family_rates_per_s(
        self, view: "FleetView", forecast: ForecastState, ahead_s: float
    ) -> "NDArray[np.float64]":
        """Return the foreseen requests/s of each family over the whole region, ``[F]``."""
        near = self.forecaster.pattern(forecast, ahead_s)[view.up].mean(axis=0)
        return near / max(float(near.sum()), 1e-12) * self.forecaster.load(forecast, ahead_s)

    def _planned(
        self,
        view: "FleetView",
        forecast: ForecastState,
        mix: "NDArray[np.float64]",
        planned_for: "NDArray[np.float64]",
    ) -> tuple["NDArray[np.float64]", "NDArray[np.float64]"]:
        """Return the first mix of a new plan and the rates it is for, or those there were."""
        from edgegym.analytic import PathExchange, plan_path

        settings = self.settings
        nodes = int(view.up.sum())
        if nodes == 0:
            return mix, planned_for
        middles_s = settings.period_s * (np.arange(settings.periods) + 0.5)
        path = np.array([self.family_rates_per_s(view, forecast, float(t)) for t in middles_s])
        rates = path.mean(axis=0)
        change = 0.5 * np.abs(rates - planned_for).sum()
        if change <= settings.tolerance * planned_for.sum():
            return mix, planned_for
        level = view.bucket_fill * self._burst_bytes
        plan = plan_path(
            [self.model.network(rates, nodes) for rates in path],
            start_counts=view.profile_counts,
            move_bytes=self._move_bytes,
            # Within a period the bucket gains what a period brings.
            level_bytes=level + self._period_bytes,
            budget_bytes=self._period_bytes,
            burst_bytes=self._burst_bytes + self._period_bytes,
            ttft_target_s=self.model.target_s,
            weight=self._weight,
            method=PathExchange(screen=3, surcharges=(0.3,)),
        )
        return plan.mixes[0], rates

    def _best_move(self, view: "FleetView", forecast: ForecastState, target: Target) -> int:
        # Worth at the mean load: what pays for a move is the same in the trough as at the peak.
        near = self.forecaster.pattern(forecast, self.settings.ahead_s)
        worth = self.chooser.worth(view, target, near) - self._lost(view, near, target)
        worth = np.where(view.legal, worth, -np.inf)
        best = int(worth.argmax())
        enough = self.settings.local.hysteresis
        return best if worth.flat[best] > enough else view.no_op

    def _lost(
        self, view: "FleetView", near: "NDArray[np.float64]", target: Target
    ) -> "NDArray[np.float64]":
        """Return what the transfer of each move costs, ``[N, S]``, in mean local values.

        While state is on its way, the node serves with what both profiles share.
        """
        unserved = self.chooser.unserved_demand_per_s(view, target, near)
        local = unserved @ self._savings_s.T / self.chooser.unit_s
        held = view.profile
        missing = local[:, : len(self._meet)] - np.take_along_axis(local, self._meet[held], axis=1)
        return self._transfer_part[held] * np.maximum(missing, 0.0)
