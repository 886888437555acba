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
from edgegym.envs.settings import Setting
from edgegym.interface.reward import RoutingReward, ServiceReward, routing_reward
from edgegym.interface.routing import RoutingActions, RoutingLayout
from edgegym.interface.routing_observation import TOTALS, RoutingObserver
from edgegym.simulator.asking import AskingFleet
from edgegym.simulator.columns import IN_SLOTS, SLOTS
from edgegym.simulator.records import NOBODY, ORIGIN
from edgegym.world.draw import ScenarioDraw
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.simulator import WindowStats

__all__ = ["INFO_KEYWORDS", "INFO_MEANING", "INFO_SPAN", "RoutingEnv"]

Step = tuple["NDArray[np.float32]", float, bool, bool, dict[str, Any]]


class RoutingEnv(FleetEnv):
    """Route each request: to a node, with a fetch or without, to the origin, or nowhere.

    ## Description

    The fleet of :class:`~edgegym.envs.placement.PlacementEnv` seen by its router. What nodes hold
    is given (drawn from ``initial.mix`` and held, or cached by the nodes themselves with
    ``cache: lru``); the agent decides where each request is served, and whether the prefix that a
    node lacks is fetched over the backhaul or computed there.

    One step is one request. The fleet stands still at the moment at which a request is made. The
    agent answers, and traffic is served until the next request is made. Told what the scenario's
    own router would have decided, the fleet is the same to the bit as without an agent.

    A request is asked about once. If it has to be sent again, because its node failed or could not
    take it, the scenario's router sends it.

    The *candidates* are the C nodes nearest to the user that are up, that admission control has not
    closed, and that can serve the request (class, model and tags), nearest first, ties to the lower
    index. With C = 12 the node that the router ``load_aware`` chooses is among them for 99 % of the
    requests in most presets (94 % in ``scarce-backhaul``); with C = N for all.

    ## Action Space

    ``Discrete(2·C + 2)``:

    * ``2 * candidate``: to that candidate, which computes what it does not hold;
    * ``2 * candidate + 1``: to that candidate, which fetches what it lacks from the deepest holder,
      or the origin's store, if there is more than it has when the request lands; else it computes;
    * ``2·C``: to the origin;
    * ``2·C + 1``: rejected. Always legal.

    Legal are the candidates there are. A fetch is legal where the link is up, somebody who is up
    holds more of the prefix than the candidate advertises, and having it saves prefill; never with
    ``cache: lru``, whose nodes only compute. The scenario's ``fetch.controller`` does not limit the
    agent. The origin is legal if the scenario has one that is up, and any node is up.
    ``action_masks()`` and ``info["action_mask"]`` (also of reset) say which, as bool ``[2·C + 2]``.

    After an illegal action the scenario's router decides the request, and its controller whether to
    fetch; it is counted in ``info["illegal_actions"]``. An action that isn't an integer of the
    space raises TypeError or ValueError.

    ## Observation Space

    ``Box(0, 1, (C·K + G,), float32)``: C rows of K candidate features, then G global ones (the
    request and the fleet), described by ``env.unwrapped.layout``. Values without a bound are
    written as ``x / (x + scale)``; ``layout.decode(observation, name)`` undoes it. Rows without a
    candidate are zero.

    | scope | feature | size | value |
    |---|---|---|---|
    | candidate | present | 1 | whether there is such a candidate |
    | candidate | radio | 1 | seconds until the request lands there |
    | candidate | prefill | 1 | seconds of prefill with the prefix that it advertises |
    | candidate | hit | 1 | prompt tokens that it advertises to hold |
    | candidate | wait | 1 | seconds of waiting that it advertises |
    | candidate | backlog | 1 | requests per slot as reported; 0 if other waits are advertised |
    | candidate | ttft | 1 | predicted seconds to the first token, with the router's margin |
    | candidate | fetchable | 1 | prompt tokens that a fetch would add; 0 where it isn't legal |
    | candidate | transfer | 1 | predicted seconds for which they would flow |
    | candidate | fetch_ttft | 1 | predicted seconds to the first token with the fetch |
    | global | family | F | one-hot of the request's family |
    | global | input_tokens | 1 | prompt tokens |
    | global | prefix_tokens | 1 | those of them that a prefix of the catalogue spans |
    | global | target | 1 | seconds within which the first token is a hit |
    | global | origin_up | 1 | whether the origin is legal |
    | global | origin_ttft | 1 | predicted seconds to the first token there |
    | global | load | 1 | requests per slot of the whole fleet, as reported |
    | global | rejected | 1 | share of the requests decided in this episode |
    | global | link_rate | 1 | rate advertised for one more fetch over that of an idle link |
    | global | clock | 2 | with ``observe_clock``: (1 + sine)/2 and (1 + cosine)/2 of the time |

    All of it is what a router knows: reports as old as ``telemetry.period_s`` makes them, the
    catalogue as old as ``telemetry.catalogue_period_s``, the link as it was advertised last (with
    ``fetch.controller: joint`` as it is). Nothing of the future, nor how long an answer will be.

    ## Rewards

    Requests decided as hits (first token within the target) since the last step, minus
    ``rejection_weight`` for each rejected one: a return is ``info["episode_hits"]`` less the weight
    times ``info["episode_rejected"]``. One request arrives per step, so return over steps is about
    the coverage less the weight times the share rejected, in any scenario. Requests of the warm-up
    count if they are decided in the episode; what is undecided at its end counts for nobody. A hit
    is paid when the first token comes, some steps after the action that earned it.

    ``objective.kind`` or the argument ``reward`` choose other values of the traffic, as in
    ``Placement-v0`` but with one arrival expected: ``squashed_ttft``, ``goodput``, or a callable
    that is given the counts of the step as attributes (``hits``, ``first_tokens``,
    ``ttft_sum_s``, …). The parts are ``info["reward_service"]`` and
    ``info["reward_rejections"]``.

    [Routing baselines](routing-baselines.md) says what simple rules and routers get.

    ## Starting State

    Nodes, demand and the profiles that nodes hold follow from the seed alone, as in
    ``Placement-v0``: the same requests come in the same order whatever the agent does.
    ``initial.warmup_s`` seconds of traffic, routed by the scenario's router and unrewarded, pass
    before the first observation.

    With a :class:`~edgegym.world.draw.ScenarioDraw`, the seed also decides which scenario the
    episode plays, as in ``Placement-v0``. Scales are those of its reference.

    ## Episode End

    A continuing task: ``terminated`` is always False; ``truncated`` after ``horizon_requests``
    requests, by default as many as are expected in ``control.horizon_epochs`` epochs, or when a
    trace that is not repeated has no more. Stepping on after that goes on with the same episode,
    with ``truncated`` True each time: call ``reset()`` for the next one.

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | scenario | "moving-hotspot" | a preset, a YAML or JSON file, a Scenario, or a ScenarioDraw |
    | overrides | None | changes by dotted path, as ``{"demand.rate_per_node": 4.0}`` |
    | candidates | 12 | C, the nodes that a request may go to |
    | horizon_requests | None | steps of an episode instead of the usual number |
    | rejection_weight | 0.1 | price of a rejected request, in hits |
    | observe_clock | False | append the time of day |
    | reward | None | name or strategy for the traffic's value instead of the scenario's |
    | render_mode | None | "rgb_array" or "human" (a window if there is a display) |

    ```python
    import gymnasium as gym
    from edgegym.policies import LeastPredicted

    env = gym.make("edgegym:EdgeGym/Routing-v0", horizon_requests=2000)
    policy = LeastPredicted(env.unwrapped.layout)
    observation, info = env.reset(seed=0)
    truncated = False
    while not truncated:
        action, _ = policy.predict(observation, action_masks=info["action_mask"])
        observation, reward, _, truncated, info = env.step(action)
    print(info["episode_hits"] / info["episode_decided"])
    env.close()
    ```

    ``env.unwrapped.step_by_router()`` lets the scenario's router decide a request:
    ``overrides={"routing": {"kind": "prefix_aware"}}`` and nothing but that is a baseline.

    ## Vectorized environment

    ``gym.make_vec("edgegym:EdgeGym/Routing-v0", num_envs=8, vectorization_mode="sync")`` steps
    copies one after another, ``"async"`` in processes of their own, with fork, forkserver and
    spawn. All autoreset modes work.

    ## Version History

    * v0: first version.
    """

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        candidates: int = 12,
        horizon_requests: int | None = None,
        rejection_weight: float = 0.1,
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, overrides, observe_clock, reward, render_mode)
        self.rejection_weight = checked_weight(rejection_weight)
        self._horizon = (
            None
            if horizon_requests is None
            else checked_count("horizon_requests", horizon_requests)
        )
        self.layout = RoutingLayout.from_scenario(
            self.draw.layout_scenario,
            checked_count("candidates", candidates),
            observe_clock=observe_clock,
        )
        self.actions = RoutingActions(num_candidates=self.layout.num_candidates)
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, shape=(self.layout.size,), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(self.actions.size)
        self._asking = False
        self._routed = 0
        self._before = [0] * len(TOTALS)
        self._before_s = 0.0
        self._episode = no_episode()
        self._chart = _ChartPoint()
        self._enter(self._setting)

    def _enter(self, setting: Setting) -> None:
        self._setting = setting
        self._router = RoutingObserver(setting.scenario, self.layout)
        self._reward = routing_reward(
            setting.scenario, self._settings.reward, self.rejection_weight
        )
        control, rate = setting.scenario.control, setting.scenario.compile().mean_rate_per_s
        usual = max(1, round(control.horizon_epochs * control.epoch_s * rate))
        self.horizon_requests = usual if self._horizon is None else self._horizon
        """Requests that are routed before an episode is truncated."""

    @property
    def reward(self) -> RoutingReward:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What a step of the current scenario is worth."""
        return self._reward

    @property
    def fleet(self) -> AskingFleet:
        """The simulated fleet of the current episode, at the request that is to be routed.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        """
        fleet = self._require_episode()
        assert isinstance(fleet, AskingFleet)
        return fleet

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
        """Node of each row of the last observation, ``[C]``, -1 where there is none (a copy)."""
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
        word = int(self.np_random.integers(0, 2**64, dtype="uint64"))
        setting = self._settings.of_episode(word)
        fleet = self._new_fleet(setting, word)
        if setting is not self._setting:
            self._enter(setting)
        if self.scenario.initial.warmup_s > 0.0:
            fleet.advance(self.scenario.initial.warmup_s)
        # The episode begins here, a moment before its first request.
        self._before, self._before_s = [0] * len(TOTALS), fleet.now_s
        self._asking = fleet.ask()
        self._fleet = fleet
        self._routed = 0
        self._episode = no_episode()
        observation = self._observe()
        if self.render_mode is not None:
            self._chart = _ChartPoint()
            self._make_renderer().start(self.scenario)
            self._show()
        return observation, self._info(no_step())

    def _new_fleet(self, setting: Setting, word: int) -> AskingFleet:
        """Return the fleet of an episode at time 0."""
        return AskingFleet(setting.scenario, seed=word, tier_wait_s=setting.tier_wait_s)

    def step(self, action: Any) -> Step:
        """Route a request and serve until the next one.

        Parameters
        ----------
        action : int
            ``2 * candidate + fetch``, 2·C for the origin, 2·C + 1 to reject.

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
        if self._asking:
            self._asking = fleet.answer(node, fetch)
            self._routed += 1
        observation = self._observe()
        totals = self._router.totals.tolist()
        counts = step_counts(self._before, totals)
        now_s, since_s = fleet.now_s, self._before_s
        self._before, self._before_s = totals, now_s
        service, rejections = self._reward.components(counts)
        numbers = (*counts, now_s - since_s, illegal, service, rejections)
        self._episode = {
            name: total + number
            for (name, total), number in zip(self._episode.items(), numbers, strict=True)
        }
        if self.render_mode is not None:
            self._record(counts)
        truncated = self._routed >= self.horizon_requests or not self._asking
        info = self._info(dict(zip(STEP_KEYS, numbers, strict=True)))
        return observation, service + rejections, False, truncated, info

    def action_masks(self) -> "NDArray[np.bool_]":
        """Return which actions are legal now, bool of shape [2·C + 2] (a fresh array)."""
        self._require_episode()
        return self._router.mask.copy()

    def get_state(self) -> dict[str, Any]:
        """Return all that the rest of the episode, and later ones, depend on, as plain data."""
        return {
            "np_random": self.np_random.bit_generator.state,
            "np_random_seed": self._np_random_seed,
            "drawn": (self._setting.drawn.index, self._setting.drawn.values),
            "fleet": None if self._fleet is None else self._fleet.get_state(),
            "routed": self._routed,
            "totals": list(self._before),
            "totals_s": self._before_s,
            "episode": dict(self._episode),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from :meth:`get_state` of an environment of the same scenario or draw.

        A state that is refused changes nothing.

        Raises
        ------
        TypeError
            If the state is no mapping.
        ValueError
            If a part of it is missing, or it is of a scenario with other nodes, profiles, types or
            families, or of another draw.
        """
        check_routing_state(state)
        generator, _ = seeding.np_random(0)
        generator.bit_generator.state = state["np_random"]
        setting, fleet = self._settings.first, None
        if state["fleet"] is not None:
            setting, fleet = self._settings.at(*state["drawn"]), self._fleet
            if not isinstance(fleet, AskingFleet) or setting is not self._setting:
                fleet = self._new_fleet(setting, 0)
            fleet.set_state(state["fleet"])  # refuses before it changes anything
        if setting is not self._setting:
            self._enter(setting)
        self._fleet = fleet
        self._asking = fleet is not None and fleet.is_asking
        self._np_random = generator
        self._np_random_seed = state["np_random_seed"]
        self._routed = state["routed"]
        self._before, self._before_s = list(state["totals"]), state["totals_s"]
        self._episode = dict(state["episode"])
        if fleet is not None:
            self._observe()  # the candidates of the request at which it stands
        if self._renderer is not None:
            self._renderer.start(self.scenario)

    def fork_arguments(self) -> dict[str, Any]:
        """Return what else a fork is made with."""
        return {
            **super().fork_arguments(),
            "candidates": self.layout.num_candidates,
            "horizon_requests": self._horizon,
            "rejection_weight": self.rejection_weight,
        }

    def _observe(self) -> "NDArray[np.float32]":
        return self._router.observe(self.fleet)

    def _info(self, epoch: dict[str, int | float]) -> dict[str, Any]:
        return {
            **epoch,
            **self._episode,
            **self._setting.drawn.numbers,
            "action_mask": self._router.mask.copy(),
        }

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
