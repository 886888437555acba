"""What an environment refuses: arguments of the wrong kind, states that aren't its own."""

from collections.abc import Mapping
from typing import Any

STATE_KEYS = (
    "np_random",
    "np_random_seed",
    "drawn",
    "fleet",
    "observer",
    "epoch",
    "moves",
    "episode",
    "episode_stats",
)
"""Parts of an environment's state."""


def check_kinds(observe_clock: Any, reward: Any) -> None:
    """Refuse arguments of the wrong type.

    Raises
    ------
    TypeError
        Naming the argument, its value and the rule.
    """
    if not isinstance(observe_clock, bool):
        raise TypeError(f"observe_clock is {observe_clock!r}: it must be True or False")
    if not (reward is None or isinstance(reward, str) or callable(reward)):
        raise TypeError(
            f"reward is {reward!r}: it must be None, the name of a strategy, or a callable that "
            "values a WindowStats"
        )


def check_options(options: Any) -> None:
    """Refuse options of reset: there are none.

    Raises
    ------
    TypeError
        If they are neither None nor a mapping.
    ValueError
        If they have a key.
    """
    if options is None:
        return
    if not isinstance(options, Mapping):
        raise TypeError(f"reset options are {options!r}: they must be None or a mapping")
    for key in options:
        raise ValueError(f"reset option {key!r} is unknown: there are none")


def check_state(state: Any, shape: tuple[int, ...]) -> None:
    """Refuse what isn't the state of an environment of this shape.

    Parameters
    ----------
    state : object
        To be checked.
    shape : tuple of int
        Number of nodes and of families.

    Raises
    ------
    TypeError
        If it is no mapping.
    ValueError
        If a part is missing, or its scenario has another shape.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"state is {state!r}: it must be what get_state() returned")
    missing = [key for key in STATE_KEYS if key not in state]
    if missing:
        raise ValueError(f"state has no {', '.join(missing)}: it must be what get_state() returned")
    theirs = state["observer"]["demand"].shape
    if theirs != shape:
        raise ValueError(
            f"state is of a scenario with (nodes, families) = {theirs}: this environment's has "
            f"{shape}"
        )
