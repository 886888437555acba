"""What a policy is: a function of an observation and of a state that the caller keeps."""

import zlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.interface.layout import ObservationLayout
from edgegym.policies.view import FleetReader, FleetView

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario

PolicyState = tuple["NDArray[Any]", ...]
"""Arrays with the batch first: the stream and the step of each row, then the policy's memory."""

Memory = tuple["NDArray[Any]", ...]
"""What a policy remembers of one row, without a batch axis."""


class CounterRandom:
    """Random numbers of one decision, a pure function of (seed, stream, step).

    Parameters
    ----------
    seed : int
        Seed of the policy.
    stream : int
        Names the episode.
    step : int
        Number of the decision within it.
    """

    def __init__(self, seed: int, stream: int, step: int) -> None:
        self._key = (seed, stream)
        self._step = step

    def generator(self) -> np.random.Generator:
        """Return a Philox generator; each call gives the same one afresh."""
        counter = np.array([0, 0, 0, self._step], dtype=np.uint64)
        return np.random.Generator(
            np.random.Philox(key=np.array(self._key, dtype=np.uint64), counter=counter)
        )

    def choice(self, candidates: "NDArray[np.int64]") -> int:
        """Return one of the candidates, each equally likely; needs at least one."""
        if len(candidates) == 1:
            return int(candidates[0])
        return int(candidates[self.generator().integers(len(candidates))])


class Policy(ABC):
    """A placement policy with the calling convention of Stable-Baselines3.

    The object itself never changes: memory and the position in the random stream live in the state
    that :meth:`predict` takes and returns. Rows of a batch are decided one by one, so a batch gives
    the same bits as its rows alone. The random stream of an episode is named by the policy's seed
    and the episode's first observation: it does not depend on what the policy did before.

    A subclass writes :meth:`decide`, and :meth:`begin` if it remembers anything.

    Parameters
    ----------
    scenario : Scenario
        The world that the observations come from.
    seed : int
        From 0 to 2**64 − 1; the seed of the policy's own random choices.

    Raises
    ------
    ValueError
        If the seed is no integer or out of range.
    """

    def __init__(self, scenario: "Scenario", seed: int = 0) -> None:
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if not whole or not 0 <= seed < 2**64:
            raise ValueError(f"seed is {seed!r}: it must be an integer in 0..2**64 - 1")
        self.scenario = scenario
        self.seed = int(seed)
        self.layout = ObservationLayout.from_scenario(scenario)
        self._reader = FleetReader(self.layout)
        clocked = ObservationLayout.from_scenario(scenario, observe_clock=True)
        self._accepted_sizes = (self.layout.size, clocked.size)

    @abstractmethod
    def decide(self, view: FleetView, memory: Memory, random: CounterRandom) -> tuple[int, Memory]:
        """Return the action for one observation, and what to remember.

        Parameters
        ----------
        view : FleetView
            The observation; ``view.legal`` says which moves may be made.
        memory : tuple of ndarray
            What the last decision of the episode returned, or :meth:`begin`; never to be changed
            in place.
        random : CounterRandom
            The random numbers of this decision.

        Returns
        -------
        action : int
            ``node * S + profile`` of a legal move, or ``view.no_op``.
        memory : tuple of ndarray
            Of the same shapes and types as it was given.
        """

    def begin(self, view: FleetView) -> Memory:
        """Return the memory at the first observation of an episode; none by default."""
        del view
        return ()

    def predict(
        self,
        observation: "NDArray[Any]",
        state: PolicyState | None = None,
        episode_start: "NDArray[np.bool_] | bool | None" = None,
        deterministic: bool = True,
        action_masks: "NDArray[np.bool_] | None" = None,
    ) -> tuple[Any, PolicyState]:
        """Decide on one observation or on a batch.

        Parameters
        ----------
        observation : ndarray, shape [N·K + G] or [B, N·K + G]
            A clock at the end is accepted and ignored.
        state : tuple of ndarray, optional
            What the last call returned; None starts anew.
        episode_start : bool or ndarray of bool, shape [B], optional
            Rows that begin an episode: their state is reset.
        deterministic : bool
            For interchange with learned models. These policies always act the same for the same
            seed, observations and state.
        action_masks : ndarray of bool, shape [N·S + 1] or [B, N·S + 1], optional
            Legal actions; without it legality is derived from the observation.

        Returns
        -------
        action : int64 or ndarray of int64, shape [B]
        state : tuple of ndarray
            Batch first, to be handed to the next call.

        Raises
        ------
        ValueError
            If an argument's shape does not fit the scenario or the other arguments, an observed
            number is not from 0 to 1, a mask is not of truth values, or the state is not one that
            this policy returned.
        """
        del deterministic
        rows, single = self._rows(observation)
        masks = self._masks(action_masks, len(rows))
        if state is not None:
            self._check_state(state, rows, None if masks is None else masks[0])
        starts = _episode_starts(episode_start, len(rows))
        actions = np.empty(len(rows), dtype=np.int64)
        states: list[Memory] = []
        for row, observed in enumerate(rows):
            view = self._reader.view(observed, None if masks is None else masks[row])
            if state is None or starts[row]:
                stream, step, memory = zlib.crc32(observed.tobytes()), 0, self.begin(view)
            else:
                stream, step = int(state[0][row]), int(state[1][row])
                memory = tuple(np.asarray(array[row]) for array in state[2:])
            random = CounterRandom(self.seed, stream, step)
            actions[row], memory = self.decide(view, memory, random)
            states.append((np.array(stream, dtype=np.uint64), np.array(step + 1), *memory))
        new_state = tuple(_stacked(arrays) for arrays in zip(*states, strict=True))
        return (actions[0] if single else actions), new_state

    def _rows(self, observation: "NDArray[Any]") -> tuple["NDArray[np.float32]", bool]:
        """Return observations as ``[B, N·K + G]`` and whether there was no batch axis."""
        array = _array("observation", observation, "iuf").astype(np.float32, copy=False)
        if array.ndim not in (1, 2) or array.shape[-1] not in self._accepted_sizes:
            layout = self.layout
            raise ValueError(
                f"observation has shape {array.shape}: scenario '{self.scenario.name}' has "
                f"{layout.size} numbers ({layout.num_nodes} nodes x {layout.node_features} + "
                f"{layout.global_features}), with or without a batch axis before them"
            )
        single = array.ndim == 1
        rows = np.ascontiguousarray((array[None] if single else array)[:, : self._reader.size])
        if not len(rows):
            raise ValueError("observation has no rows: a batch has at least one")
        if not ((rows >= 0.0) & (rows <= 1.0)).all():
            row, column = np.argwhere(~((rows >= 0.0) & (rows <= 1.0)))[0]
            raise ValueError(
                f"observation is {rows[row, column]} in row {row}, column {column}: "
                "every number must be from 0 to 1"
            )
        return rows, single

    def _check_state(
        self, state: Any, rows: "NDArray[np.float32]", mask: "NDArray[np.bool_] | None"
    ) -> None:
        """Refuse what this policy cannot have returned for a batch of this size."""
        made = self.begin(self._reader.view(rows[0], mask))
        like = (np.array(0, dtype=np.uint64), np.array(0), *map(np.asarray, made))
        arrays = isinstance(state, tuple) and all(isinstance(part, np.ndarray) for part in state)
        if not arrays or len(state) != len(like):
            raise ValueError(
                f"state is {type(state).__name__}: must be the {len(like)} arrays that "
                "the last call returned, or None"
            )
        for index, (part, usual) in enumerate(zip(state, like, strict=True)):
            if part.ndim == 0 or len(part) != len(rows):
                raise ValueError(
                    f"state[{index}] is of a batch of {len(part) if part.ndim else 0}: "
                    f"the observations are a batch of {len(rows)}"
                )
            if part.shape[1:] != usual.shape or part.dtype.kind != usual.dtype.kind:
                raise ValueError(
                    f"state[{index}] is {part.dtype} of shape {part.shape}: must be "
                    f"{usual.dtype} of shape {(len(rows), *usual.shape)}"
                )
            if part.dtype.kind == "f" and not np.isfinite(part).all():
                raise ValueError(f"state[{index}] is {part}: must be finite")
        if (state[1] < 0).any():
            raise ValueError(f"state[1] is {state[1]}: steps must be at least 0")

    def _masks(
        self, action_masks: "NDArray[np.bool_] | None", batch: int
    ) -> "NDArray[np.bool_] | None":
        if action_masks is None:
            return None
        given = _array("action_masks", action_masks, "biuf")
        if given.dtype != np.bool_ and not ((given == 0) | (given == 1)).all():
            raise ValueError("action_masks holds other numbers than 0 and 1: must be true or false")
        masks = np.atleast_2d(given.astype(np.bool_, copy=False))
        num_actions = self._reader.no_op + 1
        if masks.shape != (batch, num_actions):
            raise ValueError(
                f"action_masks has shape {np.shape(action_masks)}: {batch} observation(s) need "
                f"{batch} row(s) of {num_actions} (nodes x profiles + 1)"
            )
        return masks


def _array(name: str, value: Any, kinds: str) -> "NDArray[Any]":
    """Return an array of these kinds of numbers, or say that it is none."""
    try:
        array = np.asarray(value)
    except ValueError:  # of uneven rows
        array = np.empty(0, dtype=object)
    if array.dtype.kind not in kinds:
        raise ValueError(f"{name} is {value!r}: must be an array of numbers")
    return array


def _stacked(rows: Memory) -> "NDArray[Any]":
    """Return the rows' arrays along a new batch axis."""
    if len(rows) == 1:
        return np.asarray(rows[0])[None].copy()
    return np.stack(rows)


def _episode_starts(episode_start: Any, batch: int) -> "NDArray[np.bool_]":
    """Return which rows begin an episode, ``[B]``."""
    if episode_start is None:
        return np.zeros(batch, dtype=np.bool_)
    starts = np.atleast_1d(_array("episode_start", episode_start, "biuf").astype(np.bool_))
    if starts.shape != (batch,):
        raise ValueError(
            f"episode_start has shape {np.shape(episode_start)}: it must be one flag for each of "
            f"{batch} observation(s)"
        )
    return starts
