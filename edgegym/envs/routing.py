"""``EdgeGym/Routing-v0``: where each request goes, one request at a time."""

import os
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from gymnasium.utils import seeding

from edgegym.envs.base import FleetEnv
from edgegym.envs.checks import check_options
from edgegym.envs.routing_checks import check_routing_state, checked_count, checked_weight
from edgegym.envs.routing_info import (
    INFO_KEYWORDS,
    INFO_MEANING,
    INFO_SPAN,
    STEP_KEYS,
    StepCounts,
    no_episode,
    no_step,
    step_counts,
)
from edgegym.interface.reward import ServiceReward, routing_reward
from edgegym.interface.routing import RoutingActions, RoutingLayout
from edgegym.interface.routing_observation import RoutingObserver
from edgegym.simulator.asking import AskingFleet
from edgegym.simulator.columns import IN_SLOTS, SLOTS
from edgegym.simulator.records import NOBODY, ORIGIN
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.simulator import WindowStats

__all__ = ["INFO_KEYWORDS", "INFO_MEANING", "INFO_SPAN", "RoutingEnv"]

Step = tuple["NDArray[np.float32]", float, bool, bool, dict[str, Any]]


class RoutingEnv(FleetEnv):
    """Route each request: to a node, with a fetch or without, to the origin, or nowhere."""

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        candidates: int = 8,
        horizon_requests: int | None = None,
        rejection_weight: float = 0.1,
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, overrides, observe_clock, reward, render_mode)
        self.reward = routing_reward(self.scenario, reward, checked_weight(rejection_weight))
        self.horizon_requests = self._usual_horizon()
        if horizon_requests is not None:
            self.horizon_requests = checked_count("horizon_requests", horizon_requests)
        self.layout = RoutingLayout.from_scenario(
            self.scenario, checked_count("candidates", candidates), observe_clock=observe_clock
        )
        self.actions = RoutingActions(num_candidates=self.layout.num_candidates)
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, shape=(self.layout.size,), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(self.actions.size)
        self._router = RoutingObserver(self.scenario, self.layout)
        self._fleet: AskingFleet | None = None
        self._routed = 0
        self._before: list[int] = []
        self._episode = no_episode()
        self._chart = _ChartPoint()

    def _usual_horizon(self) -> int:
        """Return the requests expected in as many epochs as an episode of placement has."""
        control, rate = self.scenario.control, self.scenario.compile().mean_rate_per_s
        return max(1, round(control.horizon_epochs * control.epoch_s * rate))

    @property
    def fleet(self) -> AskingFleet:
        """The simulated fleet of the current episode, at the request that is to be routed.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        """
        self._require_episode()
        assert self._fleet is not None
        return self._fleet

    @property
    def routed(self) -> int:
        """Requests of this episode that have been routed, without the warm-up."""
        return self._routed

    @property
    def epoch(self) -> int:
        """Control epochs that this episode has lasted."""
        since_s = self.fleet.now_s - self.scenario.initial.warmup_s
        return int(since_s / self.scenario.control.epoch_s)

    @property
    def candidates(self) -> "NDArray[np.int64]":
        """Node of each row of the last observation, ``[K]``, -1 where there is none (a copy)."""
        return self._router.nodes.copy()

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Mean requests/s of this episode nearest to each node, by family, shape [N, F]."""
        fleet = self.fleet
        seconds = fleet.now_s - self.scenario.initial.warmup_s
        return fleet.state.window_nearest_demand[0] / max(seconds, self.scenario.control.epoch_s)

    @property
    def episode_stats(self) -> "WindowStats | None":
        """Statistics of the episode so far without the warm-up; None before the first request."""
        return self.fleet.fork().close_window() if self._routed else None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> "tuple[NDArray[np.float32], dict[str, Any]]":
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Starts a new sequence of episodes; without it the sequence goes on.
        options : dict, optional
            There are none: None or empty.

        Returns
        -------
        observation : ndarray of float32
            Of the first request after the warm-up, in the order of ``layout``.
        info : dict
            The keys of every step.

        Raises
        ------
        TypeError
            If `options` is neither None nor a mapping.
        ValueError
            If it has a key.
        """
        check_options(options)
        gymnasium.Env.reset(self, seed=seed)
        fleet = self._new_fleet(int(self.np_random.integers(0, 2**64, dtype="uint64")))
        if self.scenario.initial.warmup_s > 0.0:
            fleet.advance(self.scenario.initial.warmup_s)
        fleet.ask()
        self._fleet = fleet
        self._routed = 0
        self._episode = no_episode()
        observation = self._observe()
        self._before = self._router.totals.tolist()
        if self.render_mode is not None:
            self._chart = _ChartPoint()
            self._make_renderer().start()
            self._show()
        return observation, self._info(no_step())

    def _new_fleet(self, word: int) -> AskingFleet:
        """Return the fleet of an episode at time 0."""
        return AskingFleet(self.scenario, seed=word, tier_wait_s=self._tier_wait_s)

    def step(self, action: Any) -> Step:
        """Route a request and serve until the next one.

        Parameters
        ----------
        action : int
            ``2 * candidate + fetch``, 2·K for the origin, 2·K + 1 to reject.

        Returns
        -------
        observation : ndarray of float32
        reward : float
        terminated : bool
            Always False.
        truncated : bool
            Whether the horizon is reached.
        info : dict

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        TypeError, ValueError
            If the action isn't an integer of the action space.
        """
        self._require_episode()
        number = self.actions.check(action)
        if not self._router.mask[number]:
            return self._route(None, False, 1)
        if number >= self.actions.origin:
            return self._route(ORIGIN if number == self.actions.origin else NOBODY, False, 0)
        return self._route(self._router.nodes.item(number >> 1), bool(number & 1), 0)

    def step_by_router(self) -> Step:
        """Let the scenario's router, and its controller of fetches, decide the request.

        Returns
        -------
        tuple
            As of :meth:`step`. An episode of nothing else is to the bit what the scenario does
            without an agent.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        """
        self._require_episode()
        return self._route(None, False, 0)

    def _route(self, node: int | None, fetch: bool, illegal: int) -> Step:
        """Send the request, and return what ``step`` does."""
        fleet = self.fleet
        since_s = fleet.now_s
        if fleet.is_asking:
            fleet.answer(node, fetch)
            self._routed += 1
        observation = self._observe()
        totals = self._router.totals.tolist()
        counts = step_counts(self._before, totals)
        self._before = totals
        service, rejections = self.reward.components(counts)
        numbers = (*counts, fleet.now_s - since_s, illegal, service, rejections)
        self._episode = {
            name: total + number
            for (name, total), number in zip(self._episode.items(), numbers, strict=True)
        }
        if self.render_mode is not None:
            self._record(counts)
        truncated = self._routed >= self.horizon_requests or not fleet.is_asking
        info = self._info(dict(zip(STEP_KEYS, numbers, strict=True)))
        return observation, service + rejections, False, truncated, info

    def action_masks(self) -> "NDArray[np.bool_]":
        """Return which actions are legal now, bool of shape [2·K + 2] (a fresh array)."""
        self._require_episode()
        return self._router.mask.copy()

    def get_state(self) -> dict[str, Any]:
        """Return all that the rest of the episode, and later ones, depend on, as plain data."""
        return {
            "np_random": self.np_random.bit_generator.state,
            "np_random_seed": self._np_random_seed,
            "fleet": None if self._fleet is None else self._fleet.get_state(),
            "routed": self._routed,
            "totals": list(self._before),
            "episode": dict(self._episode),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from :meth:`get_state` of an environment of the same scenario.

        A state that is refused changes nothing.

        Raises
        ------
        TypeError
            If the state is no mapping.
        ValueError
            If a part of it is missing, or it is of a scenario with other nodes, profiles, types or
            families.
        """
        check_routing_state(state)
        generator, _ = seeding.np_random(0)
        generator.bit_generator.state = state["np_random"]
        fleet = None
        if state["fleet"] is not None:
            fleet = self._fleet
            if fleet is None:
                fleet = self._new_fleet(0)
            fleet.set_state(state["fleet"])  # refuses before it changes anything
        self._fleet = fleet
        self._np_random = generator
        self._np_random_seed = state["np_random_seed"]
        self._routed = state["routed"]
        self._before = list(state["totals"])
        self._episode = dict(state["episode"])
        if fleet is not None:
            self._observe()  # the candidates of the request at which it stands
        if self._renderer is not None:
            self._renderer.start()

    def _arguments(self) -> dict[str, Any]:
        return {
            **super()._arguments(),
            "candidates": self.layout.num_candidates,
            "horizon_requests": self.horizon_requests,
            "rejection_weight": self.reward.rejection_weight,
        }

    def _observe(self) -> "NDArray[np.float32]":
        return self._router.observe(self.fleet)

    def _info(self, epoch: dict[str, int | float]) -> dict[str, Any]:
        return {**epoch, **self._episode, "action_mask": self._router.mask.copy()}

    def _record(self, counts: StepCounts) -> None:
        """Add to the charts, once per control epoch."""
        chart, fleet = self._chart, self.fleet
        chart.hits += counts.hits
        chart.decided += counts.decided
        if self.epoch <= chart.epoch:
            return
        work = fleet.state.node_work[0, : fleet.world.max_nodes]
        values = {
            "hits": chart.hits,
            "decided": chart.decided,
            "utilization": float(work[:, IN_SLOTS].sum()) / max(int(work[:, SLOTS].sum()), 1),
        }
        self._make_renderer().record(fleet, values)
        self._chart = _ChartPoint(epoch=self.epoch)
        self._show()


class _ChartPoint:
    """What has been decided since the last point of the charts."""

    def __init__(self, epoch: int = 0) -> None:
        self.epoch = epoch
        self.hits = 0
        self.decided = 0
