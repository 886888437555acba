"""What ``info`` reports of many environments, in Gymnasium's vector format."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.info import EPOCH_KEYS, no_episode, no_epoch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.simulator.batch import WindowBatch

_OF_WINDOW = EPOCH_KEYS[: EPOCH_KEYS.index("moves")]


class Episodes:
    """The running values of B episodes, and those of the epochs that the last step ran.

    Parameters
    ----------
    num_envs : int
        B.
    """

    def __init__(self, num_envs: int) -> None:
        self._num_envs = num_envs
        self._epoch = self._zeros(no_epoch())
        self._total = self._zeros(no_episode())

    def _zeros(self, values: dict[str, int | float]) -> "dict[str, NDArray[Any]]":
        return {key: np.zeros(self._num_envs, dtype=type(value)) for key, value in values.items()}

    def reset(self, rows: "NDArray[np.int64]") -> None:
        """Begin episodes."""
        for values in (self._epoch, self._total):
            for array in values.values():
                array[rows] = 0

    def record(
        self,
        rows: "NDArray[np.int64]",
        windows: "WindowBatch",
        *,
        nodes: "NDArray[np.int64]",
        moves: "NDArray[np.int64]",
        illegal_actions: "NDArray[np.int64]",
        reward: "tuple[NDArray[np.float64], NDArray[np.float64]]",
    ) -> None:
        """Take in the epochs that a step ran.

        Parameters
        ----------
        rows : ndarray of int, shape [R]
            Environments in which one ran; the epoch values of the others become zero.
        windows : WindowBatch
            Of the epochs.
        nodes, moves, illegal_actions : ndarray of int, shape [R]
            Nodes of the fleet, and what the agent did before the epoch ran.
        reward : tuple of ndarray, shape [R]
            Service and migration parts.
        """
        values: dict[str, NDArray[Any]] = {key: getattr(windows, key) for key in _OF_WINDOW}
        values["moves"] = moves
        values["illegal_actions"] = illegal_actions
        values["reward_service"], values["reward_migration"] = reward
        values["utilization"] = windows.utilization.sum(axis=1) / nodes
        values["prefill_utilization"] = windows.prefill_utilization.sum(axis=1) / nodes
        everywhere = len(rows) == self._num_envs
        for key, value in values.items():
            # New arrays: the old ones may be in a caller's hands.
            array = np.array(value) if everywhere else np.zeros(self._num_envs, value.dtype)
            if not everywhere:
                array[rows] = value
            self._epoch[key] = array
        for total, key in zip(self._total, EPOCH_KEYS, strict=False):
            self._total[total] = self._total[total] + self._epoch[key]

    def idle(self) -> None:
        """Note that a step ran no epoch anywhere."""
        self._epoch = self._zeros(no_epoch())

    def values(self, rows: "NDArray[np.int64] | None" = None) -> "dict[str, NDArray[Any]]":
        """Return all values in arrays of the caller's own, ``[B]``.

        Parameters
        ----------
        rows : ndarray of int, optional
            Environments to report; the others read 0. All if omitted.
        """
        both = self._epoch | self._total
        if rows is None:
            return {key: array.copy() for key, array in both.items()}
        chosen = {key: np.zeros_like(array) for key, array in both.items()}
        for key, array in both.items():
            chosen[key][rows] = array[rows]
        return chosen


def vector_info(
    values: "dict[str, NDArray[Any]]", present: "NDArray[np.bool_]"
) -> "dict[str, NDArray[Any]]":
    """Return values with their ``_key`` arrays, as Gymnasium's vector environments give them."""
    info: dict[str, NDArray[Any]] = {}
    masks = np.repeat(present[None], len(values), axis=0)
    for mask, (key, value) in zip(masks, values.items(), strict=True):
        info[key] = value
        info[f"_{key}"] = mask
    return info
