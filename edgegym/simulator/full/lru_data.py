"""What radix caches are made of: columns, constants of a scenario, and room for pieces."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.scenario import Scenario
from edgegym.world.serving import LruCache

# Columns of `stations`.
OLDEST = 0  # first piece of the list, -1 when empty
NEWEST = 1  # last piece of the list, -1 when empty
USED_BYTES = 2  # of all pieces
PINNED_BYTES = 3  # of vertices in use by running requests
NUM_LRU_STATION = 4

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
