"""What an agent is paid for: reward strategies over the statistics of one epoch."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario


class ServiceReward(Protocol):
    """A strategy that values the traffic of one epoch.

    It may have a method ``of_batch(windows)`` as well: the rewards, shape [R], of the
    ``WindowBatch`` of R epochs, each the same number as by itself. Vector environments call it.
    """

    def __call__(self, window: Any) -> float:
        """Return the reward of an epoch's ``WindowStats`` (finite)."""
        ...


@dataclass(frozen=True, kw_only=True)
class CoverageReward:
    """Requests decided as hits in the epoch over the arrivals expected in one.

    The denominator is a constant of the scenario, so that returns add up to hits and a quiet epoch
    counts no more than a busy one.

    Attributes
    ----------
    expected_arrivals : float
        Long-run mean arrivals per epoch.
    """

    expected_arrivals: float

    def __call__(self, window: Any) -> float:
        """Return hits / expected arrivals."""
        return window.hits / self.expected_arrivals

    def of_batch(self, windows: Any) -> "NDArray[np.float64]":
        """Return hits / expected arrivals of many epochs."""
        return windows.hits / self.expected_arrivals


@dataclass(frozen=True, kw_only=True)
class SquashedTtftReward:
    """First tokens over the expected arrivals, each worth ``target / (target + mean TTFT)``.

    1 for instant answers, 1/2 when the mean TTFT equals the target, towards 0 beyond it; smooth
    where coverage is a step.

    Attributes
    ----------
    expected_arrivals : float
        Long-run mean arrivals per epoch.
    ttft_target_s : float
        TTFT worth one half, in seconds.
    """

    expected_arrivals: float
    ttft_target_s: float

    def __call__(self, window: Any) -> float:
        """Return the squashed mean TTFT, weighted by the first tokens of the epoch."""
        if window.first_tokens == 0:
            return 0.0
        mean_s = window.ttft_sum_s / window.first_tokens
        worth = self.ttft_target_s / (self.ttft_target_s + mean_s)
        return window.first_tokens / self.expected_arrivals * worth

    def of_batch(self, windows: Any) -> "NDArray[np.float64]":
        """Return the rewards of many epochs."""
        # Without first tokens the mean is of no account: the last line makes it 0.
        mean_s = windows.ttft_sum_s / np.maximum(windows.first_tokens, 1)
        worth = self.ttft_target_s / (self.ttft_target_s + mean_s)
        return windows.first_tokens / self.expected_arrivals * worth


@dataclass(frozen=True, kw_only=True)
class GoodputReward:
    """Output tokens of the hits over the output tokens expected in an epoch.

    As coverage, with each request weighted by the length of its answer.

    Attributes
    ----------
    expected_tokens : float
        Long-run mean output tokens asked for per epoch.
    """

    expected_tokens: float

    def __call__(self, window: Any) -> float:
        """Return output tokens of hits / expected output tokens."""
        return window.goodput_tokens_sum / self.expected_tokens

    def of_batch(self, windows: Any) -> "NDArray[np.float64]":
        """Return output tokens of hits / expected output tokens of many epochs."""
        return windows.goodput_tokens_sum / self.expected_tokens


def _valued(service: ServiceReward, window: Any) -> float:
    """Return what a strategy says of an epoch; refuse what is no number."""
    value = float(service(window))
    if not math.isfinite(value):
        raise ValueError(f"reward {service!r} gave {value}: it must be finite")
    return value


@dataclass(frozen=True, kw_only=True)
class PlacementReward:
    """The reward of one epoch: its service less the price of the bytes moved.

    Attributes
    ----------
    service : ServiceReward
        Values the traffic.
    migration_weight : float
        Price of moving as many bytes as the fleet can use.
    fleet_memory_bytes : float
        Usable memory of the mean number of nodes.
    """

    service: ServiceReward
    migration_weight: float
    fleet_memory_bytes: float

    def components(self, window: Any) -> tuple[float, float]:
        """Return the service and the migration part; the reward is their sum.

        Parameters
        ----------
        window : WindowStats
            Of one epoch.

        Returns
        -------
        service, migration : float
            Migration is zero or negative.

        Raises
        ------
        ValueError
            If the strategy's value is not finite.
        """
        migration = self.migration_weight * window.bytes_moved / self.fleet_memory_bytes
        return _valued(self.service, window), 0.0 - float(migration)

    def batch_components(self, windows: Any) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
        """Return the service and the migration parts of many epochs.

        Parameters
        ----------
        windows : WindowBatch
            Of R epochs. A service that cannot value them at once is asked about each.

        Returns
        -------
        service, migration : ndarray, shape [R]

        Raises
        ------
        ValueError
            If the strategy's value of an epoch is not finite.
        """
        migration = self.migration_weight * windows.bytes_moved / self.fleet_memory_bytes
        of_batch = getattr(self.service, "of_batch", None)
        if of_batch is None:
            service = np.array([_valued(self.service, window) for window in windows.stats()])
        else:
            service = of_batch(windows)
            if not np.isfinite(service).all():
                raise ValueError(f"reward {self.service!r} gave {service}: it must be finite")
        return service, 0.0 - migration


def expected_arrivals_per_epoch(scenario: "Scenario") -> float:
    """Return the long-run mean requests per control epoch, over the whole region."""
    return scenario.compile().mean_rate_per_s * scenario.control.epoch_s


def service_reward(
    scenario: "Scenario", kind: str, expected_arrivals: float | None = None
) -> ServiceReward:
    """Return the strategy of that name for a scenario.

    Parameters
    ----------
    scenario : Scenario
        Gives the constants.
    kind : {"coverage", "squashed_ttft", "goodput"}
    expected_arrivals : float, optional
        Mean arrivals of the span that is valued; those of a control epoch if omitted.

    Raises
    ------
    ValueError
        If no strategy has that name.
    """
    arrivals = expected_arrivals
    if arrivals is None:
        arrivals = expected_arrivals_per_epoch(scenario)
    if kind == "coverage":
        return CoverageReward(expected_arrivals=arrivals)
    if kind == "squashed_ttft":
        return SquashedTtftReward(
            expected_arrivals=arrivals, ttft_target_s=scenario.objective.ttft_target_s
        )
    if kind == "goodput":
        world = scenario.compile()
        tokens = float(world.type_share @ world.output_tokens)
        return GoodputReward(expected_tokens=arrivals * tokens)
    raise ValueError(f"reward is {kind!r}: it must be coverage, squashed_ttft or goodput")


def placement_reward(
    scenario: "Scenario", service: "str | ServiceReward | None" = None
) -> PlacementReward:
    """Return the reward of a scenario's objective.

    Parameters
    ----------
    scenario : Scenario
        ``objective`` gives the default strategy and the migration weight.
    service : str or ServiceReward, optional
        Another strategy, by name or as an object.

    Raises
    ------
    ValueError
        If no strategy has that name.
    """
    chosen = scenario.objective.kind if service is None else service
    return PlacementReward(
        service=service_reward(scenario, chosen) if isinstance(chosen, str) else chosen,
        migration_weight=scenario.objective.migration_weight,
        fleet_memory_bytes=scenario.fleet_memory_bytes,
    )


@dataclass(frozen=True, kw_only=True)
class RoutingReward:
    """The reward of one routed request: what was decided meanwhile, less a price for rejections.

    Attributes
    ----------
    service : ServiceReward
        Values what the fleet did since the step before.
    rejection_weight : float
        Price of each rejected request, in hits.
    """

    service: ServiceReward
    rejection_weight: float

    def components(self, window: Any) -> tuple[float, float]:
        """Return the service and the rejection part; the reward is their sum.

        Parameters
        ----------
        window : object
            With the counts of a step as attributes: ``hits``, ``first_tokens``, ``ttft_sum_s``,
            ``rejected`` and the others of a ``WindowStats`` that are single numbers.

        Returns
        -------
        service, rejections : float
            The second is zero or negative.

        Raises
        ------
        ValueError
            If the strategy's value is not finite.
        """
        return _valued(self.service, window), 0.0 - self.rejection_weight * window.rejected


def routing_reward(
    scenario: "Scenario",
    service: "str | ServiceReward | None" = None,
    rejection_weight: float = 0.0,
) -> RoutingReward:
    """Return the reward of routed requests, one of which arrives per step.

    Parameters
    ----------
    scenario : Scenario
        ``objective.kind`` is the default strategy.
    service : str or ServiceReward, optional
        Another strategy, by name or as an object.
    rejection_weight : float
        Price of a rejected request, in hits.

    Raises
    ------
    ValueError
        If no strategy has that name.
    """
    chosen = scenario.objective.kind if service is None else service
    return RoutingReward(
        service=service_reward(scenario, chosen, 1.0) if isinstance(chosen, str) else chosen,
        rejection_weight=rejection_weight,
    )
