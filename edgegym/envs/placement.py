"""``EdgeGym/Placement-v0``: which node should hold which prefixes, one move at a time."""

import os
from typing import TYPE_CHECKING, Any, Self

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding

from edgegym.envs.checks import check_kinds, check_options, check_state
from edgegym.envs.info import (
    INFO_KEYWORDS,
    INFO_MEANING,
    add_epoch,
    epoch_values,
    no_episode,
    no_epoch,
)
from edgegym.envs.tier_wait import advertised_tier_wait_s
from edgegym.interface.actions import PlacementActions, write_action_mask
from edgegym.interface.layout import ObservationLayout
from edgegym.interface.observation import Observer
from edgegym.interface.reward import ServiceReward, placement_reward
from edgegym.simulator import Fleet, IllegalMove
from edgegym.world.resolve import resolve_scenario
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.envs.rendering import FleetRenderer
    from edgegym.simulator import WindowStats

__all__ = ["INFO_KEYWORDS", "INFO_MEANING", "PlacementEnv"]


class PlacementEnv(gymnasium.Env):
    """Place and migrate the prompt prefixes that edge GPUs hold.

    ## Description

    Users in a region ask large language models on edge nodes. A request is answered sooner where
    the prefix of its prompt is already held as KV cache, but state takes memory from running
    requests, so a node that holds much serves few at once. A router weighs radio distance, residual
    prefill and waiting. The agent changes what nodes hold, within a budget of bytes, while demand
    moves.

    One step is one decision. With ``control.moves_per_epoch`` = 1 a step starts at most one move,
    then the fleet serves traffic for one epoch (``control.epoch_s``). With k > 1 the clock stands
    still until the k-th move or a no-op; then the epoch runs, and its reward comes with that step.

    ## Action Space

    ``Discrete(N·S + 1)``: action ``node * S + profile`` starts the move of a node to a profile; the
    last action moves nothing. N is the most nodes an episode may have, S the number of profiles.

    Legal are moves of a node that is up and receives nothing, to another profile that fits it, at a
    price (the bytes it lacks) that the token bucket holds. ``action_masks()`` and
    ``info["action_mask"]`` (also of reset) say which, as bool ``[N·S + 1]``. An illegal action runs
    the epoch as a no-op and is counted in ``info["illegal_actions"]``. An action that isn't an
    integer of the space raises TypeError or ValueError.

    ## Observation Space

    ``Box(0, 1, (N·K + G,), float32)``: N rows of K node features, then G global ones, described by
    ``env.unwrapped.layout``. Counts and rates are written as ``x / (x + scale)``;
    ``layout.decode(observation, name)`` undoes it.

    | scope | feature | size | value |
    |---|---|---|---|
    | node | profile | S | one-hot of the profile held or being received |
    | node | backlog | 1 | requests in flight, queued and running, per slot |
    | node | receiving | 1 | fraction of the transfer left (1 while the node drains) |
    | node | up | 1 | whether the node serves |
    | node | price | S | bytes of the move over bytes in the bucket; above 1/2: too expensive |
    | node | demand | F | requests/s of each family whose nearest node it is |
    | node | near_demand | F | its weighted mean over the nodes around |
    | node | near_capacity | S | slots per node around, by profile |
    | node | near_backlog | 1 | requests per slot around |
    | global | family_demand | F | requests/s of the family over the long-run requests/s of all |
    | global | profile_share | S | fraction of up nodes with each profile |
    | global | bucket | 1 | fill of the token bucket |
    | global | load | 1 | requests per slot of the whole fleet |
    | global | clock | 2 | with ``observe_clock``: (1 + sine)/2 and (1 + cosine)/2 of the time |

    Rates are estimates from counts (exponential mean, 30 s). Nothing of the true demand or the
    future is shown.

    ## Rewards

    Of the step that runs an epoch: requests decided as hits (first token within the target) over
    the arrivals expected per epoch, minus ``objective.migration_weight`` times the bytes moved over
    the fleet's usable memory. ``objective.kind`` or the argument ``reward`` choose other values of
    the traffic (``squashed_ttft``, ``goodput``). The parts are ``info["reward_service"]`` and
    ``info["reward_migration"]``.

    ## Starting State

    Node positions, demand and the profiles (drawn from ``initial.mix``) follow from the seed alone:
    two policies meet the same requests. The bucket is full. ``initial.warmup_s`` seconds of traffic
    pass before the first observation, unrewarded.

    ## Episode End

    A continuing task: ``terminated`` is always False; ``truncated`` after
    ``control.horizon_epochs`` epochs. Stepping on after that goes on with the same episode, with
    ``truncated`` True each time: call ``reset()`` for the next one.

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | scenario | "moving-hotspot" | a preset's name, a YAML or JSON file, or a Scenario |
    | overrides | None | changes by dotted path, as ``{"demand.rate_per_node": 4.0}`` |
    | observe_clock | False | append the time of day |
    | reward | None | name or strategy for the traffic's value instead of the scenario's |
    | render_mode | None | "rgb_array" or "human" (a window if there is a display) |

    ```python
    import gymnasium as gym

    env = gym.make("edgegym:EdgeGym/Placement-v0", scenario="toy")
    observation, info = env.reset(seed=0)
    truncated = False
    while not truncated:
        action = env.action_space.sample(info["action_mask"].astype("int8"))
        observation, reward, _, truncated, info = env.step(action)
    print(info["episode_hits"] / info["episode_decided"])
    env.close()
    ```

    ## Vectorized environment

    ``gym.make_vec("edgegym:EdgeGym/Placement-v0", num_envs=64, autoreset_mode="same_step")`` makes
    a native one, :class:`~edgegym.envs.vector.PlacementVectorEnv`: all fleets in one state, stepped
    by threads, with the same results to the bit. ``vectorization_mode="sync"`` and ``"async"`` work
    as well, with fork, forkserver and spawn, in all autoreset modes.

    ## Version History

    * v0: first version.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 8}  # noqa: RUF012 - as in Env

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"render_mode is {render_mode!r}: it must be None, {known}")
        check_kinds(observe_clock, reward)
        self.scenario = resolve_scenario(scenario, overrides)
        self.observe_clock = observe_clock
        self.reward = placement_reward(self.scenario, reward)
        self.render_mode = render_mode
        self.layout = ObservationLayout.from_scenario(self.scenario, observe_clock=observe_clock)
        self.actions = PlacementActions(
            num_nodes=self.layout.num_nodes, num_profiles=self.layout.num_profiles
        )
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, shape=(self.layout.size,), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(self.actions.size)
        self._tier_wait_s = advertised_tier_wait_s(self.scenario)
        self._observer = Observer(self.scenario, self.layout)
        self._fleet: Fleet | None = None
        self._epoch = 0
        self._moves = 0
        self._episode = no_episode()
        self._episode_stats: WindowStats | None = None
        self._renderer: FleetRenderer | None = None

    @property
    def fleet(self) -> Fleet:
        """The simulated fleet of the current episode.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        """
        if self._fleet is None:
            raise ResetNeeded("the environment has no episode yet: call reset() first")
        return self._fleet

    @property
    def epoch(self) -> int:
        """Epochs of this episode that have run."""
        return self._epoch

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, shape [N, F]."""
        return self._observer.demand_per_s

    @property
    def episode_stats(self) -> "WindowStats | None":
        """Statistics of the episode so far without the warm-up; None before the first epoch."""
        return self._episode_stats

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> "tuple[NDArray[np.float32], dict[str, Any]]":
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Starts a new sequence of episodes; without it the sequence goes on.
        options : dict, optional
            There are none yet: None or empty.

        Returns
        -------
        observation : ndarray of float32, shape [N·K + G]
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
        super().reset(seed=seed)
        word = int(self.np_random.integers(0, 2**64, dtype=np.uint64))
        fleet = Fleet(self.scenario, seed=word, tier_wait_s=self._tier_wait_s)
        self._fleet = fleet
        self._epoch = 0
        self._moves = 0
        self._episode = no_episode()
        self._episode_stats = None
        self._observer.reset(fleet.state)
        if self.scenario.initial.warmup_s > 0.0:
            window = fleet.advance(self.scenario.initial.warmup_s)
            self._observer.update(window.nearest_demand, window.seconds)
        if self.render_mode is not None:
            self._make_renderer().start()
            self._show()
        return self._observe(), self._info(no_epoch())

    def step(self, action: Any) -> "tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]":
        """Start a move, or none, and run the epoch when it is due.

        Parameters
        ----------
        action : int
            ``node * S + profile``, or N·S to move nothing.

        Returns
        -------
        observation : ndarray of float32, shape [N·K + G]
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
        fleet = self.fleet
        move = self.actions.decode(action)
        illegal = 0
        clock_stands = False
        if move is not None:
            try:
                fleet.start_move(*move)
            except IllegalMove:
                illegal = 1
            else:
                self._moves += 1
                clock_stands = self._moves < self.scenario.control.moves_per_epoch
        if clock_stands:
            return self._observe(), 0.0, False, False, self._info(no_epoch())

        window = fleet.advance(self.scenario.control.epoch_s)
        self._observer.update(window.nearest_demand, window.seconds)
        service, migration = self.reward.components(window)
        values = epoch_values(
            window,
            nodes=int(fleet.state.node_count[0]),
            moves=self._moves,
            illegal_actions=illegal,
            reward=(service, migration),
        )
        self._moves = 0
        self._epoch += 1
        self._episode = add_epoch(self._episode, values)
        self._episode_stats = (
            window if self._episode_stats is None else self._episode_stats + window
        )
        if self.render_mode is not None:
            self._make_renderer().record(fleet, values)
            self._show()
        truncated = self._epoch >= self.scenario.control.horizon_epochs
        return self._observe(), service + migration, False, truncated, self._info(values)

    def action_masks(self) -> "NDArray[np.bool_]":
        """Return which actions are legal now, bool of shape [N·S + 1] (a fresh array)."""
        fleet = self.fleet
        state = fleet.state
        mask = np.empty(self.actions.size, dtype=np.bool_)
        write_action_mask(
            state.up[0],
            state.receiving[0],
            state.profile[0],
            state.slots[0],
            fleet.world.move_bytes,
            fleet.bucket_bytes,
            mask,
        )
        return mask

    def render(self) -> "NDArray[np.uint8] | None":
        """Return an RGB image ``[540, 960, 3]`` of the fleet; None unless in "rgb_array" mode."""
        if self.render_mode == "rgb_array":
            fleet = self.fleet
            return self._make_renderer().draw(fleet, self.demand_per_s)
        return None

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def get_state(self) -> dict[str, Any]:
        """Return all that the rest of the episode, and later ones, depend on, as plain data."""
        return {
            "np_random": self.np_random.bit_generator.state,
            "np_random_seed": self._np_random_seed,
            "fleet": None if self._fleet is None else self._fleet.get_state(),
            "observer": self._observer.get_state(),
            "epoch": self._epoch,
            "moves": self._moves,
            "episode": dict(self._episode),
            "episode_stats": self._episode_stats,
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
        check_state(state, self.demand_per_s.shape)
        generator, _ = seeding.np_random(0)
        generator.bit_generator.state = state["np_random"]
        fleet = None
        if state["fleet"] is not None:
            fleet = self._fleet
            if fleet is None:
                fleet = Fleet(self.scenario, tier_wait_s=self._tier_wait_s)
            fleet.set_state(state["fleet"])  # refuses before it changes anything
        self._fleet = fleet
        self._np_random = generator
        self._np_random_seed = state["np_random_seed"]
        self._observer.set_state(state["observer"])
        self._epoch = state["epoch"]
        self._moves = state["moves"]
        self._episode = dict(state["episode"])
        self._episode_stats = state["episode_stats"]
        if self._renderer is not None:
            self._renderer.start()

    def fork(self) -> Self:
        """Return an independent environment that continues identically (without a window)."""
        twin = type(self)(
            self.scenario,
            observe_clock=self.observe_clock,
            reward=self.reward.service,
        )
        twin.set_state(self.get_state())
        return twin

    def __getstate__(self) -> dict[str, Any]:
        # Figures and windows don't travel: a copy makes its own when it draws.
        return {**self.__dict__, "_renderer": None}

    def _observe(self) -> "NDArray[np.float32]":
        return self._observer.observe(self.fleet.state, self.fleet.bucket_bytes)

    def _info(self, epoch: dict[str, int | float]) -> dict[str, Any]:
        return {**epoch, **self._episode, "action_mask": self.action_masks()}

    def _make_renderer(self) -> "FleetRenderer":
        if self._renderer is None:
            from edgegym.envs.rendering import FleetRenderer

            self._renderer = FleetRenderer(self.scenario)
        return self._renderer

    def _show(self) -> None:
        if self.render_mode == "human":
            self._make_renderer().show(self.fleet, self.demand_per_s)
