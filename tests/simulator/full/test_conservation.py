"""What holds in every world of the full loop: nothing is lost, counted twice, or out of order."""

import pickle
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from edgegym.simulator import Fleet, WindowStats
from edgegym.simulator.columns import (
    ACTIVE,
    FREE,
    IN_FLIGHT,
    IN_SLOTS,
    NODE,
    ON_RADIO,
    QUEUED,
    SLOT_FREED,
    SLOTS,
    STATUS,
    USED_RECORDS,
    WAITING,
)
from edgegym.simulator.full.columns import (
    IN_ENGINE,
    LOST,
    PREFILLING,
    RESTORING,
    STALLED,
)
from edgegym.simulator.full.lru_data import USED_BYTES
from edgegym.simulator.records import ArraySink, RecordTable
from tests.simulator.full.random_worlds import worlds

_IN_SLOT = (ACTIVE, STALLED, RESTORING, PREFILLING, IN_ENGINE)
_STEPS = 6
_SPAN_S = 4.8
_MOVES = st.lists(st.integers(0, 50), min_size=_STEPS, max_size=_STEPS)
_NS = 1e-9
_PARTS = ("radio_s", "wait_s", "stall_s", "restore_s", "server_wait_s", "prefill_s")


def _play(fleet: Fleet, moves: list[int]) -> list[WindowStats]:
    """Advance in steps, with a move that is legal after each; return the windows."""
    windows = []
    for choice in moves:
        windows.append(fleet.advance(_SPAN_S / _STEPS))
        _check_stations(fleet)
        legal = np.argwhere(fleet.legal_moves())
        if len(legal):
            fleet.start_move(*legal[choice % len(legal)].tolist())
    return windows


def _check_stations(fleet: Fleet) -> None:
    """Check that what is counted at each station is there, and fits its slots and its memory."""
    state, world = fleet.state, fleet.world
    used = int(state.scalars[0, USED_RECORDS])
    info, work = state.record_index[0, :used], state.node_work[0]
    for station in range(len(work)):
        status = info[info[:, NODE] == station, STATUS]
        assert np.isin(status, _IN_SLOT).sum() == work[station, IN_SLOTS]
        assert (status == QUEUED).sum() == work[station, WAITING]
        assert (status == IN_FLIGHT).sum() == work[station, ON_RADIO]
        # A queue waits only for slots, and only a shrink may leave more in use than there are.
        assert work[station, WAITING] == 0 or work[station, IN_SLOTS] >= work[station, SLOTS]
    count = int(state.node_count[0])
    up = state.up[0, :count]
    over = work[:count, IN_SLOTS] > work[:count, SLOTS]
    if fleet.scenario.cache.kind == "lru":
        held = fleet.scenario.cache.budget_bytes
        assert (state.full.lru.stations[0, :, USED_BYTES] <= held).all()
        return
    holding = state.holding[0, :count] % world.classes.num_holdings
    profile = state.profile[0, :count]
    lacking = np.where(up, world.classes.missing_bytes[holding, profile], 0)
    # What a node lacks of its profile, it receives.
    assert ((lacking == 0) | state.receiving[0, :count]).all()
    runtime_bytes = work[:count, IN_SLOTS] * world.runtime_bytes_per_sequence
    total = world.holding_bytes[holding] + lacking + runtime_bytes
    assert (total[~over] <= world.usable_bytes).all()


def _check_windows(fleet: Fleet, windows: list[WindowStats], table: RecordTable) -> None:
    """Check that requests are conserved, and that windows and records tell the same."""
    total = reduce(add, windows)
    used = int(fleet.state.scalars[0, USED_RECORDS])
    status = fleet.state.record_index[0, :used, STATUS]
    in_system = (~np.isin(status, (FREE, LOST, SLOT_FREED))).sum()
    ended = total.completed + total.rejected + total.interrupted
    assert total.arrivals == ended + in_system
    late_tokens = (status == SLOT_FREED).sum()
    outcome = table["outcome"]
    assert (outcome == 0).sum() == total.completed - late_tokens
    assert (outcome == 1).sum() == total.interrupted
    assert (outcome == 2).sum() == total.rejected
    assert len(np.unique(table["request"])) == len(table["request"])
    assert total.hits <= total.decided <= total.arrivals
    served = table.where(np.flatnonzero(outcome < 2))
    parts = sum(served[name] for name in _PARTS)
    np.testing.assert_allclose(parts, served["ttft_s"], rtol=0, atol=_NS)
    for name in _PARTS:
        assert (served[name] >= -_NS).all(), name
    assert (served["end_to_end_s"] >= served["ttft_s"] - _NS).all()
    assert (served["hit_tokens"] < served["input_tokens"]).all()


def _check_order(table: RecordTable) -> None:
    """Check that every station serves first in, first out."""
    served = table.where(np.flatnonzero(table["outcome"] < 2))
    join = served["arrival_s"] + served["radio_s"]
    start = join + served["wait_s"]
    for station in np.unique(served["node"]):
        here = np.flatnonzero(served["node"] == station)
        order = here[np.argsort(join[here], kind="stable")]
        assert (np.diff(start[order]) >= -1e-6).all()


def _check_world(scenario, seed, moves):
    sink = ArraySink()
    fleet = Fleet(scenario, seed=seed, records=sink)
    windows = _play(fleet, moves)
    _check_windows(fleet, windows, sink.table())
    _check_order(sink.table())


@pytest.mark.twin
@given(worlds(), st.integers(0, 2**32), _MOVES)
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_or_counted_twice(scenario, seed, moves):
    _check_world(scenario, seed, moves)


@pytest.mark.slow
@given(worlds(), st.integers(0, 2**32), _MOVES)
@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
def test_nothing_is_lost_in_five_hundred_worlds(scenario, seed, moves):
    _check_world(scenario, seed, moves)


@pytest.mark.twin
@given(worlds(), st.integers(0, 2**32), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_the_same_seed_gives_the_same_bits_however_time_is_cut(scenario, seed, cuts):
    whole, pieces = ArraySink(), ArraySink()
    at_once = Fleet(scenario, seed=seed, records=whole).advance(_SPAN_S)
    fleet = Fleet(scenario, seed=seed, records=pieces)
    times = [0.0, *sorted(cut * _SPAN_S for cut in cuts)]
    windows = [fleet.advance(after - before) for before, after in pairwise(times)]
    windows.append(fleet.advance(_SPAN_S - fleet.now_s))
    assume(fleet.now_s == _SPAN_S)
    assert reduce(add, windows) == at_once
    one, other = whole.table().by_request(), pieces.table().by_request()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.twin
@given(worlds(), st.integers(0, 2**32))
@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
def test_a_fork_and_a_pickle_continue_as_the_original_does(scenario, seed):
    fleet = Fleet(scenario, seed=seed)
    fleet.advance(1.7)
    copies = [fleet.fork(), pickle.loads(pickle.dumps(fleet))]
    expected = fleet.advance(2.0)
    for copy in copies:
        assert copy.advance(2.0) == expected
