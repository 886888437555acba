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

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.lru_data import (
    FREE_LEAF,
    KEPT_LEAVES,
    NEWEST,
    OLDEST,
    PINNED_BYTES,
    USED_BYTES,
    USED_LEAVES,
    LruParams,
    LruState,
)


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
def _drop_leaf(lru: LruState, station: int, leaf: int) -> None:
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
            _drop_leaf(lru, station, piece - lru.present.size)
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
def lru_clear(lru: LruState, station: int) -> None:
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
