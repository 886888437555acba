"""The event queue against sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.events import kind_of, pop_event, push_event, replace_event
from edgegym.simulator.lane import Heap

pytestmark = pytest.mark.twin


@kernel
def _run(heap, times, kinds, actions, seen):
    """Schedule and take events; write (time, kind, item) of each one taken."""
    taken = 0
    for k in range(len(times)):
        if actions[k] > 0 and heap.num[0] > 0:
            seen[taken, 0], seen[taken, 2] = heap.time[0], heap.item[0]
            seen[taken, 1] = kind_of(heap.order[0])
            taken += 1
            if actions[k] == 1:
                pop_event(heap)
            else:
                replace_event(heap, times[k], kinds[k], k)
                continue
        push_event(heap, times[k], kinds[k], k)
    while heap.num[0] > 0:
        seen[taken, 0], seen[taken, 2] = heap.time[0], heap.item[0]
        seen[taken, 1] = kind_of(heap.order[0])
        taken += 1
        pop_event(heap)
    return taken


@given(
    events=st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=40
    )
)
def test_events_come_by_time_then_kind_then_sequence(events):
    times, kinds, actions = (
        np.array(column, dtype=np.int64) for column in zip(*events, strict=True)
    )
    size = len(events) + 1
    heap = Heap(
        np.full(size, np.inf),
        np.zeros(size, dtype=np.int64),
        np.zeros(size, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
    )
    seen = np.zeros((size, 3))
    taken = _run(heap, times.astype(float), kinds, actions, seen)

    waiting, expected = [], []
    for item, (time, kind, action) in enumerate(events):
        if action > 0 and waiting:
            waiting.sort()
            expected.append(waiting.pop(0))
        waiting.append((time, kind, item))
    expected += sorted(waiting)
    assert [tuple(row) for row in seen[:taken]] == expected
    assert heap.time[0] == np.inf
