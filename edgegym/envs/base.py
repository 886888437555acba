"""What the environments of one fleet share: episodes, epochs, rewards, state and pictures."""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, Self

import gymnasium
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding

from edgegym.envs.checks import check_kinds, check_options, check_state
from edgegym.envs.info import add_epoch, epoch_values, no_episode, no_epoch
from edgegym.envs.settings import Setting, Settings
from edgegym.interface.reward import PlacementReward, ServiceReward
from edgegym.simulator import Fleet, IllegalMove
from edgegym.world.draw import ScenarioDraw, resolve_draw
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgegym.envs.rendering import FleetRenderer
    from edgegym.simulator import WindowStats


class FleetObserver(Protocol):
    """Keeps the demand estimates of an episode and writes its observations."""

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, shape [N, F]."""
        ...

    def reset(self, state: Any, b: int = 0) -> None:
        """Start an episode."""
        ...

    def update(self, nearest_demand: "NDArray[np.int64]", seconds: float) -> None:
        """Take the requests of a window into the estimates."""
        ...

    def observe(self, state: Any, bucket_level_bytes: float, b: int = 0) -> "NDArray[np.float32]":
        """Return a fresh flat observation."""
        ...

    def get_state(self) -> dict[str, Any]:
        """Return the estimates as plain data."""
        ...

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore them."""
        ...


class FleetEnv(gymnasium.Env):
    """An environment around one simulated fleet that serves traffic epoch by epoch.

    A subclass gives ``layout`` and both spaces, makes observers, calls :meth:`_enter` when it is
    made, and says in ``step`` what an action does before the epoch runs.

    Parameters
    ----------
    scenario : str, path-like, Scenario or ScenarioDraw
        The world, or which worlds episodes play.
    overrides : dict, optional
        Changes of the scenario by dotted path; of all of them in a draw.
    observe_clock : bool
        Whether observations have the time of day.
    reward : str or ServiceReward, optional
        Name or strategy for the traffic's value instead of the scenario's.
    render_mode : str, optional
        "rgb_array" or "human".

    Raises
    ------
    TypeError, ValueError
        If an argument is none of these.
    """

    metadata = {"render_modes": ["rgb_array", "human"], "render_fps": 8}  # noqa: RUF012 - as in Env

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw",
        overrides: dict[str, Any] | None,
        observe_clock: bool,
        reward: "str | ServiceReward | None",
        render_mode: str | None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            known = ", ".join(self.metadata["render_modes"])
            raise ValueError(f"render_mode is {render_mode!r}: it must be None, {known}")
        check_kinds(observe_clock, reward)
        self.draw = resolve_draw(scenario, overrides)
        """Which scenario an episode plays."""
        self.observe_clock = observe_clock
        self.render_mode = render_mode
        self._settings = Settings(self.draw, reward)
        self._setting = self._settings.first
        self._observer: FleetObserver
        self._fleet: Fleet | None = None
        self._epoch = 0
        self._moves = 0
        self._episode = no_episode()
        self._episode_stats: WindowStats | None = None
        self._renderer: FleetRenderer | None = None

    def _make_observer(self, scenario: Scenario) -> FleetObserver:
        """Return what observes the episodes of a scenario."""
        raise NotImplementedError

    def _enter(self, setting: Setting) -> None:
        """Take a setting for the episodes from now on."""
        self._observer = self._make_observer(setting.scenario)
        self._setting = setting

    @property
    def scenario(self) -> Scenario:
        """The scenario of the current episode; before the first reset, the first that there is."""
        return self._setting.scenario

    @property
    def reward(self) -> PlacementReward:
        """What an epoch of that scenario is worth."""
        return self._setting.reward

    @property
    def fleet(self) -> Fleet:
        """The simulated fleet of the current episode.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        """
        return self._require_episode()

    def _require_episode(self) -> Fleet:
        """Return the fleet; refuse to go on before the first reset."""
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
        observation : ndarray of float32
            In the order of ``layout``.
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
        word = int(self.np_random.integers(0, 2**64, dtype="uint64"))
        setting = self._settings.of_episode(word)
        fleet = Fleet(setting.scenario, seed=word, tier_wait_s=setting.tier_wait_s)
        if setting is not self._setting:
            self._enter(setting)
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
            self._make_renderer().start(self.scenario)
            self._show()
        return self._observe(), self._info(no_epoch())

    def _start_moves(self, moves: Iterable[tuple[int, int]]) -> list[int]:
        """Start moves in their order, as many as the bucket pays for and an epoch may have.

        Returns
        -------
        list of int
            The nodes whose move was started.
        """
        started: list[int] = []
        for node, profile in moves:
            if self._moves >= self.scenario.control.moves_per_epoch:
                break
            try:
                self.fleet.start_move(node, profile)
            except IllegalMove:
                continue
            self._moves += 1
            started.append(node)
        return started

    def _run_epoch(
        self, illegal_actions: int
    ) -> "tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]":
        """Serve the traffic of one epoch; return what ``step`` does."""
        fleet = self.fleet
        window = fleet.advance(self.scenario.control.epoch_s)
        self._observer.update(window.nearest_demand, window.seconds)
        service, migration = self.reward.components(window)
        values = epoch_values(
            window,
            nodes=int(fleet.state.node_count[0]),
            moves=self._moves,
            illegal_actions=illegal_actions,
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
            "drawn": (self._setting.drawn.index, self._setting.drawn.values),
            "fleet": None if self._fleet is None else self._fleet.get_state(),
            "observer": self._observer.get_state(),
            "epoch": self._epoch,
            "moves": self._moves,
            "episode": dict(self._episode),
            "episode_stats": self._episode_stats,
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
        check_state(state, self.demand_per_s.shape)
        generator, _ = seeding.np_random(0)
        generator.bit_generator.state = state["np_random"]
        setting, fleet = self._settings.first, None
        if state["fleet"] is not None:
            setting, fleet = self._settings.at(*state["drawn"]), self._fleet
            if fleet is None or setting is not self._setting:
                fleet = Fleet(setting.scenario, tier_wait_s=setting.tier_wait_s)
            fleet.set_state(state["fleet"])  # refuses before it changes anything
        if setting is not self._setting:
            self._enter(setting)
        self._fleet = fleet
        self._np_random = generator
        self._np_random_seed = state["np_random_seed"]
        self._observer.set_state(state["observer"])
        self._epoch = state["epoch"]
        self._moves = state["moves"]
        self._episode = dict(state["episode"])
        self._episode_stats = state["episode_stats"]
        if self._renderer is not None:
            self._renderer.start(self.scenario)

    def fork(self) -> Self:
        """Return an independent environment that continues identically (without a window)."""
        twin = type(self)(self.draw, **self.fork_arguments())
        twin.set_state(self.get_state())
        return twin

    def fork_arguments(self) -> dict[str, Any]:
        """Return what else a fork is made with."""
        return {"observe_clock": self.observe_clock, "reward": self._settings.reward}

    def __getstate__(self) -> dict[str, Any]:
        # Figures and windows don't travel: a copy makes its own when it draws.
        return {**self.__dict__, "_renderer": None}

    def _observe(self) -> "NDArray[np.float32]":
        return self._observer.observe(self.fleet.state, self.fleet.bucket_bytes)

    def _info(self, epoch: dict[str, int | float]) -> dict[str, Any]:
        return {**epoch, **self._episode, **self._setting.drawn.numbers}

    def _make_renderer(self) -> "FleetRenderer":
        if self._renderer is None:
            from edgegym.envs.rendering import FleetRenderer

            self._renderer = FleetRenderer(self.scenario)
        return self._renderer

    def _show(self) -> None:
        if self.render_mode == "human":
            self._make_renderer().show(self.fleet, self.demand_per_s)
