"""What a scenario makes of a file of recorded requests: types and shares."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.world.demand import TraceReplay
from edgegym.world.recorded import RecordedRequests

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

_SHARE_TOLERANCE = 1e-6


class ReplayTable(NamedTuple):
    """A replayed trace of R requests as plain arrays; R = 0 where there is none."""

    cycle_s: float  # recorded time from one start of the file to the next
    keep: float  # share of the requests that is kept
    repeats: bool
    random_start: bool
    begin_s: NDArray[np.float64]  # [R] recorded times, from 0
    spread_s: NDArray[np.float64]  # [R] how much later the requests may have come
    type: NDArray[np.int64]  # [R]
    input_tokens: NDArray[np.int64]  # [R]
    output_tokens: NDArray[np.int64]  # [R]


def replay_table(scenario: "Scenario") -> ReplayTable:
    """Return the replayed trace of a scenario.

    Parameters
    ----------
    scenario : Scenario
        Any valid scenario.

    Returns
    -------
    ReplayTable
        Without requests where the demand has no trace.
    """
    for item in scenario.demand.modulations:
        if isinstance(item, TraceReplay):
            recorded = item.recorded
            return ReplayTable(
                recorded.cycle_s,
                item.keep,
                item.repeat,
                item.random_start,
                recorded.arrival_s.copy(),
                recorded.spread_s,
                type_index(scenario.type_names, recorded),
                recorded.input_tokens.copy(),
                recorded.output_tokens.copy(),
            )
    none = np.empty(0, dtype=np.int64)
    times = np.empty(0)
    return ReplayTable(1.0, 1.0, False, False, times, times.copy(), none, none.copy(), none.copy())


def check_replay(scenario: "Scenario") -> None:
    """Check the file of a trace against the request types.

    Parameters
    ----------
    scenario : Scenario
        Its names and shares are valid.

    Raises
    ------
    ValueError
        If the file can't be used: it names a type that does not exist, the shares of the types
        differ, or a prompt is shorter than its type's path.
    """
    for item in scenario.demand.modulations:
        if isinstance(item, TraceReplay):
            _check_recorded(scenario, item.recorded)


def _check_recorded(scenario: "Scenario", recorded: RecordedRequests) -> None:
    known = scenario.type_names
    for name in recorded.type_names:
        if name not in known:
            raise ValueError(
                f"demand.modulations.trace: {recorded.path} has requests of type '{name}'; no "
                f"request type has this name (known: {', '.join(known)})"
            )
    index = type_index(known, recorded)
    counts = np.bincount(index, minlength=len(known))
    for item, count in zip(scenario.request_types, counts.tolist(), strict=True):
        share = count / len(index)
        if abs(share - item.share) > _SHARE_TOLERANCE:
            raise ValueError(
                f"request_types.{item.name}.share = {item.share:g}: of the requests of "
                f"{recorded.path} it is {share:.9g}; shares must be those of the replayed trace"
            )
    forest = scenario.catalogue.forest
    paths = [forest.path(item.path) for item in scenario.request_types]
    depth = np.array([forest.hit_depth(path, path) for path in paths])[index]
    short = np.flatnonzero(recorded.input_tokens < depth)
    if len(short):
        first = int(short[0])
        raise ValueError(
            f"demand.modulations.trace: request {first + 1} of {recorded.path} has "
            f"{recorded.input_tokens[first]} input tokens: must be at least the {depth[first]} "
            f"tokens of the path of its type '{known[index[first]]}'"
        )


def type_index(type_names: Sequence[str], recorded: RecordedRequests) -> NDArray[np.int64]:
    """Return the index of each recorded request's type among a scenario's types, ``[R]``."""
    index = np.array([type_names.index(name) for name in recorded.type_names], dtype=np.int64)
    return index[recorded.type]
