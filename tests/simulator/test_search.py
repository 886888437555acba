"""The exact search: grid and scan agree to the bit, and both with a plain calculation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator import Fleet
from edgegym.simulator.columns import HOLDS_SHIFT, PLACE, SITE_BITS, SITE_WAIT_S
from edgegym.simulator.lane import lane_of
from edgegym.simulator.search import build_grid, choose_node
from edgegym.simulator.state import allocate
from tests.simulator.fleets import scenario

pytestmark = pytest.mark.twin


@kernel
def _choose(lane, xs, ys, types, chosen, distances):
    for k in range(len(xs)):
        choice = choose_node(lane.area, xs[k], ys[k], types[k])
        chosen[k, 0], chosen[k, 1] = choice.node, choice.nearest
        distances[k] = choice.distance_squared_km2


def choices(world, places_km, held, wait_s, up, users_km, types, cells):
    """Return (node, nearest) of each user, and the squared distance to the first."""
    state = allocate(world, grid_cells=cells[0] * cells[1])
    count = len(places_km)
    state.node_count[0] = count
    state.node_x[0, :count], state.node_y[0, :count] = places_km.T
    state.up[0, :count] = up
    state.holding[0, :count] = held
    build_grid(world, state, 0, cells)
    order = np.argsort(state.node_work[0, :count, PLACE])
    bits = (held[order] << HOLDS_SHIFT) + order
    state.sites[0, :count, SITE_BITS] = bits.view(np.float64)
    state.sites[0, :count, SITE_WAIT_S] = wait_s[order]
    np.testing.assert_array_equal(state.advertised_wait_s[0, :count], wait_s)
    chosen, distances = np.empty((len(types), 2), dtype=np.int64), np.empty(len(types))
    x, y = np.ascontiguousarray(users_km.T)
    _choose(lane_of(world, state, 0), x, y, types, chosen, distances)
    return chosen, distances


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
    wait_s = rng.choice([0.0, 0.1, 0.5], count)
    types = rng.integers(0, 2, 40)
    cells = int(rng.integers(1, 9)), int(rng.integers(1, 9))
    fleet = world, places, held, wait_s, up, users, types
    scanned, scanned_km2 = choices(*fleet, (0, 0))
    searched, searched_km2 = choices(*fleet, cells)
    np.testing.assert_array_equal(scanned, searched)
    np.testing.assert_array_equal(scanned_km2, searched_km2)
    expected = expected_choices(world, places, world.prefill_s[held].T, wait_s, up, users, types)
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
    assert Fleet(scenario(nodes={"count": 79})).state.cells[0].tolist() == [0, 0]
    large = Fleet(scenario(nodes={"count": 500}), seed=1)
    cells_x, cells_y = large.state.cells[0]
    assert cells_x * cells_y == pytest.approx(250, rel=0.1)
    assert large.state.cell_start[0, -1] == 500
    assert sorted(large.state.node_work[0, :, PLACE]) == list(range(500))


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"region": {"width_km": 40.0, "height_km": 2.5, "periodic": True}},
        {"routing": {"kind": "load_aware", "advertised_wait": "measured"}},
        {"routing": {"kind": "prefix_aware"}, "radio": {"xi": 3.0, "alpha": 0.7, "base_s": 0.01}},
        {"routing": {"kind": "nearest"}, "radio": {"xi": 1e-9, "alpha": 4.0}},
        {"telemetry": {"period_s": 0.3, "predict_on_route": True}},
        {"demand": {"rate_per_node": 5.0}},
    ],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_whole_runs_are_the_same_by_grid_and_by_scan(overrides, seed, monkeypatch):
    world = scenario(
        **{
            "nodes": {"count": 70},
            "region": {"width_km": 10.0, "height_km": 10.0, "periodic": seed == 1},
            "initial": {"mix": {"none": 0.4, "small": 0.2, "big": 0.2, "other": 0.2}},
            "demand": {"rate_per_node": 1.5},
            "migration": {"budget_bytes_per_s": 4e9, "burst_bytes": 10**11},
        }
        | overrides
    )
    scanned = Fleet(world, seed)
    monkeypatch.setattr("edgegym.simulator.search.GRID_MIN_NODES", 1)
    searched = Fleet(world, seed)
    assert scanned.state.cells.tolist() == [[0, 0]] != searched.state.cells.tolist()
    rng = np.random.default_rng(seed)
    for _ in range(4):
        assert scanned.advance(1.0) == searched.advance(1.0)
        move = rng.choice(np.argwhere(scanned.legal_moves()))
        scanned.start_move(*move)
        searched.start_move(*move)
    for name in ("holding", "active", "queued", "in_flight", "advertised_wait_s"):
        np.testing.assert_array_equal(getattr(scanned.state, name), getattr(searched.state, name))
