"""What the routing environment refuses."""

import math
from collections.abc import Mapping
from typing import Any

from edgegym.envs.routing_info import INFO_KEYWORDS
from edgegym.interface.routing_observation import TOTALS

_STATE_KEYS = (
    "np_random",
    "np_random_seed",
    "drawn",
    "fleet",
    "routed",
    "totals",
    "totals_s",
    "episode",
)


def checked_count(name: str, value: Any) -> int:
    """Return an argument that is a positive integer.

    Raises
    ------
    TypeError
        If it is no integer.
    ValueError
        If it is less than 1.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} is {value!r}: it must be an integer")
    number = int(value.__index__())
    if number < 1:
        raise ValueError(f"{name} is {number}: it must be at least 1")
    return number


def checked_weight(value: Any) -> float:
    """Return the price of a rejection.

    Raises
    ------
    TypeError
        If it is no number.
    ValueError
        If it is negative or not finite.
    """
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        raise TypeError(f"rejection_weight is {value!r}: it must be a number")
    weight = float(value)
    if not 0.0 <= weight < math.inf:
        raise ValueError(f"rejection_weight is {weight}: it must be finite and at least 0")
    return weight


def check_routing_state(state: Any) -> None:
    """Refuse what isn't the state of a routing environment.

    Raises
    ------
    TypeError
        If it is no mapping.
    ValueError
        If a part is missing, or a count or a time of it is none.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state is {state!r}: it must be what get_state() returned")
    missing = [key for key in _STATE_KEYS if key not in state]
    if missing:
        raise ValueError(f"state has no {', '.join(missing)}: it must be what get_state() returned")
    for name, fits, rule in (
        ("routed", _is_count(state["routed"]), "an integer of at least 0"),
        ("totals", _are_counts(state["totals"]), f"{len(TOTALS)} integers of at least 0"),
        ("totals_s", _is_time(state["totals_s"]), "a finite number"),
        ("episode", _is_episode(state["episode"]), "the values of the keys in INFO_KEYWORDS"),
    ):
        if not fits:
            raise ValueError(f"state[{name!r}] is {state[name]!r}: it must be {rule}")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and value >= 0


def _are_counts(values: Any) -> bool:
    return isinstance(values, list) and len(values) == len(TOTALS) and all(map(_is_count, values))


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_episode(values: Any) -> bool:
    known = isinstance(values, Mapping) and tuple(values) == INFO_KEYWORDS
    return known and all(map(_is_time, values.values()))
