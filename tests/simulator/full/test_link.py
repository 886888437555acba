"""The backhaul against closed forms, schedules by hand, and exact fractions."""

import heapq
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.compiling import lend
from edgegym.simulator.full.flows import (
    ABANDONED_BYTES,
    BUSY_TICKS,
    CARRIED_BYTES,
    FETCH,
    FLOW_STATION,
    FLOW_TICKS,
    FLOWS,
    GROUP_FLOWS,
    GROUP_RATE,
    MOVE,
    NO_FLOW,
    REFRESH,
    find_flow,
)
from edgegym.simulator.full.link import add_flow, advertised_bytes_per_s, allocate_link, pop_flow
from edgegym.simulator.state import TICKS_PER_S
from tests.simulator.full.links import (
    ADD,
    CANCEL,
    DOWN,
    EXTEND,
    PEEK,
    UP,
    exact_ends,
    fair_rates,
    one_of,
    params,
    play,
)

GIB = 2**30
RATE_400_GBIT = 50e9


@pytest.mark.twin
@pytest.mark.parametrize(("flows", "milliseconds"), [(1, 21.47483648), (16, 343.59738368)])
def test_one_gibibyte_on_a_400_gigabit_link(flows, milliseconds):
    played = play(params(RATE_400_GBIT), [(0.0, ADD, 0, GIB)] * flows)
    np.testing.assert_allclose(played.ends, milliseconds * 1e-3, rtol=1e-15)
    assert len(set(played.ends)) == 1
    assert list(played.order) == list(range(flows))


@pytest.mark.twin
def test_dedicated_transfers_do_not_see_each_other():
    schedule = [(0.1 * k, ADD, k % 2, GIB + k) for k in range(5)]
    played = play(params(RATE_400_GBIT, shared=False), schedule)
    for k, (time, _, _, size) in enumerate(schedule):
        assert played.ends[k] == time + size / RATE_400_GBIT  # the bits of the fast loop


@pytest.mark.twin
def test_staggered_schedule_by_hand():
    """100 bytes/s. A (300 bytes) alone until 1, with B (100) until 2, then with C (200) too.

    At 2 they have 150, 50 and 200 left and get a third each: B ends at 3.5, leaving 100 and 150 at
    a half each: A ends at 5.5, leaving C 50 bytes for half a second.
    """
    schedule = [(0.0, ADD, 0, 300), (1.0, ADD, 0, 100), (2.0, ADD, 1, 200)]
    played = play(params(), schedule)
    np.testing.assert_allclose(played.ends, [5.5, 3.5, 6.0], rtol=1e-15)
    assert list(played.order) == [1, 0, 2]


@pytest.mark.twin
def test_staggered_schedule_with_access_rates_by_hand():
    """The same with at most 60 bytes/s to a station; A and B go to the same.

    A has 240 bytes left at 1; A 210 and B 70 at 2. Then A and B get 30 each and C the other 40: B
    ends after 7/3 s and leaves A 140, C 320/3. Now 50 each: C ends after 32/15 s and leaves A
    100/3, which take 5/9 s at 60.
    """
    schedule = [(0.0, ADD, 0, 300), (1.0, ADD, 0, 100), (2.0, ADD, 1, 200)]
    played = play(params(access=60.0), schedule)
    second = 2.0 + 7 / 3
    third = second + 32 / 15
    np.testing.assert_allclose(played.ends, [third + 5 / 9, second, third], rtol=1e-15)


@pytest.mark.twin
def test_outage_and_cancellation_by_hand():
    """A and B share from 0; the link is down from 1 to 3; B is given up at 4, with 100 bytes."""
    schedule = [
        (0.0, ADD, 0, 300),
        (0.0, ADD, 1, 500),
        (1.0, DOWN, 0, 0),
        (3.0, UP, 0, 0),
        (4.0, CANCEL, 1, 0),
    ]
    played = play(params(), schedule)
    assert played.ends[0] == 6.0
    assert np.isnan(played.ends[1])
    assert played.link.num[ABANDONED_BYTES] == 100
    assert played.link.num[CARRIED_BYTES + FETCH] == 300
    assert played.link.num[BUSY_TICKS] == 4 * TICKS_PER_S
    assert played.link.num[FLOW_TICKS] == 6 * TICKS_PER_S


@pytest.mark.twin
def test_outage_of_dedicated_transfers_by_hand():
    schedule = [
        (0.0, ADD, 0, 300),
        (1.0, DOWN, 0, 0),
        (2.0, ADD, 0, 100),
        (4.0, UP, 0, 0),
        (4.5, ADD, 0, 100),
    ]
    np.testing.assert_allclose(
        play(params(shared=False), schedule).ends, [6.0, np.nan, 5.0, np.nan, 5.5], rtol=1e-15
    )


@pytest.mark.twin
def test_compressed_state_is_rounded_up_to_whole_bytes():
    played = play(params(compression=3.0), [(0.0, ADD, 0, 301)])
    assert played.ends[0] == 1.01
    assert played.link.num[CARRIED_BYTES + FETCH] == 101


stations = st.integers(0, 3)
moments = st.integers(0, 400).map(lambda k: k / 16)
changes = st.lists(
    st.one_of(
        st.tuples(moments, st.just(ADD), stations, st.integers(1, 600)),
        st.tuples(moments, st.just(CANCEL), st.integers(0, 20), st.just(0)),
        st.tuples(moments, st.just(EXTEND), st.integers(0, 20), st.integers(1, 300)),
        st.tuples(moments, st.sampled_from([DOWN, UP]), st.just(0), st.just(0)),
    ),
    min_size=1,
    max_size=25,
).map(lambda rows: sorted(rows, key=lambda row: row[0]))
links = st.sampled_from(
    [
        params(),
        params(access=60.0),
        params(access=30.0, compression=2.5),
        params(access=20.0),
        params(shared=False),
    ]
)


@pytest.mark.twin
@settings(max_examples=150, deadline=None)
@given(schedule=changes, link_params=links)
def test_any_schedule_against_exact_fractions(schedule, link_params):
    schedule = [
        (*row[:2], min(row[2], k), row[3]) if row[1] in (CANCEL, EXTEND) else row
        for k, row in enumerate(schedule)
    ]
    played, exact = play(link_params, schedule), exact_ends(link_params, schedule)
    expected = np.array([float(exact.get(k, math.nan)) for k in range(len(schedule))])
    np.testing.assert_allclose(played.ends, expected, rtol=0.0, atol=1e-12)
    # Nothing is lost: what ended was carried whole, and what is left waits for the link.
    ended = sum(
        math.ceil(size / link_params.compression)
        for k, (time, code, one, size) in enumerate(schedule)
        if (code == ADD and k in exact)
        or (code == EXTEND and one < k and schedule[one][1] == ADD and exact.get(one, -1) > time)
    )
    assert played.link.num[CARRIED_BYTES + FETCH] == ended
    assert played.link.num[FLOWS] == 0 or (played.link.num[FLOWS] > 0 and np.isnan(expected).any())


@pytest.mark.twin
@settings(max_examples=100, deadline=None)
@given(
    counts=st.lists(st.integers(0, 5), min_size=4, max_size=4).filter(any),
    access=st.sampled_from([5.0, 20.0, 25.0, 33.0, 50.0, 99.0, 200.0]),
)
def test_rates_are_max_min_fair(counts, access):
    schedule = [(0.0, ADD, k, 10**9) for k in range(4) for _ in range(counts[k])]
    link = play(params(access=access), [*schedule, (1.0, DOWN, 0, 0)]).link
    exact = fair_rates(100, int(access), [row[2] for row in schedule])
    by_station = {row[2]: float(rate) for row, rate in zip(schedule, exact, strict=True)}
    for station, rate in by_station.items():
        place = link.group_of[station]
        assert link.group[place, GROUP_FLOWS] == counts[station]
        assert link.group_real[place, GROUP_RATE] == pytest.approx(rate, rel=1e-14)


@pytest.mark.twin
@settings(max_examples=100, deadline=None)
@given(
    schedule=changes, link_params=links, moment=moments, station=stations, size=st.integers(1, 600)
)
def test_forecasts_are_the_difference_of_two_schedules(
    schedule, link_params, moment, station, size
):
    before = [row for row in schedule if row[0] <= moment and row[1] == ADD]
    peek = len(before)
    played = play(link_params, [*before, (moment, PEEK, station, size)])
    added = play(link_params, [*before, (moment, ADD, station, size)])
    there = played.ends[:peek] >= moment
    own_s, imposed_s = played.peeks[peek]
    assert own_s == pytest.approx(added.ends[peek] - moment, rel=1e-12, abs=1e-12)
    later = (added.ends[:peek] - played.ends[:peek])[there]
    assert imposed_s == pytest.approx(later.sum(), rel=1e-9, abs=1e-9)


@pytest.mark.twin
@pytest.mark.parametrize("seed", range(3))
def test_flows_can_be_given_up_in_any_order(seed):
    """Of 120 flows from 0, 80 are given up at once: the rest share the link as if alone.

    One of s bytes ends when all others have received as much or ended: at the sum of min(s', s).
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 1000, 120)
    schedule = [(0.0, ADD, 0, int(size)) for size in sizes]
    gone = rng.permutation(120)[:80]
    schedule += [(0.0, CANCEL, int(flow), 0) for flow in gone]
    ends = play(params(), schedule).ends[:120]
    assert np.isnan(ends[gone]).all()
    left = np.delete(sizes, gone)
    expected = np.minimum(left[:, None], left[None, :]).sum(axis=1) / 100.0
    np.testing.assert_allclose(np.delete(ends, gone), expected, rtol=1e-12)


def test_without_a_link_nothing_would_end():
    schedule = [(0.0, ADD, 0, 300), (1.0, DOWN, 0, 0), (1.0, PEEK, 0, 100)]
    played = play(params(), schedule)
    assert list(played.peeks[2]) == [np.inf, 0.0]
    assert len(played.order) == 0


def test_ends_stay_exact_over_a_long_busy_period():
    """40,000 flows without a pause, against decimals of 40 digits: less than a nanosecond off."""
    random = np.random.default_rng(1)
    count, rate = 40_000, 50e9
    times = np.cumsum(random.exponential(0.02, count)) + 1e4
    sizes = random.integers(1, 2 * GIB, count)
    schedule = [
        (time, ADD, 0, int(size)) for time, size in zip(times.tolist(), sizes.tolist(), strict=True)
    ]
    played = play(params(rate), schedule)
    with localcontext() as context:
        context.prec = 40
        clock = served = Decimal(0)
        waiting: list[tuple[Decimal, int]] = []
        ends = [Decimal(0)] * count
        most = 0
        for k in range(count + 1):
            until = Decimal(schedule[k][0]) if k < count else Decimal("Infinity")
            while waiting:
                most = max(most, len(waiting))
                end = clock + (waiting[0][0] - served) * len(waiting) / Decimal(rate)
                if end > until:
                    break
                served, flow = heapq.heappop(waiting)
                clock = ends[flow] = end
            if k < count:
                if waiting:
                    served += (until - clock) * Decimal(rate) / len(waiting)
                clock = until
                heapq.heappush(waiting, (served + schedule[k][3], k))
        errors = [float(abs(Decimal(played.ends[k]) - ends[k])) for k in range(count)]
    assert most > 50
    assert max(errors) < 1e-9


@kernel
def _advertised(link_params, state, times, ending, seen, size):
    """Add a flow at each time, or end one, after reading the advertised rate."""
    link = lend(state)
    for k in range(len(times)):
        if ending[k]:
            pop_flow(link_params, link, times[k])
            seen[k] = advertised_bytes_per_s(link_params, link, times[k])
        else:
            seen[k] = advertised_bytes_per_s(link_params, link, times[k])
            add_flow(link_params, link, times[k], MOVE, k, 0, 0, size)


@pytest.mark.twin
def test_bandwidth_is_advertised_at_multiples_of_the_period():
    """By hand: 100 bytes/s, flows of 150 bytes, advertised every second.

    What a flow is told of between two multiples does not count; an end at a multiple does, and a
    flow that begins there doesn't. The first two flows end at 2.75 and 3.
    """
    link_params = params(100.0, advertise_s=1.0)
    times = [0.0, 0.25, 1.0, 1.5]
    seen = np.zeros(4)
    link = one_of(allocate_link(link_params, 1))
    _advertised(link_params, link, np.array(times), np.zeros(4, dtype=bool), seen, 150)
    # Idle: 100. Two flows at 1: one more would get a third. One that came at 1 is not known yet.
    np.testing.assert_allclose(seen, [100.0, 100.0, 100 / 3, 100 / 3])

    link = one_of(allocate_link(link_params, 1))
    times = [0.0, 1.5, 1.5, 2.0]
    _advertised(link_params, link, np.array(times[:1]), np.zeros(1, dtype=bool), seen, 150)
    _advertised(link_params, link, np.array(times[1:2]), np.ones(1, dtype=bool), seen[1:], 150)
    _advertised(link_params, link, np.array(times[2:]), np.zeros(2, dtype=bool), seen[2:], 150)
    # At 1 there was one flow; it ended at 1.5 and another came; at 2 that one is known.
    np.testing.assert_allclose(seen, [100.0, 50.0, 50.0, 50.0])


@pytest.mark.twin
def test_an_end_at_a_multiple_of_the_period_is_advertised():
    """A flow of 200 bytes, alone, ends at 2: from then on the link passes for empty."""
    link_params = params(100.0, advertise_s=1.0)
    link = one_of(allocate_link(link_params, 1))
    seen = np.zeros(3)
    _advertised(link_params, link, np.array([0.0]), np.zeros(1, dtype=bool), seen, 200)
    _advertised(link_params, link, np.array([2.0]), np.ones(1, dtype=bool), seen[1:], 0)
    _advertised(link_params, link, np.array([2.5]), np.zeros(1, dtype=bool), seen[2:], 200)
    np.testing.assert_allclose(seen, 100.0)


@kernel
def _found(state, kind, station, source):
    """Return the sum of the stations of all flows that fit, plus 100 for each."""
    link = lend(state)
    total, flow = 0, find_flow(link, 0, kind, station, source)
    while flow != NO_FLOW:
        total += 100 + link.flow[flow, FLOW_STATION]
        flow = find_flow(link, flow + 1, kind, station, source)
    return total


@kernel
def _three(link_params, state):
    link = lend(state)
    add_flow(link_params, link, 0.0, MOVE, 0, 3, 0, 10)
    add_flow(link_params, link, 0.0, FETCH, 0, 2, 1, 50)
    add_flow(link_params, link, 0.0, REFRESH, 0, 3, 1, 50)
    return pop_flow(link_params, link, 0.3)


@pytest.mark.twin
def test_flows_are_found_by_kind_station_and_source():
    link = one_of(allocate_link(params(), 4))
    assert _three(params(), link) == 0
    assert _found(link, -1, -1, -1) == 202
    assert _found(link, FETCH, -1, -1) == 101
    assert _found(link, -1, -1, 3) == 101
    assert _found(link, MOVE, -1, -1) == _found(link, -1, 0, -1) == 0
