"""The event queue against sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.columns import SIZE
from edgegym.simulator.compiling import borrow
from edgegym.simulator.events import (
    LANDING,
    kind_of,
    next_entry,
    pop_event,
    push_event,
    replace_event,
    request_item,
    turn_page,
    walk_page,
)
from edgegym.simulator.lane import lane_of
from edgegym.simulator.room import with_more_records
from edgegym.simulator.state import allocate
from tests.simulator.fleets import scenario

pytestmark = pytest.mark.twin


@kernel
def _run(lane, delays, kinds, actions, seen, clock):
    """Schedule and take events; write (time, kind, item) of each one taken."""
    core = borrow(lane).core
    queue = core.queue
    taken = 0
    for k in range(len(delays)):
        if queue.soon.num[SIZE] == 0:
            turn_page(queue, 1e9)
        item = request_item(0, k)
        if actions[k] > 0 and queue.soon.num[SIZE] > 0:
            clock = queue.soon.time[0]
            seen[taken, 0], seen[taken, 2] = clock, queue.soon.item[0]
            seen[taken, 1] = kind_of(queue.soon.order[0])
            taken += 1
            if actions[k] == 1:
                pop_event(queue)
            else:
                replace_event(queue, clock + delays[k], kinds[k], item)
                continue
        push_event(queue, clock + delays[k], kinds[k], item)
    while True:
        if queue.soon.num[SIZE] == 0:
            turn_page(queue, 1e9)
            if queue.soon.num[SIZE] == 0:
                return taken
        seen[taken, 0], seen[taken, 2] = queue.soon.time[0], queue.soon.item[0]
        seen[taken, 1] = kind_of(queue.soon.order[0])
        taken += 1
        pop_event(queue)


# Many delays at once and within a page, some of pages, some beyond the last one.
delays = st.sampled_from([0.0, 0.0, 1e-3, 0.1, 0.3, 1.0, 1.7, 8.0, 60.0, 1e4])


@given(
    events=st.lists(
        st.tuples(delays, st.integers(0, 4), st.integers(0, 2)), min_size=1, max_size=120
    ),
    grown=st.booleans(),
)
def test_events_come_by_time_then_kind_then_sequence(events, grown):
    times, kinds, actions = (np.array(column) for column in zip(*events, strict=True))
    world = scenario(nodes={"count": 1}, demand={"rate_per_node": 20.0}).compile()
    state = allocate(world)
    if grown:
        state = with_more_records(state)
    seen = np.zeros((len(events), 3))
    taken = _run(lane_of(world, state, 0), times, kinds, actions, seen, 0.0)

    waiting, expected, clock = [], [], 0.0
    for item, (delay, kind, action) in enumerate(events):
        if action > 0 and waiting:
            waiting.sort()
            expected.append(waiting.pop(0))
            clock = expected[-1][0]
        waiting.append((clock + delay, kind, item))
    expected += sorted(waiting)
    assert [tuple(row) for row in seen[:taken]] == expected
    assert state.soon_time[0, 0] == state.far_time[0, 0] == np.inf
    assert not state.calendar_num[0, 1]


def test_a_page_takes_any_number_of_events():
    world = scenario(nodes={"count": 1}, demand={"rate_per_node": 20.0}).compile()
    count = 100
    state = allocate(world)
    seen = np.zeros((count, 3))
    delays = np.full(count, 1.0) + np.arange(count)[::-1] * 1e-6
    zeros = np.zeros(count, dtype=np.int64)
    assert _run(lane_of(world, state, 0), delays, zeros, zeros, seen, 0.0) == count
    assert seen[:, 2].tolist() == list(range(count))[::-1]


@kernel
def _walk(lane, page, seen):
    """Write the items of the entries of a page in the order of a walk; return how many."""
    calendar = borrow(lane).core.queue.calendar
    walk, visited = walk_page(calendar, page), 0
    while walk.entry < walk.end:
        seen[visited] = calendar.entries[walk.entry, 2]
        visited += 1
        walk = next_entry(calendar, walk)
    return visited


@kernel
def _schedule(lane, times):
    """Schedule an event at each of some times."""
    queue = borrow(lane).core.queue
    for item in range(len(times)):
        push_event(queue, times[item], LANDING, item)


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 41])
def test_a_walk_sees_each_event_of_a_page_once(count):
    world = scenario(nodes={"count": 1}, demand={"rate_per_node": 20.0}).compile()
    state = allocate(world)
    lane, page = lane_of(world, state, 0), 3
    page_s = 1.0 / lane.core.queue.calendar.pages_per_s
    others = np.full(20, (page + 1.5) * page_s)
    _schedule(lane, np.concatenate((np.full(count, (page + 0.5) * page_s), others)))
    seen = np.full(count + 1, -1)
    assert _walk(lane, page, seen) == count
    assert sorted(seen[:count]) == list(range(count))
