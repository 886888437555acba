"""A fleet that asks is the fleet that does not, told the same."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.simulator import ArraySink, Fleet
from edgegym.simulator.asking import AskingFleet
from edgegym.simulator.columns import (
    ARRIVALS,
    COMPLETED,
    DECIDED,
    FIRST_TOKENS,
    GOODPUT_TOKENS,
    HITS,
    NEXT_REQUEST,
    NODE,
    REJECTED,
    WAIT_TICKS,
)
from edgegym.simulator.full.columns import FIRST_REQUEST, REQUEST
from edgegym.simulator.full.counts import (
    LINK_BUSY_TICKS,
    LINK_BYTES,
    ORIGIN_BUSY_TICKS,
    ORIGIN_CAPACITY_TICKS,
)
from edgegym.world import preset
from tests.simulator.full.random_worlds import worlds
from tests.simulator.full.worlds import CHAT, CODE, NONE, SMALL, HandMade

STEPS = 60


def asked(scenario, seed, steps, decide, warmup_s=1.0):
    """Return the records, the window, and the clock of a fleet whose requests `decide` sends."""
    sink = ArraySink()
    fleet = AskingFleet(scenario, seed, records=sink)
    if warmup_s:
        fleet.advance(warmup_s)
    fleet.ask()
    for _ in range(steps):
        fleet.answer(*decide(fleet))
    return sink, fleet.close_window(), fleet.now_s


def unasked(scenario, seed, until_s, warmup_s=1.0):
    """Return the same of a plain fleet that stops just before a request."""
    sink = ArraySink()
    fleet = Fleet(scenario, seed, records=sink)
    if warmup_s:
        fleet.advance(warmup_s)
    return sink, fleet.advance(np.nextafter(until_s, 0.0) - fleet.now_s)


def assert_same(asking, plain):
    (one, window, _), (other, plain_window) = asking, plain
    assert window == plain_window
    assert_same_records(one, other)


def assert_same_records(one, other):
    """Compare two sinks; where slots end before first tokens, the order of rows is by chance."""
    left, right = one.table(), other.table()
    rows, others = np.argsort(left["request"]), np.argsort(right["request"])
    for name in left:
        np.testing.assert_array_equal(left[name][rows], right[name][others], err_msg=name)


COUNTS = (ARRIVALS, DECIDED, HITS, FIRST_TOKENS, REJECTED, COMPLETED, GOODPUT_TOKENS, WAIT_TICKS)


def counted(fleet):
    """Return what the window of a fleet has counted."""
    state = fleet.state
    return state.counters[0, COUNTS].tolist(), state.full.counts.extra[0].tolist()


def counted_in_full(fleet):
    """Return what it has counted once all requests in the system have been looked at."""
    twin = fleet.fork()
    twin.close_window()
    (window, extra), (_, before) = counted(twin), counted(fleet)
    # Only closing a window counts these.
    for column in (LINK_BYTES, LINK_BUSY_TICKS, ORIGIN_BUSY_TICKS, ORIGIN_CAPACITY_TICKS):
        extra[column] = before[column]
    return window, extra


FAILING = {
    "routing": {"kind": "load_aware"},
    "failures": {"nodes": {"mean_up_s": 4.0, "mean_down_s": 0.3}},
}


@settings(max_examples=20)
@given(world=worlds(), seed=st.integers(0, 1000))
def test_what_is_decided_is_counted_at_the_next_request(world, seed):
    _check_counts(world, seed, 30, 1.0)


@pytest.mark.parametrize("rate_per_node", [4.0, 16.0])
def test_failing_and_crowded_nodes_are_counted_in_time(rate_per_node):
    world = preset("moving-hotspot").with_overrides(
        FAILING | {"demand.rate_per_node": rate_per_node}
    )
    fleet = _check_counts(world, 1, 200, 1.0)
    assert fleet.close_window().redispatched > 0


def _check_counts(world, seed, steps, warmup_s):
    fleet = AskingFleet(world, seed)
    fleet.advance(warmup_s)
    fleet.ask()
    for step in range(steps):
        assert counted(fleet) == counted_in_full(fleet)
        fleet.answer(None if step % 3 else step % int(fleet.state.node_count[0]))
    return fleet


def routers_choice(fleet):
    """Return where a twin's router sends the request: a node, -1 or -2."""
    state = fleet.state
    number = int(state.full.scalars[0, FIRST_REQUEST] + state.scalars[0, NEXT_REQUEST])
    twin = fleet.fork()
    # Before the next request nothing else is new: either it is somewhere, or it was rejected.
    twin.answer(None)
    rows = np.flatnonzero(twin.state.full.tasks.num[0, :, REQUEST] == number)
    before = fleet.state.full.tasks.num[0, :, REQUEST] == number
    rows = [row for row in rows if not before[row]]
    if not rows:
        return None
    station = int(twin.state.record_index[0, rows[-1], NODE])
    return -2 if station == fleet.world.max_nodes else station


@settings(max_examples=30)
@given(world=worlds(), seed=st.integers(0, 1000))
def test_the_router_asked_is_the_router_unasked(world, seed):
    asking = asked(world, seed, STEPS, lambda fleet: (None,))
    assert_same(asking, unasked(world, seed, asking[2]))


@pytest.mark.parametrize("kind", ["nearest", "prefix_aware", "load_aware", "lmetric"])
def test_told_what_the_router_chooses_nothing_changes(kind):
    world = preset("moving-hotspot").with_overrides({"routing": {"kind": kind}})
    told = []

    def decide(fleet):
        node = routers_choice(fleet)
        told.append(node)
        return (node,)

    asking = asked(world, 7, STEPS, decide)
    assert None not in told
    assert len(set(told)) > 5
    assert_same(asking, unasked(world, 7, asking[2]))


def test_told_otherwise_it_goes_there():
    world = preset("moving-hotspot")
    told = {}

    def decide(fleet):
        state = fleet.state
        number = int(state.full.scalars[0, FIRST_REQUEST] + state.scalars[0, NEXT_REQUEST])
        told[number] = number % 5 - 1
        return (told[number],)

    table = asked(world, 3, 400, decide, warmup_s=0.0)[0].table()
    served = dict(zip(table["request"].tolist(), table["node"].tolist(), strict=True))
    assert len(served) > 100
    for number, node in served.items():
        assert node == told[number]


def test_window_and_clock_stand_at_the_request():
    world = preset("moving-hotspot")
    fleet = AskingFleet(world, 2)
    assert not fleet.asks
    assert fleet.ask()
    assert fleet.ask()  # again: the same request
    first = fleet.now_s
    assert fleet.now_s == fleet.state.request_time_s[0, 0]
    fleet.answer(None)
    window = fleet.close_window()
    assert window.arrivals == 1
    assert window.seconds == pytest.approx(fleet.now_s, abs=1e-8)
    assert fleet.now_s > first
    fleet.answer(None)
    assert fleet.close_window().arrivals == 1


def test_fetch_and_compute_are_what_was_said():
    # A node that lacks everything, one that holds "small" of 400 tokens and 1 GB far away.
    for controller in ("never", "always"):
        ttft = {}
        for fetch in (False, True):
            world = HandMade(
                [(0.5, 0.5), (2.5, 2.5)],
                [NONE, SMALL],
                [(1.0, 0.5, 0.5, CHAT)],
                backhaul={"rate_bytes_per_s": 10 * 10**9},
                fetch={"controller": controller},
            )
            table = _asked_by_hand(world, 0, fetch)
            ttft[fetch] = table["ttft_s"][0]
            assert table["node"][0] == 0
            assert table["fetched_bytes"][0] == (10**9 if fetch else 0)
            # 1 GB at 10 GB/s.
            assert table["stall_s"][0] == pytest.approx(0.1 if fetch else 0.0)
            assert (table["hit_tokens"][0] > 0) == fetch
        assert ttft[True] != ttft[False]


def _asked_by_hand(world, node, fetch):
    """Let a hand-made fleet ask about its only request."""
    fleet = AskingFleet.__new__(AskingFleet)
    fleet.__dict__.update(world.fleet.__dict__)
    assert fleet.ask()
    fleet.answer(node, fetch)
    assert not fleet.is_asking
    fleet.close_window()
    return world.sink.table()


def test_a_fetch_finds_the_link_as_it_is_when_it_lands():
    world = HandMade(
        [(0.5, 0.5), (2.5, 2.5)],
        [NONE, SMALL],
        [(1.0, 0.5, 0.5, CODE)],
        backhaul={"rate_bytes_per_s": 10**9},
        failures={"outages": [{"what": "backhaul", "begin_s": 0.9, "end_s": 9.0}]},
    )
    table = _asked_by_hand(world, 0, True)
    assert table["fetched_bytes"][0] == 0
    assert table["stall_s"][0] == 0.0


@pytest.mark.parametrize("way", ["state", "fork", "copy", "pickle"])
def test_copies_continue_identically(way):
    world = preset("node-failures")
    fleet = AskingFleet(world, 11)
    fleet.advance(1.0)
    fleet.ask()
    for k in range(40):
        fleet.answer(k % 5)
    if way == "state":
        twin = AskingFleet(world)
        twin.set_state(fleet.get_state())
    elif way == "fork":
        twin = fleet.fork()
    elif way == "copy":
        twin = copy.deepcopy(fleet)
    else:
        twin = pickle.loads(pickle.dumps(fleet))
    assert isinstance(twin, AskingFleet)
    for k in range(40):
        assert twin.now_s == fleet.now_s
        fleet.answer(k % 7 - 1)
        twin.answer(k % 7 - 1)
    assert twin.close_window() == fleet.close_window()


def test_misuse_is_named():
    fleet = AskingFleet(preset("toy"), 1)
    with pytest.raises(ValueError, match="has not asked"):
        fleet.answer(0)
    fleet.ask()
    with pytest.raises(ValueError, match=r"node = 2: must be one of 0\.\.1"):
        fleet.answer(2)
    with pytest.raises(ValueError, match="no origin"):
        fleet.answer(-2)
    with pytest.raises(ValueError, match="call answer"):
        fleet.advance(1.0)
    lru = preset("toy").with_overrides({"cache": {"kind": "lru", "budget_bytes": 10**9}})
    fleet = AskingFleet(lru, 1)
    fleet.ask()
    with pytest.raises(ValueError, match="lru"):
        fleet.answer(0, True)
