"""Places of nodes against closed forms of point processes, and against brute force."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from edgegym.simulator.generators import stream_generator
from edgegym.simulator.layouts import _kept, draw_places, near_pairs, nearest_others
from edgegym.world import Scenario
from tests.world.documents import minimal


def world_of(nodes, *, side_km=(10.0, 8.0), periodic=True):
    document = minimal()
    width, height = side_km
    document["region"] = {"width_km": width, "height_km": height, "periodic": periodic}
    document["nodes"] = nodes
    return Scenario(**document).compile()


def places(world, seed):
    return draw_places(world, stream_generator(seed, "topology"))


def gaps(world, x, y):
    """Return all distances, ``[N, N]``, infinite from a point to itself."""
    dx, dy = np.abs(x[:, None] - x), np.abs(y[:, None] - y)
    if world.periodic:
        dx = np.minimum(dx, world.width_km - dx)
        dy = np.minimum(dy, world.height_km - dy)
    distance = np.hypot(dx, dy)
    np.fill_diagonal(distance, np.inf)
    return distance


@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("nodes", [{"count": 60}, {"density_per_km2": 0.75}])
def test_hard_core_nodes_keep_their_distance_and_stay_inside(periodic, nodes):
    layout = {"kind": "matern", "min_distance_km": 0.6}
    world = world_of(nodes | {"layout": layout}, periodic=periodic)
    for seed in range(20):
        x, y = places(world, seed)
        assert gaps(world, x, y).min() > 0.6
        assert ((x >= 0) & (x < 10) & (y >= 0) & (y < 8)).all()
        assert len(x) == 60 if "count" in nodes else 1 <= len(x) <= world.max_nodes


@pytest.mark.parametrize("periodic", [True, False])
def test_candidates_are_kept_unless_an_earlier_one_is_near(periodic):
    world = world_of({"count": 1}, periodic=periodic)
    rng = np.random.default_rng(0)
    x, y = rng.random(200) * 10, rng.random(200) * 8
    distance = gaps(world, x, y)
    brute = [all(distance[i, j] > 0.7 for j in range(i)) for i in range(200)]
    np.testing.assert_array_equal(_kept(world, x, y, 0.7), brute)


def _union_of_discs(distance: float, radius: float) -> float:
    """Area of two discs whose centres are this far apart, less than two radii."""
    lens = 2 * radius**2 * math.acos(distance / (2 * radius))
    lens -= distance / 2 * math.sqrt(4 * radius**2 - distance**2)
    return 2 * math.pi * radius**2 - lens


def _pair_density(distance: float, radius: float, candidates: float) -> float:
    """Second-order product density of a Matérn II process (Stoyan and Stoyan)."""
    disc = math.pi * radius**2
    if distance >= 2 * radius:
        return ((1 - math.exp(-candidates * disc)) / disc) ** 2
    both = _union_of_discs(distance, radius)
    single = -math.expm1(-candidates * disc)
    return (
        2 * (both * single + disc * math.expm1(-candidates * both)) / (disc * both * (both - disc))
    )


@pytest.mark.parametrize("periodic", [True, False])
def test_hard_core_density_and_pairs_are_those_of_the_closed_forms(periodic):
    density, radius, draws = 1.2, 0.45, 600
    layout = {"kind": "matern", "min_distance_km": radius}
    world = world_of({"density_per_km2": density, "layout": layout}, periodic=periodic)
    counts, close = [], []
    for seed in range(draws):
        x, y = places(world, seed)
        inner = (x > 1) & (x < 9) & (y > 1) & (y < 7)
        counts.append((len(x), inner.sum()))
        distance = gaps(world, x, y)[inner]
        close.append((distance <= 1.25 * radius).sum())
    errors = np.std(counts, axis=0) / math.sqrt(draws)
    assert errors[0] < 0.75 * math.sqrt(density * 80 / draws)  # less random than a Poisson number
    np.testing.assert_array_less(np.abs(np.mean(counts, axis=0) - [96, 57.6]), 4 * errors)
    disc = math.pi * radius**2
    candidates = -math.log1p(-density * disc) / disc
    expected, _ = quad(
        lambda d: 2 * math.pi * d * _pair_density(d, radius, candidates), radius, 1.25 * radius
    )
    error = np.std(close) / math.sqrt(draws)
    assert np.mean(close) == pytest.approx(48 * expected, abs=3 * error)
    # Nodes that only keep their distance, without the clustering that it brings, are told apart.
    unclustered = density**2 * disc * (1.25**2 - 1)
    assert 48 * (expected - unclustered) > 4 * error


def test_the_densest_hard_core_layouts_are_found():
    radius = 0.3
    densest = int(0.95 * 80 / (math.pi * radius**2))
    layout = {"kind": "matern", "min_distance_km": radius}
    assert len(places(world_of({"count": densest, "layout": layout}), 0)[0]) == densest
    small = {"kind": "matern", "min_distance_km": 1.6}
    for seed in range(20):
        assert len(places(world_of({"count": 9, "layout": small}), seed)[0]) == 9


@pytest.mark.parametrize("periodic", [True, False])
def test_a_strict_lattice_has_equal_distances(periodic):
    world = world_of({"count": 80, "layout": {"kind": "lattice", "jitter": 0}}, periodic=periodic)
    x, y = places(world, 3)
    np.testing.assert_allclose(np.sort(gaps(world, x, y), axis=1)[:, :2], 1.0, rtol=1e-12)
    if not periodic:
        np.testing.assert_allclose(np.sort(x)[::8], np.arange(10) + 0.5)


def test_jitter_is_uniform_in_its_share_of_the_cell():
    jitter = 0.6
    layout = {"kind": "lattice", "jitter": jitter}
    world = world_of({"count": 8000, "layout": layout}, periodic=False)
    x, y = places(world, 0)
    for place in (x, y):
        off = (place * 10) % 1.0 - 0.5  # cells of 0.1 km
        assert np.abs(off).max() <= jitter / 2
        # Variance of a uniform law of this width; its relative error is sqrt(0.8 / n).
        assert off.var() == pytest.approx(jitter**2 / 12, rel=4 * math.sqrt(0.8 / 8000))
    assert len(set(zip((x * 10).astype(int), (y * 10).astype(int), strict=True))) == 8000


def test_a_lattice_has_the_number_of_nodes_even_where_cells_stay_empty():
    for count in (1, 2, 7, 23, 59):
        world = world_of({"count": count, "layout": {"kind": "lattice", "jitter": 0.2}})
        x, y = places(world, 1)
        assert len(x) == count
        assert ((x >= 0) & (x < 10) & (y >= 0) & (y < 8)).all()
    thinned = world_of({"density_per_km2": 0.4, "layout": {"kind": "lattice"}})
    assert len(places(thinned, 1)[0]) == 32


def test_lattices_on_a_torus_are_anywhere():
    world = world_of({"count": 4, "layout": {"kind": "lattice", "jitter": 0}}, side_km=(2.0, 2.0))
    first = np.array([places(world, seed)[0].min() for seed in range(400)])
    assert np.histogram(first, bins=4, range=(0, 1))[0].min() > 60


def test_given_places_are_taken_as_they_are():
    given = {"coordinates_km": [[1.0, 2.0], [11.0, 10.0], [3.0, 2.5]], "origin_km": [1.0, 2.0]}
    for seed in (0, 1):
        x, y = places(world_of(given, periodic=False), seed)
        np.testing.assert_array_equal(x, [0, 10, 2])
        np.testing.assert_array_equal(y, [0, 8, 0.5])
    # On a torus the upper edge is the lower one.
    x, y = places(world_of(given), 0)
    np.testing.assert_array_equal(x, [0, 0, 2])
    np.testing.assert_array_equal(y, [0, 0, 0.5])


@pytest.mark.parametrize("periodic", [True, False])
def test_neighbours_and_pairs_are_those_of_brute_force(periodic):
    world = world_of({"count": 1}, periodic=periodic)
    rng = np.random.default_rng(1)
    x, y = rng.random(40) * 10, rng.random(40) * 8
    distance = gaps(world, x, y)
    np.testing.assert_array_equal(
        nearest_others(world, x, y, 4), np.argsort(distance, axis=1)[:, :4]
    )
    found = {tuple(sorted(pair)) for pair in near_pairs(world, x, y, 1.5).tolist()}
    assert found == {(i, j) for j in range(40) for i in range(j) if distance[i, j] <= 1.5}


def test_places_repeat_with_their_seed():
    for nodes in (
        {"count": 9, "layout": {"kind": "matern", "min_distance_km": 1.0}},
        {"density_per_km2": 0.3, "layout": {"kind": "matern", "min_distance_km": 0.5}},
        {"count": 9, "layout": {"kind": "lattice"}},
    ):
        world = world_of(nodes)
        for first, second in zip(places(world, 5), places(world, 5), strict=True):
            np.testing.assert_array_equal(first, second)
        assert (
            len(places(world, 5)[0]) != len(places(world, 6)[0])
            or (places(world, 5)[0] != places(world, 6)[0]).any()
        )
