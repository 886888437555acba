"""Contents that change: when, and what nodes lose."""

import numpy as np
import pytest

from edgegym.jit import kernel
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
