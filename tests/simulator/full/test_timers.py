"""Timers against a dictionary."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.full.timers import (
    Timers,
    allocate_timers,
    first_station,
    first_time,
    set_timer,
)

pytestmark = pytest.mark.twin


@kernel
def set_all(timers, stations, times, firsts):
    for k in range(len(stations)):
        set_timer(timers, stations[k], times[k])
        firsts[k, 0] = first_time(timers)
        firsts[k, 1] = first_station(timers)


# Few different times, so that many are equal.
TIMES = st.one_of(st.integers(0, 4).map(float), st.just(math.inf), st.floats(0.0, 5.0))


@given(st.integers(1, 20), st.lists(st.tuples(st.integers(0, 19), TIMES), max_size=80))
def test_first_is_the_earliest_and_the_lowest_of_equals(number, settings):
    timers = Timers._make(array[0] for array in allocate_timers(number))
    stations = np.array([station % number for station, _ in settings], dtype=np.int64)
    times = np.array([time for _, time in settings], dtype=np.float64)
    firsts = np.empty((len(settings), 2))
    set_all(timers, stations, times, firsts)
    expected = dict.fromkeys(range(number), math.inf)
    for station, time, first in zip(stations.tolist(), times.tolist(), firsts, strict=True):
        expected[station] = time
        assert tuple(first) == min((time, station) for station, time in expected.items())
    assert timers.time_s.tolist() == list(expected.values())
    np.testing.assert_array_equal(timers.heap[timers.place], np.arange(number))


def test_new_timers_are_not_set():
    timers = allocate_timers(3, batch=2)
    assert timers.time_s.shape == timers.heap.shape == timers.place.shape == (2, 3)
    assert np.isinf(timers.time_s).all()
    assert timers.heap is not timers.place
