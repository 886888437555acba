"""Many ``EdgeGym/Placement-v0`` as one: a native Gymnasium vector environment."""

import os
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from edgegym.envs.checks import check_kinds
from edgegym.envs.drawn_fleets import DrawnFleets
from edgegym.envs.episodes import Episodes, numbers_of, vector_info
from edgegym.envs.fleet_group import AlikeFleets, FleetGroup
from edgegym.envs.settings import Settings
from edgegym.envs.vector_checks import (
    autoreset_mode_of,
    check_num_envs,
    reset_mask_of,
    seed_of_each,
)
from edgegym.interface.actions import PlacementActions
from edgegym.interface.layout import placement_layout
from edgegym.interface.reward import ServiceReward
from edgegym.threads import Crew, checked_threads
from edgegym.world.draw import ScenarioDraw, resolve_draw
from edgegym.world.scenario import Scenario

# Attributes of an environment that are the same for all, and those of what its episode plays.
_SHARED = ("actions", "draw", "layout", "metadata", "observe_clock", "render_mode", "spec")
_DRAWN = ("reward", "scenario")

_Step = tuple[
    NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]
]


class PlacementVectorEnv(gymnasium.vector.VectorEnv):
    """B placement environments with their fleets in one state, stepped by a few threads.

    To the bit what ``gymnasium.vector.SyncVectorEnv`` makes of B
    :class:`~edgegym.envs.placement.PlacementEnv`, seeds and ``info`` included, but faster: threads
    advance the fleets side by side, and observations, masks, rewards and ``info`` of all are made
    at once. Results do not depend on the number of threads.

    ```python
    import gymnasium as gym

    env = gym.make_vec(
        "edgegym:EdgeGym/Placement-v0",
        num_envs=64,
        vectorization_mode="vector_entry_point",
        autoreset_mode="same_step",
    )
    observations, infos = env.reset(seed=0)
    masks = infos["action_mask"]  # [64, A]
    ```

    Parameters
    ----------
    num_envs : int
        B.
    scenario, overrides, observe_clock, reward
        As of :class:`~edgegym.envs.placement.PlacementEnv`. A custom reward with a method
        ``of_batch(windows)`` is asked once per step for all environments, any other one by one.
    render_mode : None
        A vector of environments isn't drawn: use ``vectorization_mode="sync"`` for that.
    autoreset_mode : gymnasium.vector.AutoresetMode or str
        ``"next_step"`` (default), ``"same_step"`` or ``"disabled"``; Gymnasium's spellings too.
    num_threads : int, optional
        Threads that step; the available cores, at most 4, if omitted.

    Raises
    ------
    ValueError
        If an argument is none of these.
    TypeError, ScenarioError
        As of :class:`~edgegym.envs.placement.PlacementEnv`.
    """

    metadata = {  # noqa: RUF012 - as in VectorEnv
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        num_envs: int = 1,
        scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        num_threads: int | None = None,
    ) -> None:
        check_num_envs(num_envs)
        if render_mode is not None:
            raise ValueError(
                f"render_mode is {render_mode!r}: a native vector environment isn't drawn; use "
                'vectorization_mode="sync"'
            )
        check_kinds(observe_clock, reward)
        self.num_envs = num_envs
        self.render_mode = None
        self.autoreset_mode = autoreset_mode_of(autoreset_mode)
        self.metadata = {**self.metadata, "autoreset_mode": self.autoreset_mode}
        self.draw = resolve_draw(scenario, overrides)
        self.observe_clock = observe_clock
        self.layout = placement_layout(self.draw, observe_clock)
        self.actions = PlacementActions(
            num_nodes=self.layout.num_nodes, num_profiles=self.layout.num_profiles
        )
        self.single_observation_space = gymnasium.spaces.Box(
            0.0, 1.0, shape=(self.layout.size,), dtype=np.float32
        )
        self.single_action_space = gymnasium.spaces.Discrete(self.actions.size)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._crew = Crew(checked_threads(num_threads))
        group = AlikeFleets if self.draw.is_fixed else DrawnFleets
        self._fleets: FleetGroup = group(
            Settings(self.draw, reward), self.layout, num_envs, self._crew
        )
        self._all = np.arange(num_envs)
        self._generators: list[np.random.Generator | None] = [None] * num_envs
        self._seeds: list[int | None] = [None] * num_envs
        self._begun = np.zeros(num_envs, dtype=np.bool_)
        self._ended = np.zeros(num_envs, dtype=np.bool_)
        self._epochs = np.zeros(num_envs, dtype=np.int64)
        self._moves = np.zeros(num_envs, dtype=np.int64)
        self._mask = np.zeros((num_envs, self.actions.size), dtype=np.bool_)
        self._episodes = Episodes(num_envs)

    @property
    def np_random(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - no setter
        """The random generators of the environments, a tuple."""
        return tuple(self._generator(b) for b in range(self.num_envs))

    @property
    def np_random_seed(self) -> Any:
        """The seeds of the environments, a tuple."""
        return tuple(self._seeds)

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """What the current episode of each environment plays."""
        return tuple(setting.scenario for setting in self._fleets.settings)

    @property
    def demand_per_s(self) -> NDArray[np.float64]:
        """Estimated requests/s nearest to each node, by family, shape [B, N, F]."""
        return self._fleets.demand_per_s

    def reset(
        self,
        *,
        seed: "int | Sequence[int | None] | None" = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Start episodes.

        Parameters
        ----------
        seed : int or sequence of int or None, optional
            Environment i gets ``seed + i``, or the i-th of a sequence; None lets it go on with its
            sequence of episodes.
        options : dict, optional
            ``reset_mask``, bool of shape [B], restricts the reset to some environments.

        Returns
        -------
        observations : ndarray of float32, shape [B, N·K + G]
        infos : dict
            Gymnasium's vector format.

        Raises
        ------
        ValueError, TypeError
            If the seeds or options are not such.
        gymnasium.error.ResetNeeded
            If a `reset_mask` leaves out an environment that has no episode yet.
        """
        seeds = seed_of_each(seed, self.num_envs)
        chosen = reset_mask_of(options, self.num_envs)
        if not (self._begun | chosen).all():
            raise ResetNeeded("reset_mask leaves out environments that have no episode yet")
        rows = np.flatnonzero(chosen)
        for b in rows.tolist():
            if seeds[b] is not None:
                self._generators[b], self._seeds[b] = seeding.np_random(seeds[b])
        self._begin(rows)
        observations = np.empty(self.observation_space.shape or (), dtype=np.float32)
        self._observe(self._all, observations)
        return observations, self._info(None if chosen.all() else rows)

    def _generator(self, b: int) -> np.random.Generator:
        generator = self._generators[b]
        if generator is None:
            generator, self._seeds[b] = seeding.np_random()
            self._generators[b] = generator
        return generator

    def _begin(self, rows: NDArray[np.int64]) -> None:
        """Start episodes, up to the end of their warm-up."""
        words = [int(self._generator(b).integers(0, 2**64, dtype=np.uint64)) for b in rows.tolist()]
        self._fleets.begin(rows, words)
        self._begun[rows] = True
        self._ended[rows] = False
        self._epochs[rows] = 0
        self._moves[rows] = 0
        self._episodes.reset(rows)

    def step(self, actions: Any) -> _Step:
        """Start a move, or none, in each environment, and run the epochs that are due.

        Parameters
        ----------
        actions : array_like of int, shape [B]
            ``node * S + profile``, or N·S to move nothing.

        Returns
        -------
        observations : ndarray of float32, shape [B, N·K + G]
        rewards : ndarray of float64, shape [B]
        terminated : ndarray of bool, shape [B]
            Always False.
        truncated : ndarray of bool, shape [B]
            Whether the horizon is reached.
        infos : dict
            Gymnasium's vector format. In same-step mode with ``final_obs`` and ``final_info`` of
            the episodes that ended.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset; without autoreset, after an episode's end.
        TypeError, ValueError
            If the actions aren't integers of the action space; nothing has happened then.
        """
        if not self._begun.all():
            raise ResetNeeded("the environments have no episodes yet: call reset() first")
        over = self._ended.copy()
        if over.any() and self.autoreset_mode == AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"the episodes of environments {np.flatnonzero(over).tolist()} have ended: reset "
                'them with options={"reset_mask": ...}'
            )
        # The actions of environments that only reset are not looked at.
        runs, illegal = self._act(self._checked(actions, over), ~over)
        rewards = np.zeros(self.num_envs)
        rows = np.flatnonzero(runs)
        self._run(rows, illegal, rewards)
        if over.any():
            self._begin(np.flatnonzero(over))
        truncated = runs & (self._epochs >= self._fleets.horizon_epochs)
        observations = np.empty(self.observation_space.shape or (), dtype=np.float32)
        self._observe(self._all, observations)
        final: dict[str, Any] = {}
        if self.autoreset_mode == AutoresetMode.SAME_STEP and truncated.any():
            ended = np.flatnonzero(truncated)
            final = self._final(ended, observations)
            self._begin(ended)
            self._observe(ended, observations)
        else:
            self._ended = truncated.copy()
        terminated = np.zeros(self.num_envs, dtype=np.bool_)
        return observations, rewards, terminated, truncated, final | self._info(None)

    def _checked(self, actions: Any, over: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Return the actions, with the no-op where an episode is over."""
        given = np.asarray(actions)
        if given.dtype.kind not in "iu":
            raise TypeError(f"actions are {actions!r}: they must be integers")
        if given.shape != (self.num_envs,):
            raise ValueError(f"actions have shape {given.shape}: it must be ({self.num_envs},)")
        wrong = ~over & ((given < 0) | (given > self.actions.no_op))
        if wrong.any():
            b = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"action is {given[b]} in environment {b}: it must lie in 0..{self.actions.no_op} "
                f"(node * {self.actions.num_profiles} + profile; {self.actions.no_op} is the no-op)"
            )
        return np.where(over, self.actions.no_op, given.astype(np.int64))

    def _act(
        self, actions: NDArray[np.int64], live: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Start the moves; return where an epoch is due and which actions were illegal."""
        legal = self._mask[self._all, actions]
        moving = legal & (actions != self.actions.no_op)
        rows = np.flatnonzero(moving)
        nodes, profiles = np.divmod(actions[rows], self.actions.num_profiles)
        self._fleets.start_moves(rows, nodes, profiles)
        self._moves[rows] += 1
        stands = moving & (self._moves < self._fleets.moves_per_epoch)
        return live & ~stands, ~legal

    def _run(
        self, rows: NDArray[np.int64], illegal: NDArray[np.bool_], rewards: NDArray[np.float64]
    ) -> None:
        """Run one epoch in some environments and write their rewards."""
        if not len(rows):
            self._episodes.idle()
            return
        values = self._fleets.run_epochs(rows)
        values["moves"] = self._moves[rows]
        values["illegal_actions"] = illegal[rows].astype(np.int64)
        self._episodes.record(rows, values)
        self._moves[rows] = 0
        self._epochs[rows] += 1
        rewards[rows] = values["reward_service"] + values["reward_migration"]

    def _observe(self, rows: NDArray[np.int64], observations: NDArray[np.float32]) -> None:
        self._fleets.write(rows, observations, self._mask)

    def _info(self, rows: NDArray[np.int64] | None) -> dict[str, Any]:
        """Return the infos of some environments, of all for None."""
        values = self._episodes.values() | numbers_of(self._fleets.settings)
        values["action_mask"] = self._mask.copy()
        present = np.ones(self.num_envs, dtype=np.bool_)
        if rows is not None:
            present[:] = False
            present[rows] = True
            for array in values.values():
                array[~present] = 0
        return vector_info(values, present)

    def _final(self, ended: NDArray[np.int64], observations: NDArray[np.float32]) -> dict[str, Any]:
        """Return what infos keep of the episodes that ended."""
        final_obs = np.full(self.num_envs, None, dtype=object)
        for b in ended.tolist():
            final_obs[b] = observations[b].copy()
        info = self._info(ended)
        return vector_info({"final_obs": final_obs}, info["_action_mask"]) | {
            "final_info": info,
            "_final_info": info["_action_mask"].copy(),
        }

    def action_masks(self) -> NDArray[np.bool_]:
        """Return which actions are legal now, bool of shape [B, N·S + 1] (a fresh array)."""
        return self._mask.copy()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return an attribute of every environment, or what the method of that name returns.

        Raises
        ------
        AttributeError
            If environments have no such attribute, or not as parts of a vector.
        """
        if name == "action_masks":
            return tuple(self.action_masks(*args, **kwargs))
        if name in {"np_random", "np_random_seed"}:
            return getattr(self, name)
        if name in _DRAWN:
            return tuple(getattr(setting, name) for setting in self._fleets.settings)
        shared = {
            "action_space": "single_action_space",
            "observation_space": "single_observation_space",
        }
        if name in _SHARED or name in shared:
            return (getattr(self, shared.get(name, name)),) * self.num_envs
        raise AttributeError(
            f"the environments of a {type(self).__name__} have no attribute {name!r}; they have "
            + ", ".join(("action_masks", "np_random", "np_random_seed", *shared, *_SHARED, *_DRAWN))
        )

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Return an attribute of every environment: see :meth:`call`."""
        return self.call(name)

    def close_extras(self, **kwargs: Any) -> None:
        """End the threads."""
        if hasattr(self, "_crew"):
            self._crew.close()
