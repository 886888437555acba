"""What ``info`` reports of many environments, in Gymnasium's vector format."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.info import EPOCH_KEYS, no_episode, no_epoch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgegym.envs.settings import Setting


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

    def record(self, rows: "NDArray[np.int64]", values: "dict[str, NDArray[Any]]") -> None:
        """Take in the epochs that a step ran.

        Parameters
        ----------
        rows : ndarray of int, shape [R]
            Environments in which one ran; the epoch values of the others become zero.
        values : dict of ndarray, shape [R]
            By the names of ``EPOCH_KEYS``.
        """
        everywhere = len(rows) == self._num_envs
        for key in EPOCH_KEYS:
            # New arrays: the old ones may be in a caller's hands.
            value = np.array(values[key])
            array = value if everywhere else np.zeros(self._num_envs, value.dtype)
            if not everywhere:
                array[rows] = value
            self._epoch[key] = array
        for total, key in zip(self._total, EPOCH_KEYS, strict=False):
            self._total[total] = self._total[total] + self._epoch[key]

    def idle(self) -> None:
        """Note that a step ran no epoch anywhere."""
        self._epoch = self._zeros(no_epoch())

    def values(self) -> "dict[str, NDArray[Any]]":
        """Return all values in arrays of the caller's own, ``[B]``."""
        return {key: array.copy() for key, array in (self._epoch | self._total).items()}


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


def numbers_of(settings: "Sequence[Setting]") -> "dict[str, NDArray[Any]]":
    """Return what was drawn for each environment, as arrays ``[B]`` by the keys of ``info``."""
    numbers = [setting.drawn.numbers for setting in settings]
    return {key: np.array([one[key] for one in numbers]) for key in numbers[0]}
