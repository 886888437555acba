"""Checks of arguments that the functions of the analytic model share."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.world.network import TieredNetwork, checked_number, checked_numbers

FloatArray = NDArray[np.float64]

LONGEST_S = 1e12
"""Longest time that a function takes, in seconds."""


def check_network(net: object) -> None:
    """Refuse what is no network."""
    if not isinstance(net, TieredNetwork):
        raise TypeError(f"net is {net!r}: must be a TieredNetwork")


def checked_wait(net: TieredNetwork, wait_s: ArrayLike, name: str = "wait_s") -> FloatArray:
    """Return advertised waits as float64 ``[S]``, or say what is wrong with them."""
    check_network(net)
    wait = checked_numbers(name, wait_s, "[S]")
    if wait.shape != (net.num_profiles,):
        raise ValueError(
            f"{name} has shape {wait.shape}: must be [S] with shape ({net.num_profiles},)"
        )
    if not (np.isfinite(wait).all() and (wait >= 0).all()):
        raise ValueError(f"{name} is {wait}: advertised waits must be finite and at least 0")
    return wait


def checked_target(net: TieredNetwork, ttft_target_s: ArrayLike) -> FloatArray:
    """Return the TTFT target per type ``[Q]``, or say what is wrong with it."""
    target = checked_numbers("ttft_target_s", ttft_target_s, "[Q] or one for all")
    if target.shape not in ((), (net.num_types,)):
        raise ValueError(
            f"ttft_target_s has shape {target.shape}: must be a number or [Q] = ({net.num_types},)"
        )
    if not ((target >= 0) & (target <= LONGEST_S)).all():
        raise ValueError(
            f"ttft_target_s is {ttft_target_s}: must be finite and at least 0, "
            f"at most {LONGEST_S:g}"
        )
    return np.broadcast_to(target, (net.num_types,)).copy()


def checked_open_share(name: str, value: float) -> float:
    """Return a share that is neither 0 nor 1, or say what is wrong with it."""
    share = checked_number(name, value, 0.0, 1.0, strict=True)
    if share == 1.0:
        raise ValueError(f"{name} is 1.0: must be less than 1")
    return share
