"""What a vector environment refuses: modes, seeds and options that are none."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from edgegym.envs.checks import check_options


def autoreset_mode_of(mode: Any) -> AutoresetMode:
    """Return Gymnasium's autoreset mode from itself, its value, or its name in small letters.

    Raises
    ------
    ValueError
        If there is no such mode.
    """
    if isinstance(mode, AutoresetMode):
        return mode
    for known in AutoresetMode:
        if mode in (known.value, known.name, known.name.lower()):
            return known
    names = ", ".join(known.name.lower() for known in AutoresetMode)
    raise ValueError(f"autoreset_mode is {mode!r}: it must be one of {names}")


def check_num_envs(num_envs: Any) -> None:
    """Refuse a number of environments below 1.

    Raises
    ------
    ValueError
        Naming it.
    """
    whole = isinstance(num_envs, int | np.integer) and not isinstance(num_envs, bool)
    if not whole or num_envs < 1:
        raise ValueError(f"num_envs is {num_envs!r}: it must be a whole number of at least 1")


def seed_of_each(seed: "int | Sequence[int | None] | None", num_envs: int) -> list[int | None]:
    """Return the seed of each environment: ``seed + i``, the i-th of a sequence, or None.

    Raises
    ------
    ValueError
        If a sequence has another length.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, int | np.integer):
        return [int(seed) + i for i in range(num_envs)]
    seeds = [None if one is None else int(one) for one in seed]
    if len(seeds) != num_envs:
        raise ValueError(f"seed has {len(seeds)} elements: there are {num_envs} environments")
    return seeds


def reset_mask_of(options: Any, num_envs: int) -> NDArray[np.bool_]:
    """Return which environments a reset is for: all without ``options["reset_mask"]``.

    Raises
    ------
    TypeError
        If the options are no mapping, or the mask no array of bool.
    ValueError
        If there is another option, or the mask has another shape or chooses none.
    """
    if not (isinstance(options, Mapping) and "reset_mask" in options):
        check_options(options)
        return np.ones(num_envs, dtype=np.bool_)
    check_options({key: value for key, value in options.items() if key != "reset_mask"})
    mask = options["reset_mask"]
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] is {mask!r}: it must be an array of bool")
    if mask.shape != (num_envs,) or not mask.any():
        raise ValueError(
            f"options['reset_mask'] is {mask!r}: it must have {num_envs} elements, at least one "
            "of them True"
        )
    return mask.copy()
