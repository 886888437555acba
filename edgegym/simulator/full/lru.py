"""Radix caches: stations keep what they computed last, within a byte budget.

As vLLM and SGLang do: a request's prefix can be reused from its first token on (its blocks are
computed then), nothing in use is evicted, and what no longer fits goes leaf by leaf, least recently
used first. Last use is when the last request that used a piece left its slot.

A station's tree consists of vertices of the forest and of *private leaves*: what a request has
beyond its path, prompt and output. No other request can hit a private leaf, but it takes room until
it is evicted: that is what real prefix caches suffer from.

Pieces that no running request uses lie in one list per station, the oldest first. A request leaves
its pieces there deepest first, so a piece is always older than what it continues: the oldest piece
of the list is a leaf, and no counts of children are needed. Every operation on a piece takes
constant time, and updating what routers see takes as long as there are request types below it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache

# Columns of `stations`.
OLDEST = 0  # first piece of the list, -1 when empty
NEWEST = 1  # last piece of the list, -1 when empty
USED_BYTES = 2  # of all pieces
PINNED_BYTES = 3  # of vertices in use by running requests
CHANGES = 4  # how often a vertex came or went
NUM_LRU_STATION = 5

# Columns of `num`.
FREE_LEAF = 0  # head of the list of free private leaves, -1 when empty
USED_LEAVES = 1  # private leaves from here on have never been used
KEPT_LEAVES = 2  # private leaves of all stations
NUM_LRU = 3

_MOST_PIECES = 100_000_000
_LEAVES_PER_STATION = 8


class LruParams(NamedTuple):
    """What never changes: V vertices, each before its descendants; D is the longest path."""

    path: Ints  # [Q, D] vertices of each type's prefix, root first
    path_length: Ints  # [Q]
    depth_tokens: Floats  # [V]
    vertex_bytes: Ints  # [V]
    parent: Ints  # [V] -1 for roots
    subtree_end: Ints  # [V] descendants of v are v + 1 ... subtree_end[v] - 1
    types: Ints  # [Q] types by the last vertex of their path
    types_begin: Ints  # [V] the types below v are types[types_begin[v] : types_end[v]]
    types_end: Ints  # [V]
    most_hit_tokens: Floats  # [Q] the last token of a prompt is always computed
    budget_bytes: int


class LruState(NamedTuple):
    """The caches of M stations, with a leading axis of fleets; L private leaves in all.

    Pieces are numbered: vertex v of station m is m V + v, private leaf k is M V + k.
    """

    present: Bools  # [M, V]
    pins: NDArray[np.int32]  # [M, V] running requests that use the vertex
    older: NDArray[np.int32]  # [M V + L] neighbour in the station's list, -1 at its end
    newer: NDArray[np.int32]  # [M V + L]
    leaf_bytes: Ints  # [L]
    stations: Ints  # [M, NUM_LRU_STATION]
    held_tokens: Floats  # [M, Q] what a request of each type would hit
    changed_s: Floats  # [V] when the content of the vertex last changed
    num: Ints  # [NUM_LRU]


def vertex_order(scenario: Scenario) -> tuple[str, ...]:
    """Return the names of the vertices, each before its descendants, these without gaps.

    Parameters
    ----------
    scenario : Scenario
        The world.

    Returns
    -------
    tuple of str
        The V names in the order of :class:`LruParams`.
    """
    children: dict[str | None, list[str]] = {}
    for vertex in scenario.forest:
        children.setdefault(vertex.parent, []).append(vertex.name)
    order: list[str] = []
    stack = list(reversed(children.get(None, [])))
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(reversed(children.get(name, [])))
    return tuple(order)


def lru_params(scenario: Scenario) -> LruParams:
    """Return the radix caches' constants.

    Parameters
    ----------
    scenario : Scenario
        A world with ``cache.kind = lru``.

    Returns
    -------
    LruParams
        Plain arrays for kernels.

    Raises
    ------
    ValueError
        If the scenario has another cache.
    """
    cache = scenario.cache
    if not isinstance(cache, LruCache):
        raise ValueError(f"cache.kind = '{cache.kind}': radix caches need 'lru'")
    forest, names = scenario.catalogue.forest, vertex_order(scenario)
    index = {name: number for number, name in enumerate(names)}
    by_name = {vertex.name: vertex for vertex in forest.vertices}
    parent = np.array([index.get(by_name[name].parent or "", -1) for name in names], dtype=np.int64)
    subtree_end = np.arange(1, len(names) + 1, dtype=np.int64)
    for vertex in range(len(names) - 1, -1, -1):
        if parent[vertex] >= 0:
            subtree_end[parent[vertex]] = max(subtree_end[parent[vertex]], subtree_end[vertex])
    types = scenario.request_types
    paths = [sorted(index[name] for name in forest.path(item.path)) for item in types]
    last = np.array([path[-1] if path else -1 for path in paths], dtype=np.int64)
    order = np.argsort(last, kind="stable")
    path = np.full((len(types), max(1, *map(len, paths))), -1, dtype=np.int64)
    for row, vertices in enumerate(paths):
        path[row, : len(vertices)] = vertices
    return LruParams(
        path=path,
        path_length=np.array([len(vertices) for vertices in paths], dtype=np.int64),
        depth_tokens=np.array([by_name[name].depth_tokens for name in names], dtype=np.float64),
        vertex_bytes=np.array([forest.vertex_bytes(name) for name in names], dtype=np.int64),
        parent=parent,
        subtree_end=subtree_end,
        types=order.astype(np.int64),
        types_begin=np.searchsorted(last[order], np.arange(len(names))).astype(np.int64),
        types_end=np.searchsorted(last[order], subtree_end).astype(np.int64),
        most_hit_tokens=np.array([item.input_tokens - 1 for item in types], dtype=np.float64),
        budget_bytes=cache.budget_bytes,
    )


def no_lru_params() -> LruParams:
    """Return constants without vertices and types, where nodes hold profiles."""
    none = np.zeros(0, dtype=np.int64)
    return LruParams(
        path=np.zeros((0, 1), dtype=np.int64),
        path_length=none,
        depth_tokens=np.zeros(0),
        vertex_bytes=none,
        parent=none,
        subtree_end=none,
        types=none,
        types_begin=none,
        types_end=none,
        most_hit_tokens=np.zeros(0),
        budget_bytes=0,
    )


def allocate_lru(params: LruParams, stations: int, batch: int = 1) -> LruState:
    """Return empty caches.

    Parameters
    ----------
    params : LruParams
        V vertices and Q request types.
    stations : int
        Stations of a fleet, M.
    batch : int
        Number of fleets.

    Returns
    -------
    LruState
        With a leading axis of fleets.

    Raises
    ------
    ValueError
        If stations times vertices or types are more than a hundred million.
    """
    vertices, types = len(params.parent), len(params.path_length)
    for what, many in (("vertices", vertices), ("request types", types)):
        if stations * many > _MOST_PIECES:
            raise ValueError(
                f"cache.kind = 'lru': {stations} stations times {many} {what} are "
                f"{stations * many:.3g} entries; at most {_MOST_PIECES:.0e} can be simulated"
            )
    leaves = _LEAVES_PER_STATION * stations
    state = LruState(
        present=np.zeros((batch, stations, vertices), dtype=np.bool_),
        pins=np.zeros((batch, stations, vertices), dtype=np.int32),
        older=np.full((batch, stations * vertices + leaves), -1, dtype=np.int32),
        newer=np.full((batch, stations * vertices + leaves), -1, dtype=np.int32),
        leaf_bytes=np.zeros((batch, leaves), dtype=np.int64),
        stations=np.zeros((batch, stations, NUM_LRU_STATION), dtype=np.int64),
        held_tokens=np.zeros((batch, stations, types)),
        changed_s=np.full((batch, vertices), -np.inf),
        num=np.zeros((batch, NUM_LRU), dtype=np.int64),
    )
    state.stations[..., (OLDEST, NEWEST)] = -1
    state.num[:, FREE_LEAF] = -1
    return state


def with_more_leaves(state: LruState) -> LruState:
    """Return the caches with room for twice as many private leaves.

    Parameters
    ----------
    state : LruState
        Any caches; the arrays that don't grow are shared with the result.

    Returns
    -------
    LruState
        The same content.
    """
    more = max(1, state.leaf_bytes.shape[1])
    return state._replace(
        older=_longer(state.older, more),
        newer=_longer(state.newer, more),
        leaf_bytes=_longer(state.leaf_bytes, more),
    )


def _longer(array: NDArray[np.generic], more: int) -> NDArray[np.generic]:
    room = np.zeros((array.shape[0], more), dtype=array.dtype)
    return np.concatenate([array, room], axis=1)


@inlined
def lru_has_room(lru: LruState, leaves: int) -> bool:
    """Return whether so many more private leaves can be kept."""
    return lru.num[KEPT_LEAVES] + leaves <= lru.leaf_bytes.size


@inlined
def _append(lru: LruState, station: int, piece: int) -> None:
    """Put a piece at the new end of a station's list."""
    newest = lru.stations[station, NEWEST]
    lru.older[piece] = newest
    lru.newer[piece] = -1
    if newest >= 0:
        lru.newer[newest] = piece
    else:
        lru.stations[station, OLDEST] = piece
    lru.stations[station, NEWEST] = piece


@inlined
def _unlink(lru: LruState, station: int, piece: int) -> None:
    """Take a piece out of its station's list."""
    older, newer = lru.older[piece], lru.newer[piece]
    if older >= 0:
        lru.newer[older] = newer
    else:
        lru.stations[station, OLDEST] = newer
    if newer >= 0:
        lru.older[newer] = older
    else:
        lru.stations[station, NEWEST] = older


@inlined
def _show(params: LruParams, lru: LruState, station: int, vertex: int, deepest: int) -> None:
    """Let the types below a vertex hit down to another one, -1 for none."""
    depth = params.depth_tokens[deepest] if deepest >= 0 else 0.0
    for place in range(params.types_begin[vertex], params.types_end[vertex]):
        request_type = params.types[place]
        most = params.most_hit_tokens[request_type]
        lru.held_tokens[station, request_type] = min(depth, most)
    lru.stations[station, CHANGES] += 1


@inlined
def _drop_vertex(params: LruParams, lru: LruState, station: int, vertex: int) -> None:
    """Forget a vertex whose children are gone."""
    size = params.vertex_bytes[vertex]
    lru.present[station, vertex] = False
    lru.stations[station, USED_BYTES] -= size
    if lru.pins[station, vertex] > 0:
        # Running requests own their context: from now on it is theirs alone.
        lru.stations[station, PINNED_BYTES] -= size
    else:
        _unlink(lru, station, station * params.parent.size + vertex)
    _show(params, lru, station, vertex, params.parent[vertex])


@inlined
def _free_leaf(lru: LruState, leaf: int) -> None:
    lru.newer[lru.present.size + leaf] = lru.num[FREE_LEAF]
    lru.num[FREE_LEAF] = leaf
    lru.num[KEPT_LEAVES] -= 1


@inlined
def _new_leaf(lru: LruState) -> int:
    lru.num[KEPT_LEAVES] += 1
    leaf = lru.num[FREE_LEAF]
    if leaf >= 0:
        lru.num[FREE_LEAF] = lru.newer[lru.present.size + leaf]
        return leaf
    leaf = lru.num[USED_LEAVES]
    lru.num[USED_LEAVES] = leaf + 1
    return leaf


@inlined
def _drop_leaf(params: LruParams, lru: LruState, station: int, leaf: int) -> None:
    """Forget a private leaf."""
    piece = lru.present.size + leaf
    _unlink(lru, station, piece)
    lru.stations[station, USED_BYTES] -= lru.leaf_bytes[leaf]
    _free_leaf(lru, leaf)


@helper
def _make_room(params: LruParams, lru: LruState, station: int, size: int) -> bool:
    """Evict until a new piece fits; evict nothing if it can't."""
    row = lru.stations[station]
    if row[PINNED_BYTES] + size > params.budget_bytes:
        return False
    while row[USED_BYTES] + size > params.budget_bytes:
        piece = row[OLDEST]
        if piece >= lru.present.size:
            _drop_leaf(params, lru, station, piece - lru.present.size)
        else:
            _drop_vertex(params, lru, station, piece - station * params.parent.size)
    return True


@inlined
def lru_depth(params: LruParams, lru: LruState, station: int, request_type: int) -> int:
    """Return how many vertices of a type's path a station has."""
    depth = 0
    while (
        depth < params.path_length[request_type]
        and lru.present[station, params.path[request_type, depth]]
    ):
        depth += 1
    return depth


@inlined
def lru_hit_tokens(
    params: LruParams, lru: LruState, station: int, request_type: int
) -> tuple[float, int]:
    """Return how much of a type's prefix a station has, in tokens and in vertices."""
    depth = lru_depth(params, lru, station, request_type)
    return lru.held_tokens[station, request_type], depth


@inlined
def _pin(params: LruParams, lru: LruState, station: int, vertex: int) -> None:
    if lru.pins[station, vertex] == 0:
        _unlink(lru, station, station * params.parent.size + vertex)
        lru.stations[station, PINNED_BYTES] += params.vertex_bytes[vertex]
    lru.pins[station, vertex] += 1


@inlined
def lru_pin(params: LruParams, lru: LruState, station: int, request_type: int, depth: int) -> None:
    """Keep the first vertices of a path, which are there, while a request runs."""
    for step in range(depth):
        _pin(params, lru, station, params.path[request_type, step])


@inlined
def lru_unpin(
    params: LruParams, lru: LruState, station: int, request_type: int, depth: int
) -> None:
    """Release what a request kept; if nobody else uses it, it was last used now."""
    for step in range(depth - 1, -1, -1):
        vertex = params.path[request_type, step]
        lru.pins[station, vertex] -= 1
        if lru.pins[station, vertex] == 0 and lru.present[station, vertex]:
            _append(lru, station, station * params.parent.size + vertex)
            lru.stations[station, PINNED_BYTES] -= params.vertex_bytes[vertex]


@helper
def lru_insert(
    params: LruParams, lru: LruState, station: int, request_type: int, depth: int, start_s: float
) -> int:
    """Cache the rest of a request's path, which it has just computed, and keep it.

    Parameters
    ----------
    params, lru
        Caches of one fleet, changed in place.
    station, request_type : int
        Where it runs, and what it is.
    depth : int
        Vertices of its path that it keeps already.
    start_s : float
        When it took its slot: what changed since then is not what it computed.

    Returns
    -------
    int
        Vertices that it keeps now; fewer than its path where they don't fit.
    """
    while depth < params.path_length[request_type]:
        vertex = params.path[request_type, depth]
        if lru.changed_s[vertex] > start_s:
            break
        if lru.present[station, vertex]:
            _pin(params, lru, station, vertex)
        else:
            size = params.vertex_bytes[vertex]
            if not _make_room(params, lru, station, size):
                break
            lru.present[station, vertex] = True
            lru.stations[station, USED_BYTES] += size
            lru.stations[station, PINNED_BYTES] += size
            lru.pins[station, vertex] += 1
            _show(params, lru, station, vertex, vertex)
        depth += 1
    return depth


@helper
def lru_leave(
    params: LruParams, lru: LruState, station: int, request_type: int, depth: int, rest_bytes: int
) -> None:
    """Let a request leave: its private rest becomes a leaf, and it releases its path.

    Parameters
    ----------
    params, lru
        Caches of one fleet, changed in place; with room for a leaf.
    station, request_type : int
        Where it ran, and what it is.
    depth : int
        Vertices of its path that it keeps.
    rest_bytes : int
        Its state beyond the path. It is kept only below a whole path, and if it fits.
    """
    length = params.path_length[request_type]
    whole = depth == length
    if whole and length > 0:
        whole = bool(lru.present[station, params.path[request_type, length - 1]])
    if whole and rest_bytes > 0 and _make_room(params, lru, station, rest_bytes):
        leaf = _new_leaf(lru)
        lru.leaf_bytes[leaf] = rest_bytes
        lru.stations[station, USED_BYTES] += rest_bytes
        _append(lru, station, lru.present.size + leaf)
    lru_unpin(params, lru, station, request_type, depth)


@helper
def lru_expire(params: LruParams, lru: LruState, vertex: int, now: float) -> None:
    """Forget a vertex whose content changes, and what continues it, at all stations.

    Private leaves below stay until they are evicted: nobody could hit them anyway.
    """
    for below in range(vertex, params.subtree_end[vertex]):
        lru.changed_s[below] = now
    for station in range(lru.present.shape[0]):
        for below in range(params.subtree_end[vertex] - 1, vertex - 1, -1):
            if lru.present[station, below]:
                _drop_vertex(params, lru, station, below)


@helper
def lru_clear(params: LruParams, lru: LruState, station: int) -> None:
    """Empty a station; what its requests kept is released with it."""
    row = lru.stations[station]
    lru.pins[station, :] = 0
    lru.present[station, :] = False
    lru.held_tokens[station, :] = 0.0
    piece = row[OLDEST]
    while piece >= 0:
        newer = lru.newer[piece]
        if piece >= lru.present.size:
            _free_leaf(lru, piece - lru.present.size)
        piece = newer
    row[OLDEST] = row[NEWEST] = -1
    row[USED_BYTES] = row[PINNED_BYTES] = 0
    row[CHANGES] += 1
