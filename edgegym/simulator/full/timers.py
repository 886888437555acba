"""One next time for each station or request, and the first of all: a binary heap with an index.

Unlike events, a timer can be set again at any time: a station whose pace changes moves its next
event instead of leaving a stale one behind.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.state import Floats, Ints


class Timers(NamedTuple):
    """Timers of M stations; with a leading axis of fleets outside kernels."""

    time_s: Floats  # [M] next time of each station, inf for none
    heap: Ints  # [M] station at each place of the heap
    place: Ints  # [M] place of each station in it


def allocate_timers(stations: int, batch: int = 1) -> Timers:
    """Return timers that are not set.

    Parameters
    ----------
    stations : int
        Number of stations, M.
    batch : int
        Number of fleets, B.

    Returns
    -------
    Timers
        Arrays ``[B, M]``.
    """
    order = np.tile(np.arange(stations, dtype=np.int64), (batch, 1))
    return Timers(np.full((batch, stations), np.inf), order, order.copy())


def with_more_timers(timers: Timers, stations: int) -> Timers:
    """Return the timers with room for more stations, those not set."""
    batch, before = timers.time_s.shape
    longer = allocate_timers(stations, batch)
    for more, array in zip(longer, timers, strict=True):
        more[:, :before] = array
    return longer


@inlined
def first_time(timers: Timers) -> float:
    """Return the earliest time, inf when no timer is set."""
    station: int = timers.heap[0]
    return timers.time_s[station]


@inlined
def first_station(timers: Timers) -> int:
    """Return the station with the earliest time, the lowest among equals."""
    return timers.heap[0]


@helper
def set_timer(timers: Timers, station: int, time_s: float) -> None:
    """Set the next time of a station; inf takes it away."""
    times, heap, place = timers.time_s, timers.heap, timers.place
    before = times[station]
    if time_s == before:
        return
    times[station] = time_s
    hole = place[station]
    if time_s < before:
        while hole > 0:
            parent = (hole - 1) >> 1
            other = heap[parent]
            if times[other] < time_s or (times[other] == time_s and other < station):
                break
            heap[hole] = other
            place[other] = hole
            hole = parent
    else:
        size = len(place)
        child = 2 * hole + 1
        while child < size:
            other = heap[child]
            if child + 1 < size:
                right = heap[child + 1]
                if times[right] < times[other] or (times[right] == times[other] and right < other):
                    child += 1
                    other = right
            if time_s < times[other] or (time_s == times[other] and station < other):
                break
            heap[hole] = other
            place[other] = hole
            hole = child
            child = 2 * hole + 1
    heap[hole] = station
    place[station] = hole
