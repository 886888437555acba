"""The trie of a trace's block paths: which prompts begin alike, and how far."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from edgegym.traces.trace import Trace


@dataclass(frozen=True, eq=False)
class BlockTrie:
    """All distinct block prefixes of a trace, as arrays over the V vertices.

    A vertex is a prompt's beginning of ``depth_blocks`` blocks. Vertices are numbered in the order
    in which the trace first shows them, so a parent's number is smaller than its child's.
    """

    parent: NDArray[np.int64]
    """``[V]``; -1 for a root."""
    depth_blocks: NDArray[np.int64]
    """``[V]``, at least 1."""
    path: NDArray[np.int64]
    """The vertex at each block of each prompt, one prompt after the other."""
    path_start: NDArray[np.int64]
    """``[R + 1]``: request r's vertices are ``path[path_start[r]:path_start[r + 1]]``."""

    @property
    def num_vertices(self) -> int:
        """Number of vertices V."""
        return len(self.parent)

    @cached_property
    def request_of(self) -> NDArray[np.int64]:
        """The request that each entry of ``path`` belongs to."""
        lengths = np.diff(self.path_start)
        return np.repeat(np.arange(len(lengths)), lengths)

    @cached_property
    def requests(self) -> NDArray[np.int64]:
        """Requests that pass through each vertex ``[V]``."""
        return np.bincount(self.path, minlength=self.num_vertices)

    @cached_property
    def first_request(self) -> NDArray[np.int64]:
        """The first request through each vertex ``[V]``."""
        first = np.full(self.num_vertices, len(self.path_start), dtype=np.int64)
        np.minimum.at(first, self.path, self.request_of)
        return first


@dataclass(frozen=True, kw_only=True, eq=False)
class SharedPrefixes:
    """The beginnings that at least two prompts share, one for each group of prompts, ``[C]``.

    Along a trie path the same group of prompts may pass many vertices: only the deepest of them is
    a shared prefix of its own. They form a forest again, numbered parents first.
    """

    parent: NDArray[np.int64]
    """``[C]``; the next shorter shared prefix, -1 if there is none."""
    depth_tokens: NDArray[np.int64]
    """``[C]``."""
    requests: NDArray[np.int64]
    """Prompts that begin with it ``[C]``, at least 2."""
    first_request: NDArray[np.int64]
    """The first of them ``[C]``."""
    deepest: NDArray[np.int64]
    """``[R]``: each prompt's deepest shared prefix, -1 if it has none."""

    @property
    def own_tokens(self) -> NDArray[np.int64]:
        """Tokens beyond the parent ``[C]``."""
        above = np.where(self.parent >= 0, self.depth_tokens[self.parent], 0)
        return self.depth_tokens - above


def shared_prefixes(trie: BlockTrie, block_tokens: int) -> SharedPrefixes:
    """Compress a trie to the prefixes that at least two prompts share.

    Parameters
    ----------
    trie : BlockTrie
        Of whole blocks, so that depths are multiples of ``block_tokens`` that prompts really have.
    block_tokens : int
        Tokens of a block.
    """
    kept = trie.requests > 1
    # A vertex whose child has as many requests has no other child and no prompt that ends at it.
    child = np.flatnonzero(trie.parent >= 0)
    above = trie.parent[child]
    kept[above[trie.requests[child] == trie.requests[above]]] = False
    vertices = np.flatnonzero(kept)
    index = np.full(trie.num_vertices, -1, dtype=np.int64)
    index[vertices] = np.arange(len(vertices))

    # Along each prompt's path: the position of the last kept vertex so far.
    positions = np.arange(len(trie.path))
    last_kept = np.maximum.accumulate(np.where(kept[trie.path], positions, -1))

    def kept_before(stop: NDArray[np.int64], start: NDArray[np.int64]) -> NDArray[np.int64]:
        found = np.full(len(stop), -1, dtype=np.int64)
        inside = stop > start
        found[inside] = last_kept[stop[inside] - 1]
        # What was kept last may lie on the path of a prompt before this one.
        own = found >= start
        found[own] = index[trie.path[found[own]]]
        found[~own] = -1
        return found

    first = trie.first_request[vertices]
    start = trie.path_start[first]
    return SharedPrefixes(
        parent=kept_before(start + trie.depth_blocks[vertices] - 1, start),
        depth_tokens=trie.depth_blocks[vertices] * block_tokens,
        requests=trie.requests[vertices],
        first_request=first,
        deepest=kept_before(trie.path_start[1:], trie.path_start[:-1]),
    )


def block_trie(trace: Trace, *, whole_blocks_only: bool = False) -> BlockTrie:
    """Build the trie of a trace's block paths.

    Parameters
    ----------
    trace : Trace
        With block hashes.
    whole_blocks_only : bool, optional
        Leave out the block that holds a prompt's last token. What is left can always be reused in
        full: the last token has to be computed to emit one.

    Raises
    ------
    ValueError
        If the trace has no block hashes.
    """
    if trace.block_ids is None or trace.block_start is None:
        raise ValueError(f"{trace.path}: the trace has no block hashes, so no prefixes to compare")
    stops = trace.block_start[1:]
    if whole_blocks_only:
        stops = trace.block_start[:-1] + (trace.input_tokens - 1) // trace.block_tokens
    ids = trace.block_ids.tolist()
    vertex_of: dict[tuple[int, int], int] = {}
    parents: list[int] = []
    depths: list[int] = []
    path: list[int] = []
    path_start = [0]
    for start, stop in zip(trace.block_start[:-1].tolist(), stops.tolist(), strict=True):
        here = -1
        for depth, block in enumerate(ids[start:stop], start=1):
            # Keyed by the parent too: a hash is trusted only after the same beginning.
            vertex = vertex_of.setdefault((here, block), len(parents))
            if vertex == len(parents):
                parents.append(here)
                depths.append(depth)
            path.append(vertex)
            here = vertex
        path_start.append(len(path))
    return BlockTrie(
        np.asarray(parents, dtype=np.int64),
        np.asarray(depths, dtype=np.int64),
        np.asarray(path, dtype=np.int64),
        np.asarray(path_start, dtype=np.int64),
    )
