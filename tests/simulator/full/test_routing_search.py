"""The exact search and the candidate sets against brute force and the fast loop's search."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.compiling import lend
from edgegym.simulator.full.candidates import gather
from edgegym.simulator.full.rings import rings_around, run_of, seen_squared_km2
from edgegym.simulator.full.routing_columns import NODE
from edgegym.simulator.search import choose_node
from tests.simulator.full.stations import CHAT, Stations

pytestmark = pytest.mark.twin


@kernel
def _gather(routing, ask, now, only_open):
    found = gather(lend(routing), ask, now, only_open)
    return found.candidates, found.nearest


@kernel
def _choose(area, x, y, request_type):
    return choose_node(lend(area), x, y, request_type)


@kernel
def _ring_of_places(area, x, y, rings_of_places, squared_km2):
    area = lend(area)
    rings = rings_around(area, x, y)
    for ring in range(rings.last + 1):
        squared_km2[ring] = seen_squared_km2(rings, ring)
        for offset in range(-ring, ring + 1):
            for part in range(2):
                begin, end = run_of(area, rings, ring, offset, part)
                for place in range(begin, end):
                    rings_of_places[place, 0] = ring
                    rings_of_places[place, 1] += 1
    return rings.last


class World:
    """A random fleet and what a plain calculation says of it."""

    def __init__(self, seed, periodic, cells, height_km=10.0, coarse=False, **settings):
        rng = self.rng = np.random.default_rng(seed)
        count = int(rng.integers(1, 41))
        self.size = np.array([10.0, height_km])
        self.places = rng.random((count, 2)) * self.size
        if coarse:  # many ties
            self.places = np.floor(self.places)
        self.profiles = rng.integers(0, 4, count)
        hits = np.array([[0.0, 0.0], [400.0, 0.0], [800.0, -1.0], [0.0, 500.0]])
        self.stations = Stations(
            self.places,
            self.profiles,
            cells=cells,
            hits=hits,
            region={"width_km": 10.0, "height_km": height_km, "periodic": periodic},
            admission={"ewma_s": 1.0, "node": {"close_above": 1.0, "reopen_below": 0.5}},
            **settings,
        )
        self.periodic, self.hits = periodic, hits
        self.waits = rng.choice([0.0, 0.1, 0.5], count)
        for node in range(count):
            self.stations.load(node, int(rng.integers(0, 5)), 2, 0.5)
            self.stations.wait(node, float(self.waits[node]))
        self.up = rng.random(count) < 0.9
        self.open = rng.random(count) < rng.choice([0.2, 0.8, 1.0])
        for node in range(count):
            if not self.up[node]:
                self.stations.fail(node)
            self.stations.occupy(node, 1 if self.open[node] else 9, 0, 0.0)
        self.user = tuple(rng.random(2) * self.size)
        if coarse:
            self.user = tuple(np.floor(self.user))

    def costs(self, request_type, length):
        """Return squared distance, radio, prefill and wait of each node; inf where it can't."""
        delta = np.abs(self.places - self.user)
        if self.periodic:
            delta = np.minimum(delta, self.size - delta)
        squared = np.where(self.up, (delta**2).sum(axis=1), np.inf)
        hit = self.hits[self.profiles, request_type]
        prefill = np.where(hit >= 0.0, 1e-3 * (length - np.minimum(hit, length - 1)), np.inf)
        return squared, 0.1 * squared, prefill, self.waits


CELLS = st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda c: c if c[0] else (0, 0))


@given(
    seed=st.integers(0, 2**32),
    periodic=st.booleans(),
    cells=CELLS,
    height_km=st.sampled_from([0.7, 10.0]),
    kind=st.sampled_from(["nearest", "prefix_aware", "load_aware"]),
    request_type=st.integers(0, 1),
    length=st.sampled_from([100.0, 700.0, 2000.0]),
    coarse=st.booleans(),
)
def test_exact_search_is_brute_force(
    seed, periodic, cells, height_km, kind, request_type, length, coarse
):
    world = World(seed, periodic, cells, height_km, coarse, routing={"kind": kind})
    decision = world.stations.route(
        request_type, now=100.0, place_km=world.user, input_tokens=length
    )
    squared, radio, prefill, wait = world.costs(request_type, length)
    expected = radio + prefill + wait
    score = {
        "nearest": np.where(np.isfinite(prefill), radio, np.inf),
        "prefix_aware": radio + prefill,
        "load_aware": expected,
    }[kind]
    takes = world.open & np.isfinite(expected)
    if not world.up.any():
        assert decision.nearest == -1
    else:
        assert squared[decision.nearest] == pytest.approx(squared.min(), abs=1e-12)
    if not takes.any():
        assert decision.node == -1
        return
    least = np.where(takes, score, np.inf).min()
    assert score[decision.node] == pytest.approx(least, abs=1e-12)
    assert takes[decision.node]
    assert decision.predicted_s == pytest.approx(expected[decision.node], abs=1e-12)
    assert decision.distance_squared_km2 == pytest.approx(squared[decision.node], abs=1e-12)
    others = np.where(takes, expected, np.inf)
    others[decision.node] = np.inf
    assert decision.runner_up_s == pytest.approx(others.min(), abs=1e-12)
    if coarse and kind == "nearest":  # exact arithmetic
        best = np.flatnonzero(takes & (squared == squared[takes].min()))[0]
        assert decision.node == best
        assert decision.nearest == np.flatnonzero(squared == squared.min())[0]
    closed_best = np.where(np.isfinite(expected), score, np.inf).min() < least - 1e-9
    if closed_best:
        assert decision.spilled == 1


@given(
    seed=st.integers(0, 2**32),
    periodic=st.booleans(),
    cells=CELLS,
    height_km=st.sampled_from([0.7, 10.0]),
    kind=st.sampled_from(["nearest", "prefix_aware", "load_aware"]),
    length=st.sampled_from([100.0, 700.0, 2000.0]),
    coarse=st.booleans(),
)
def test_search_without_admission_and_runner_up_finds_the_same(
    seed, periodic, cells, height_km, kind, length, coarse
):
    world = World(seed, periodic, cells, height_km, coarse, routing={"kind": kind})
    routing = world.stations.routing
    admission = routing.params.admission._replace(used=False)
    routing = routing._replace(params=routing.params._replace(admission=admission))
    found = []
    for plainly in (False, True):
        world.stations.routing = routing._replace(
            seeks_runner_up=not plainly, looks_plainly=plainly
        )
        decision = world.stations.route(place_km=world.user, input_tokens=length)
        found.append(decision._replace(runner_up=-1, runner_up_s=0.0))
    assert found[0] == found[1]


@given(
    seed=st.integers(0, 2**32),
    periodic=st.booleans(),
    cells=CELLS,
    k=st.integers(1, 3),
    by_profile=st.booleans(),
    only_open=st.booleans(),
    request_type=st.integers(0, 1),
    coarse=st.booleans(),
)
def test_candidates_are_brute_force(
    seed, periodic, cells, k, by_profile, only_open, request_type, coarse
):
    routing = {"kind": "lmetric", "candidates_per_profile": k}
    world = World(seed, periodic, cells, coarse=coarse, by_profile=by_profile, routing=routing)
    ask = world.stations.ask(request_type, world.user)
    count, nearest = _gather(world.stations.routing, ask, 100.0, only_open)
    squared, _, prefill, _ = world.costs(request_type, ask.input_tokens)
    fit = np.isfinite(squared) & np.isfinite(prefill) & (world.open | (not only_open))
    expected: list[int] = []
    for profile in range(4) if by_profile else [None]:
        group = [
            node
            for node in np.flatnonzero(fit)
            if profile is None or world.profiles[node] == profile
        ]
        group.sort(key=lambda node: (round(squared[node], 12), node))
        expected += group[: k if by_profile else 4 * k]
    found = world.stations.routing.state.candidates[:count, NODE]
    assert found.tolist() == sorted(expected)
    if world.up.any():
        assert squared[nearest] == pytest.approx(squared.min(), abs=1e-12)
    else:
        assert nearest == -1


@given(
    seed=st.integers(0, 2**32),
    periodic=st.booleans(),
    cells=CELLS,
    alpha=st.sampled_from([1.5, 2.0, 3.7]),
    kind=st.sampled_from(["nearest", "prefix_aware", "load_aware"]),
    coarse=st.booleans(),
)
def test_the_fast_loops_search_chooses_the_same(seed, periodic, cells, alpha, kind, coarse):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 61))
    places, users = rng.random((count, 2)) * 10.0, rng.random((10, 2)) * 10.0
    if coarse:
        places, users = np.floor(places), np.floor(users)
    profiles = rng.integers(0, 4, count)
    stations = Stations(
        places,
        profiles,
        cells=cells,
        routing={"kind": kind},
        radio={"xi": 0.1, "alpha": alpha},
        region={"width_km": 10.0, "height_km": 10.0, "periodic": periodic},
    )
    for node in range(count):
        stations.wait(node, float(rng.choice([0.0, 0.1, 0.5])))
        if rng.random() < 0.1:
            stations.fail(node)
    for x, y in users:
        kind = int(rng.integers(2))
        plain = _choose(stations.routing.area, x, y, kind)
        decision = stations.route(kind, place_km=(x, y))
        assert decision[:3] == tuple(plain)


@given(
    seed=st.integers(0, 2**32),
    periodic=st.booleans(),
    cells=st.tuples(st.integers(1, 9), st.integers(1, 9)),
)
def test_rings_see_every_node_once_and_not_too_late(seed, periodic, cells):
    world = World(seed, periodic, cells)
    area = world.stations.routing.area
    count = len(world.places)
    ring_of = np.zeros((count, 2), dtype=np.int64)
    seen = np.zeros(20)
    last = _ring_of_places(area, *world.user, ring_of, seen)
    assert (ring_of[:, 1] == 1).all()
    assert math.isinf(seen[last])
    assert (np.diff(seen[:last]) >= 0.0).all()
    delta = np.abs(world.places - world.user)
    if periodic:
        delta = np.minimum(delta, world.size - delta)
    squared = (delta**2).sum(axis=1)
    place = world.stations.routing.nodes.work[:count, 6]
    for ring in range(last):
        assert (squared[ring_of[place, 0] > ring] >= seen[ring]).all()


def test_whole_fleets_of_many_nodes():
    rng = np.random.default_rng(3)
    places = rng.random((3000, 2)) * 10.0
    profiles = rng.integers(0, 4, 3000)
    stations = Stations(places, profiles, cells=(40, 38), radio={"xi": 50.0, "alpha": 2.0})
    for x, y in rng.random((20, 2)) * 10.0:
        delta = ((places - (x, y)) ** 2).sum(axis=1)
        prefill = np.array([1.0, 0.6, 0.2, 1.0])[profiles]
        decision = stations.route(CHAT, place_km=(x, y))
        order = np.argsort(50.0 * delta + prefill)
        assert (decision.node, decision.runner_up) == tuple(order[:2])
