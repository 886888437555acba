"""Contents that change: when, and what nodes lose."""

import numpy as np
import pytest

from edgegym.jit import kernel
from edgegym.simulator import Fleet
from edgegym.simulator.columns import NEXT_REQUEST, NUM_REQUESTS
from edgegym.simulator.full.expiry import (
    allocate_expiry,
    bytes_to_fetch,
    draw_phases,
    expiry_params,
    next_change_s,
)
from tests.simulator.fleets import scenario


@kernel
def _next_change_s(params, state, vertex):
    return next_change_s(params, state, vertex)


@kernel
def _bytes_to_fetch(params, vertex, holding, profile, draining):
    return bytes_to_fetch(params, vertex, holding, profile, draining)


LIVES = {"forest.small.lifetime_s": 60.0, "forest.other.lifetime_s": 7.5}


def test_first_changes_are_spread_over_the_lifetime_and_hang_on_the_seed_alone():
    params = expiry_params(scenario(**LIVES))
    assert params.lifetime_s.tolist() == [60.0, 7.5]
    state = allocate_expiry(params, 400)
    for b in range(400):
        draw_phases(params, state, b, b)
    share = state.phase_s / params.lifetime_s
    assert ((share > 0) & (share <= 1)).all()
    # The mean of 400 uniform numbers has a standard error of 0.0144, their variance one of 0.0037.
    np.testing.assert_allclose(share.mean(axis=0), 0.5, atol=4 * 0.0144)
    np.testing.assert_allclose(share.var(axis=0), 1 / 12, atol=4 * 0.0037)
    assert abs(np.corrcoef(share.T)[0, 1]) < 0.2
    again = allocate_expiry(params)
    draw_phases(params, again, 0, 17)
    assert (again.phase_s[0] == state.phase_s[17]).all()


@pytest.mark.twin
def test_changes_come_every_lifetime_without_drift():
    params = expiry_params(scenario(**LIVES))
    state = allocate_expiry(params)
    draw_phases(params, state, 0, 3)
    lane = type(state)(*(array[0] for array in state))
    lane.version[:] = 10**9
    expected = [float(lane.phase_s[k]) + 10**9 * params.lifetime_s[k] for k in range(2)]
    assert [_next_change_s(params, lane, k) for k in range(2)] == expected


def test_a_holding_loses_the_vertex_and_what_continues_it():
    world = scenario(**LIVES)
    params, catalogue = expiry_params(world), world.catalogue
    for position, held in enumerate(catalogue.holdings):
        for column, gone in enumerate((frozenset({"small", "big"}), frozenset({"other"}))):
            assert catalogue.holdings[params.left[position, column]] == held - gone
            assert params.lost_bytes[position, column] == catalogue.forest.total_bytes(held & gone)


@pytest.mark.twin
def test_a_draining_node_awaits_only_what_it_still_had():
    world = scenario(**LIVES)
    params = expiry_params(world)
    small, big = world.profile_names.index("small"), world.profile_names.index("big")
    # On the way from `small` to `big`: holds 1 GB of the 2 that change.
    assert _bytes_to_fetch(params, 0, small, big, True) == 10**9
    assert _bytes_to_fetch(params, 0, small, big, False) == 2 * 10**9


def placed(change_s, **overrides):
    """Return a node that holds `big` (2 GB, link 1 GB/s), whose content `small` changes then."""
    overrides = {"backhaul.sharing": "shared"} | overrides
    made = Fleet(
        scenario(nodes={"count": 1}, initial={"mix": {"big": 1.0}}, **LIVES, **overrides), seed=1
    )
    state = made.state
    state.stream_end_s[0] = np.inf
    state.scalars[0, NEXT_REQUEST] = state.scalars[0, NUM_REQUESTS]
    late = float(state.full.expiry.phase_s[0, 0])
    made.advance(late + change_s)
    return made


def holds(made):
    """Return the vertices that the node holds."""
    return made.scenario.catalogue.holdings[int(made.state.holding[0, 0])]


@pytest.mark.twin
@pytest.mark.parametrize("sharing", ["shared", "dedicated"])
def test_a_node_fetches_what_changed_and_can_be_moved_again(sharing):
    made = placed(-0.5, **{"backhaul.sharing": sharing})
    assert holds(made) == {"small", "big"}
    bucket = made.bucket_bytes
    stats = made.advance(1.0)  # half a second after the change
    assert holds(made) == frozenset()
    assert made.state.receiving[0, 0]
    assert not made.legal_moves().any()
    assert stats.refresh_bytes == 2 * 10**9
    assert (stats.bytes_moved, stats.moves_started) == (0, 0)
    assert made.bucket_bytes >= bucket
    made.advance(1.49)
    assert holds(made) == frozenset()
    made.advance(0.02)  # 2 GB at 1 GB/s
    assert holds(made) == {"small", "big"}
    assert not made.state.receiving[0, 0]


@pytest.mark.twin
@pytest.mark.parametrize("sharing", ["shared", "dedicated"])
def test_the_new_version_joins_a_move_that_is_on_its_way(sharing):
    # The node takes `big` anew: 2 GB in 2 s. Half a second before the end `small` changes, and with
    # it all of `big`: 2 GB more, so that it has it 2.5 s after the change.
    made = placed(-1.5, **{"backhaul.sharing": sharing})
    none, big = (made.scenario.profile_names.index(name) for name in ("none", "big"))
    made.start_move(0, none)
    made.start_move(0, big)
    stats = made.advance(1.6)
    assert (stats.bytes_moved, stats.refresh_bytes) == (2 * 10**9, 2 * 10**9)
    made.advance(2.3)
    assert holds(made) == frozenset()
    made.advance(0.2)
    assert holds(made) == {"small", "big"}
