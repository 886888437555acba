"""The exact search: grid and scan agree to the bit, and both with a plain calculation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator import Fleet
from edgegym.simulator.lane import lane_of
from edgegym.simulator.search import build_grid, scan_nodes, search_grid
from edgegym.simulator.state import allocate
from tests.simulator.fleets import scenario

pytestmark = pytest.mark.twin


@kernel
def _choose(area, nodes, xs, ys, types, scanned, searched):
    for k in range(len(xs)):
        choice = scan_nodes(area, nodes, xs[k], ys[k], types[k])
        scanned[k, 0], scanned[k, 1] = choice.node, choice.nearest
        choice = search_grid(area, nodes, xs[k], ys[k], types[k])
        searched[k, 0], searched[k, 1] = choice.node, choice.nearest


def choices(world, places_km, prefill_s, wait_s, up, users_km, types, cells):
    """Return (node, nearest) of each user by scan and by grid."""
    state = allocate(world, grid_cells=cells[0] * cells[1])
    count = len(places_km)
    state.node_count[0] = count
    state.node_x[0, :count], state.node_y[0, :count] = places_km.T
    state.reach_x_km[0, :count] = np.where(up, places_km[:, 0], np.inf)
    state.node_prefill_s[0, :, :count] = prefill_s
    state.advertised_wait_s[0, :count] = wait_s
    build_grid(world, state, 0, cells)
    lane = lane_of(world, state, 0)
    scanned, searched = np.empty((2, len(types), 2), dtype=np.int64)
    x, y = np.ascontiguousarray(users_km.T)
    _choose(lane.area, lane.core.nodes, x, y, types, scanned, searched)
    return scanned, searched


def expected_choices(world, places_km, prefill_s, wait_s, up, users_km, types):
    """Return (node, nearest) of each user by a plain calculation."""
    size = np.array([world.width_km, world.height_km])
    found = []
    for user, kind in zip(users_km, types, strict=True):
        delta = np.abs(places_km - user)
        if world.periodic:
            delta = np.minimum(delta, size - delta)
        distance = np.where(up, np.hypot(*delta.T), np.inf)
        cost = world.radio_xi * distance**world.radio_alpha
        if world.router_kind > 0:
            cost = cost + prefill_s[kind]
        if world.router_kind > 1:
            cost = cost + wait_s
        found.append((cost, distance))
    return found


@given(
    seed=st.integers(0, 2**32),
    periodic=st.booleans(),
    alpha=st.sampled_from([1.5, 2.0, 3.7]),
    router=st.sampled_from(["nearest", "prefix_aware", "load_aware"]),
    count=st.integers(1, 60),
    height_km=st.sampled_from([0.4, 3.0, 10.0]),
    coarse=st.booleans(),
)
def test_grid_and_scan_choose_the_same_node(
    seed, periodic, alpha, router, count, height_km, coarse
):
    rng = np.random.default_rng(seed)
    world = scenario(
        nodes={"count": 60},
        region={"width_km": 10.0, "height_km": height_km, "periodic": periodic},
        radio={"xi": 0.1, "alpha": alpha},
        routing={"kind": router},
    ).compile()
    size = np.array([10.0, height_km])
    places, users = rng.random((count, 2)) * size, rng.random((40, 2)) * size
    if coarse:  # many ties
        places, users = np.floor(places), np.floor(users)
    up = rng.random(count) < 0.9
    held = rng.integers(0, world.num_holdings, count)
    prefill_s = world.prefill_s[held].T
    wait_s = rng.choice([0.0, 0.1, 0.5], count)
    types = rng.integers(0, 2, 40)
    cells = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    scanned, searched = choices(world, places, prefill_s, wait_s, up, users, types, cells)
    np.testing.assert_array_equal(scanned, searched)
    expected = expected_choices(world, places, prefill_s, wait_s, up, users, types)
    for (node, nearest), (cost, distance) in zip(scanned, expected, strict=True):
        if not up.any():
            assert (node, nearest) == (-1, -1)
        else:
            assert cost[node] == pytest.approx(cost.min(), abs=1e-12)
            assert distance[nearest] == pytest.approx(distance.min(), abs=1e-12)
            assert up[node]
            assert up[nearest]
        if coarse and alpha == 2.0 and router == "nearest" and up.any():
            assert nearest == np.flatnonzero(np.isclose(distance, distance.min()))[0]


def test_large_fleets_use_the_grid_and_small_ones_do_not():
    assert Fleet(scenario(nodes={"count": 199})).state.cells[0].tolist() == [0, 0]
    large = Fleet(scenario(nodes={"count": 500}), seed=1)
    cells_x, cells_y = large.state.cells[0]
    assert cells_x * cells_y == pytest.approx(250, rel=0.1)
    assert large.state.cell_start[0, -1] == 500
    assert sorted(large.state.cell_nodes[0]) == list(range(500))
