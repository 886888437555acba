"""Arguments of fleets: each is returned as it is used, or refused with field, value and rule."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegym.simulator.moves import IllegalMove
from edgegym.simulator.records import RecordSink
from edgegym.world.compiled import ROUTER_KINDS, WAIT_KINDS, World

# Times are kept as 64-bit ticks.
_LAST_CLOCK_S = 8e9
_MOST_REQUESTS = 1e9


def checked_sink(records: RecordSink | None) -> RecordSink | None:
    """Return where records go.

    Raises
    ------
    TypeError
        If it is no sink.
    """
    if records is not None and not isinstance(records, RecordSink):
        raise TypeError(
            f"records = {records!r}: must be a sink: an ArraySink, or sink_to(path) for a file"
        )
    return records


def checked_seed(seed: int) -> int:
    """Return the seed of a fleet.

    Raises
    ------
    ValueError
        If it is no integer in [0, 2^64).
    """
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ValueError(f"seed = {seed!r}: must be an integer in [0, 2^64)")
    return int(seed)


def checked_span(world: World, begin_s: float, seconds: float) -> float:
    """Return how long a fleet is to serve.

    Parameters
    ----------
    world : World
        Its compiled scenario.
    begin_s : float
        Its clock.
    seconds : float
        How long.

    Raises
    ------
    ValueError
        If that is negative, not finite or no number, or too much for the clock or for one call.
    """
    number = isinstance(seconds, int | float | np.integer | np.floating)
    if not number or isinstance(seconds, bool) or not 0.0 <= seconds < math.inf:
        raise ValueError(f"seconds = {seconds!r}: must be finite and at least 0")
    if seconds > _LAST_CLOCK_S - begin_s:
        raise ValueError(
            f"seconds = {seconds!r}: the clock, now {begin_s:g} s, must stay within "
            f"{_LAST_CLOCK_S:g} s"
        )
    expected = world.mean_rate_per_s * float(seconds)
    if expected >= _MOST_REQUESTS:
        raise ValueError(
            f"seconds = {seconds!r}: {expected:.3g} requests are expected in it, must be fewer "
            f"than {_MOST_REQUESTS:g} in one call"
        )
    return float(seconds)


def checked_index(name: str, value: int) -> int:
    """Return the index of a node or profile; whether there is such a one is not checked.

    Raises
    ------
    IllegalMove
        If it is no integer.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise IllegalMove(f"{name} = {value!r}: must be an integer")
    return int(value)


def checked_number(name: str, value: int, least: int) -> int:
    """Return an integer.

    Raises
    ------
    ValueError
        If it is none, or less than ``least``.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} = {value!r}: must be an integer, at least {least}")
    return int(value)


def checked_tier_wait(world: World, tier_wait_s: ArrayLike | None) -> Any:
    """Return the advertised waits ``[S]``; 0 where the router advertises none.

    Raises
    ------
    ValueError
        If they are missing, superfluous, or not ``[S]`` non-negative finite numbers.
    """
    load_aware, tier = ROUTER_KINDS.index("load_aware"), WAIT_KINDS.index("tier")
    needed = world.router_kind == load_aware and world.wait_kind == tier
    if not needed:
        if tier_wait_s is not None:
            raise ValueError("tier_wait_s: only used with routing.advertised_wait = 'tier'")
        return 0.0
    if tier_wait_s is None:
        raise ValueError("tier_wait_s is missing: routing.advertised_wait = 'tier' needs it")
    try:
        waits = np.asarray(tier_wait_s)
    except ValueError:  # of uneven rows
        waits = np.empty(0, dtype=object)
    if waits.dtype.kind not in "iuf":
        raise ValueError(f"tier_wait_s = {tier_wait_s!r}: must be numbers")
    if waits.shape != (world.num_profiles,):
        raise ValueError(f"tier_wait_s has shape {waits.shape}: must be ({world.num_profiles},)")
    if not (np.isfinite(waits).all() and (waits >= 0.0).all()):
        raise ValueError(f"tier_wait_s = {waits.tolist()}: must be finite and at least 0")
    return waits.astype(np.float64)
