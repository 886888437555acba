"""Radix caches against a tree of dictionaries, and by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.compiling import borrow
from edgegym.simulator.full.lru import (
    lru_clear,
    lru_expire,
    lru_has_room,
    lru_hit_tokens,
    lru_insert,
    lru_leave,
    lru_pin,
)
from edgegym.simulator.full.lru_data import (
    PINNED_BYTES,
    USED_BYTES,
    LruState,
    allocate_lru,
    lru_params,
    vertex_order,
    with_more_leaves,
)
from edgegym.world import preset

START, FIRST, LEAVE, EXPIRE, CLEAR, ROOM = range(6)
NUM_STATIONS = 2


@kernel
def _act(params, lru, act, station, which, number, now):
    """Do one thing and return what it says."""
    params, lru = borrow(params), borrow(lru)
    if act == START:
        tokens, depth = lru_hit_tokens(params, lru, station, which)
        lru_pin(params, lru, station, which, depth)
        return tokens, depth
    if act == FIRST:
        return 0.0, lru_insert(params, lru, station, which, number, now)
    if act == LEAVE:
        lru_leave(params, lru, station, which, number >> 32, number & 0xFFFFFFFF)
    elif act == EXPIRE:
        lru_expire(params, lru, which, now)
    elif act == CLEAR:
        lru_clear(lru, station)
    return 0.0, int(lru_has_room(lru, 1))


def world(parents, sizes, paths, budget_bytes):
    """Return a world with a forest by parents' indices; vertex i ends 10 (1 + depth) deep."""
    depth = []
    for parent in parents:
        depth.append(10 if parent is None else depth[parent] + 10)
    share = 1.0 / len(paths)
    return preset("paper").with_overrides(
        {
            "forest": [
                {
                    "name": f"v{i}",
                    "parent": None if parent is None else f"v{parent}",
                    "depth_tokens": depth[i],
                    "bytes": size,
                }
                for i, (parent, size) in enumerate(zip(parents, sizes, strict=True))
            ],
            "request_types": [
                {
                    "name": f"t{k}",
                    "path": None if end is None else f"v{end}",
                    "input_tokens": 1 if end is None else depth[end],
                    "family": "all",
                    "share": share,
                }
                for k, end in enumerate(paths)
            ],
            "profiles": [{"name": "none"}],
            "initial.mix": {"none": 1.0},
            "cache": {"kind": "lru", "budget_bytes": budget_bytes},
        }
    )


class Tree:
    """The cache of a station: a piece is the tuple of names from its root."""

    def __init__(self, budget_bytes):
        self.budget_bytes, self.pieces, self.users = budget_bytes, {}, {}

    @property
    def used_bytes(self):
        return sum(size for size, _ in self.pieces.values())

    def room_for(self, size, evicted):
        def idle(key):
            return not self.users.get(key)

        if size + sum(self.pieces[k][0] for k in self.pieces if not idle(k)) > self.budget_bytes:
            return False
        while self.used_bytes + size > self.budget_bytes:
            leaves = [
                key
                for key in self.pieces
                if idle(key) and not any(k[:-1] == key for k in self.pieces)
            ]
            # Pieces of one request are left at once; the deeper is then the older.
            oldest = min(leaves, key=lambda key: (self.pieces[key][1], -len(key)))
            del self.pieces[oldest]
            evicted.append(oldest)
        return True


class Twin:
    """What the kernels should do, with requests by number."""

    def __init__(self, scenario):
        forest = scenario.catalogue.forest
        self.size = {vertex.name: forest.vertex_bytes(vertex.name) for vertex in scenario.forest}
        self.tokens = {vertex.name: vertex.depth_tokens for vertex in scenario.forest}
        self.paths = [
            tuple(sorted(forest.path(item.path), key=lambda name: len(forest.path(name))))
            for item in scenario.request_types
        ]
        self.limits = [item.input_tokens - 1 for item in scenario.request_types]
        self.trees = [Tree(scenario.cache.budget_bytes) for _ in range(NUM_STATIONS)]
        self.changed, self.evicted, self.now = {}, [], 0

    def hit(self, station, kind):
        path, depth = self.paths[kind], 0
        while depth < len(path) and path[: depth + 1] in self.trees[station].pieces:
            depth += 1
        tokens = self.tokens[path[depth - 1]] if depth else 0
        return min(tokens, self.limits[kind]), depth

    def keep(self, number, station, kind, begin, end):
        for step in range(begin, end):
            self.trees[station].users.setdefault(self.paths[kind][: step + 1], set()).add(number)

    def insert(self, number, station, kind, depth, started):
        tree, path = self.trees[station], self.paths[kind]
        while depth < len(path):
            key = path[: depth + 1]
            if any(self.changed.get(name, -1) > started for name in key):
                break
            if key not in tree.pieces:
                if not tree.room_for(self.size[key[-1]], self.evicted):
                    break
                tree.pieces[key] = (self.size[key[-1]], None)
            self.keep(number, station, kind, depth, depth + 1)
            depth += 1
        return depth

    def leave(self, number, station, kind, depth, rest):
        tree, path = self.trees[station], self.paths[kind]
        reachable = depth == len(path) and (not path or path in tree.pieces)
        if reachable and rest > 0 and tree.room_for(rest, self.evicted):
            tree.pieces[(*path, f"#{number}")] = (rest, self.now)
        for step in range(depth):
            key = path[: step + 1]
            tree.users[key].discard(number)
            if not tree.users[key] and key in tree.pieces:
                tree.pieces[key] = (tree.pieces[key][0], self.now)

    def expire(self, name):
        for tree in self.trees:
            for key in [k for k in tree.pieces if name in k and not k[-1].startswith("#")]:
                del tree.pieces[key]
        self.changed[name] = self.now


def story(seed, count, length):
    """Return a random world with so many vertices, and what happens in it.

    Hypothesis's own lists are too tame: little of interest happens before a cache is full.
    """
    draw = np.random.default_rng(seed)
    parents = [None] + [
        None if draw.random() < 0.2 else int(draw.integers(max(0, i - 3), i))
        for i in range(1, count)
    ]
    sizes = draw.integers(0, 10, count).tolist()
    ends = draw.integers(-1, count, draw.integers(1, 7)).tolist()
    scenario = world(
        parents,
        sizes,
        [None if end < 0 else end for end in ends],
        int(draw.integers(1, 2 + sum(sizes))),
    )
    acts = draw.choice(
        [START, FIRST, LEAVE, EXPIRE, CLEAR], p=[0.33, 0.3, 0.3, 0.05, 0.02], size=length
    )
    return scenario, [(int(act), *draw.integers(0, 60, 3).tolist()) for act in acts]


def check(scenario, params, lru, twin):
    """Compare the caches with the twin's, and look at what must always hold."""
    names = vertex_order(scenario)
    for station, tree in enumerate(twin.trees):
        held = {k[-1] for k in tree.pieces if not k[-1].startswith("#")}
        assert {names[v] for v in np.flatnonzero(lru.present[0, station])} == held
        assert lru.stations[0, station, USED_BYTES] == tree.used_bytes
        assert 0 <= lru.stations[0, station, PINNED_BYTES] <= tree.used_bytes
        assert tree.used_bytes <= params.budget_bytes
        for vertex in np.flatnonzero(lru.present[0, station]):
            assert params.parent[vertex] < 0 or lru.present[0, station, params.parent[vertex]]
        expected = [twin.hit(station, kind)[0] for kind in range(len(twin.paths))]
        assert lru.held_tokens[0, station].tolist() == expected


@pytest.mark.twin
@given(seed=st.integers(0, 2**32), count=st.integers(1, 8), length=st.integers(1, 250))
def test_any_story_is_told_alike_by_a_tree_of_dictionaries(seed, count, length):
    scenario, deeds = story(seed, count, length)
    params, twin = lru_params(scenario), Twin(scenario)
    state = allocate_lru(params, NUM_STATIONS)._replace(leaf_bytes=np.zeros((1, 0), dtype=np.int64))
    names = vertex_order(scenario)
    started, running = [], []
    for now, (act, station, which, extra) in enumerate(deeds):
        twin.now, station = now, station % NUM_STATIONS
        lru = LruState._make(array[0] for array in state)
        if not _act(params, lru, ROOM, 0, 0, 0, 0.0)[1]:
            state = with_more_leaves(state)
            lru = LruState._make(array[0] for array in state)
        if act == START:
            kind = which % len(twin.paths)
            tokens, depth = twin.hit(station, kind)
            twin.keep(now, station, kind, 0, depth)
            assert _act(params, lru, START, station, kind, 0, 0.0) == (tokens, depth)
            started.append((now, station, kind, depth, now))
        elif act == FIRST and started:
            number, station, kind, depth, begun = started.pop(which % len(started))
            kept = twin.insert(number, station, kind, depth, begun)
            assert _act(params, lru, FIRST, station, kind, depth, float(begun))[1] == kept
            running.append((number, station, kind, kept))
        elif act == LEAVE and running:
            number, station, kind, depth = running.pop(which % len(running))
            twin.leave(number, station, kind, depth, extra % 12)
            _act(params, lru, LEAVE, station, kind, (depth << 32) + extra % 12, 0.0)
        elif act == EXPIRE:
            vertex = which % len(names)
            twin.expire(names[vertex])
            _act(params, lru, EXPIRE, 0, vertex, 0, float(now))
        elif act == CLEAR:
            twin.trees[station] = Tree(scenario.cache.budget_bytes)
            started = [item for item in started if item[1] != station]
            running = [item for item in running if item[1] != station]
            _act(params, lru, CLEAR, station, 0, 0, 0.0)
        check(scenario, params, state, twin)


def serve(params, lru, kind, rest=0):
    """Let a request come and go alone; return its hit."""
    tokens, depth = _act(params, lru, START, 0, kind, 0, 0.0)
    depth = _act(params, lru, FIRST, 0, kind, depth, 0.0)[1]
    _act(params, lru, LEAVE, 0, kind, (depth << 32) + rest, 0.0)
    return tokens


def test_a_private_rest_pushes_out_the_oldest_leaf_by_hand():
    # v0 (4 bytes) with children v1 and v2 (3 each); types end at v1 and v2; budget 12.
    scenario = world([None, 0, 0], [4, 3, 3], [1, 2], 12)
    params = lru_params(scenario)
    lru = LruState._make(array[0] for array in allocate_lru(params, 1))
    assert serve(params, lru, 0) == 0.0  # v0, v1: 7 bytes
    assert serve(params, lru, 1) == 10.0  # hits v0; v2 as well: 10 bytes
    assert serve(params, lru, 0) == 19.0  # all but the last token of 20; v1 is newer than v2
    assert lru.stations[0, USED_BYTES] == 10
    assert serve(params, lru, 0, rest=4) == 19.0  # evicts v2, the oldest leaf: 11 bytes
    assert lru.held_tokens[0].tolist() == [19.0, 10.0]
    assert serve(params, lru, 1) == 10.0  # v2 again, in place of the private rest
    assert lru.stations[0, USED_BYTES] == 10
    assert serve(params, lru, 1, rest=6) == 19.0  # beside the 7 bytes in use it can't fit
    assert lru.held_tokens[0].tolist() == [19.0, 19.0]
    assert serve(params, lru, 1, rest=5) == 19.0  # it fits without v1
    assert lru.held_tokens[0].tolist() == [10.0, 19.0]
    assert lru.stations[0, USED_BYTES] == 12


def test_what_is_in_use_stays_however_old_it_is():
    scenario = world([None, None, None], [5, 5, 5], [0, 1, 2], 12)
    params = lru_params(scenario)
    lru = LruState._make(array[0] for array in allocate_lru(params, 1))
    serve(params, lru, 0)
    _act(params, lru, START, 0, 0, 0, 0.0)  # a long request on v0
    for kind in (1, 2, 1, 2):
        assert serve(params, lru, kind) == 0.0  # they push each other out, not v0
    assert lru.held_tokens[0, 0] == 9.0


def test_a_vertex_larger_than_the_budget_evicts_nothing():
    scenario = world([None, None], [5, 13], [0, 1], 12)
    params = lru_params(scenario)
    lru = LruState._make(array[0] for array in allocate_lru(params, 1))
    serve(params, lru, 0)
    assert serve(params, lru, 1, rest=1) == 0.0
    assert lru.held_tokens[0].tolist() == [9.0, 0.0]
    assert lru.stations[0, USED_BYTES] == 5  # nor is its rest kept, which nothing leads to


def test_caches_too_large_for_any_machine_are_refused():
    params = lru_params(world([None] * 11, [1] * 11, [0], 10))
    with pytest.raises(ValueError, match="10000000 stations times 11 vertices"):
        allocate_lru(params, 10_000_000)
    with pytest.raises(ValueError, match=r"cache\.kind = 'profiles'"):
        lru_params(preset("paper"))
