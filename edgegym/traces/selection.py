"""Which shared prefixes of a trace become vertices of a scenario's forest."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles.tree import depth_first
from edgegym.traces.trie import SharedPrefixes
from edgegym.world.hardware import Prefill, prefill_s


@dataclass(frozen=True, kw_only=True, eq=False)
class KeptForest:
    """The chosen prefixes as a forest of V vertices, parents numbered before their children."""

    parent: NDArray[np.int64]
    """``[V]``; -1 for a root."""
    depth_tokens: NDArray[np.int64]
    """``[V]``."""
    deepest: NDArray[np.int64]
    """``[R]``: the deepest chosen prefix of each prompt, -1 if none."""

    @property
    def num_vertices(self) -> int:
        """Number of vertices V."""
        return len(self.parent)


@dataclass(frozen=True, kw_only=True)
class SelectionLimits:
    """How much of a trace's prefixes a scenario can use."""

    vertices: int
    """Most vertices."""
    total_tokens: int
    """Most tokens that all vertices together hold."""
    path_tokens: int
    """Deepest vertex: what one node is ready to hold."""


def select_prefixes(
    shared: SharedPrefixes,
    input_tokens: NDArray[np.int64],
    prefill: Prefill,
    limits: SelectionLimits,
) -> KeptForest:
    """Choose vertices greedily by saved prefill time for the memory and the vertices they use up.

    The gain of a prefix is the prefill time that it saves beyond the prefixes already chosen,
    summed over the prompts whose deepest chosen prefix it would be. Its cost is the sum of the two
    shares that it uses up: of ``total_tokens``, for the tokens not yet in the forest, and of
    ``vertices``. Where two chosen prefixes part, the point at which they part is a vertex as well,
    so that common tokens are held once.

    Parameters
    ----------
    shared : SharedPrefixes
        Candidates.
    input_tokens : numpy.ndarray
        Prompt lengths ``[R]``.
    prefill : Prefill
        Prices what a prefix saves, at the mean length of the prompts that share it.
    limits : SelectionLimits
        What may be used.

    Returns
    -------
    KeptForest
        With no vertex when nothing fits or saves time.
    """
    search = _Search(shared, input_tokens, prefill, limits)
    while search.keep_best():
        pass
    return search.forest(shared.deepest)


def all_prefixes(shared: SharedPrefixes) -> KeptForest:
    """Return the forest of all candidates.

    Parameters
    ----------
    shared : SharedPrefixes
        Candidates.
    """
    return KeptForest(
        parent=shared.parent, depth_tokens=shared.depth_tokens, deepest=shared.deepest
    )


class _Search:
    """State of the greedy choice, over the C candidates in depth-first order."""

    def __init__(
        self,
        shared: SharedPrefixes,
        input_tokens: NDArray[np.int64],
        prefill: Prefill,
        limits: SelectionLimits,
    ) -> None:
        order, self._subtree_end = depth_first(shared.parent)
        self._rank = np.empty(len(order), dtype=np.int64)
        self._rank[order] = np.arange(len(order))
        parent = shared.parent[order]
        self._parent = np.where(parent >= 0, self._rank[parent], -1)
        self._depth = shared.depth_tokens[order]
        self._mean_input = _mean_input(shared, input_tokens)[order]
        self._prefill = prefill
        self._prefill_with_s = prefill_s(prefill, self._mean_input, self._depth)
        self._limits = limits
        self._tokens_left = limits.total_tokens
        self._vertices_left = limits.vertices
        count = len(order)
        self._kept = np.zeros(count, dtype=np.bool_)
        self._kept_above = np.full(count, -1, dtype=np.int64)
        # On the tree: kept, or on the way to a kept one, so that its tokens are already paid for.
        self._on_tree = np.zeros(count, dtype=np.bool_)
        self._tree_above = np.full(count, -1, dtype=np.int64)
        self._unserved = shared.requests[order].astype(np.float64)

    def _depth_of(self, vertices: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(vertices >= 0, self._depth[vertices], 0)

    def keep_best(self) -> bool:
        """Keep the best candidate that fits; return whether there was one."""
        if self._vertices_left == 0 or len(self._depth) == 0:
            return False
        before_s = prefill_s(self._prefill, self._mean_input, self._depth_of(self._kept_above))
        gain_s = self._unserved * (before_s - self._prefill_with_s)
        tokens = np.where(self._on_tree, 0, self._depth - self._depth_of(self._tree_above))
        # A candidate that leaves the tree at an unkept vertex makes that one a vertex too.
        parting = ~self._on_tree & (self._tree_above >= 0) & ~self._kept[self._tree_above]
        vertices = 1 + parting.astype(np.int64)
        fits = (
            ~self._kept
            & (gain_s > 0)
            & (tokens <= self._tokens_left)
            & (vertices <= self._vertices_left)
            & (self._depth <= self._limits.path_tokens)
        )
        if not fits.any():
            return False
        cost = tokens / self._limits.total_tokens + vertices / self._limits.vertices
        best = int(np.argmax(np.where(fits, gain_s / cost, -1.0)))
        self._tokens_left -= int(tokens[best])
        self._vertices_left -= int(vertices[best])
        if parting[best]:
            self._keep(int(self._tree_above[best]))
        self._keep(best)
        return True

    def _keep(self, vertex: int) -> None:
        above = self._kept_above[vertex]
        here = int(self._parent[vertex])
        while here != above:
            self._unserved[here] -= self._unserved[vertex]
            here = int(self._parent[here])
        below = slice(vertex + 1, self._subtree_end[vertex])
        closest = self._kept_above[below]
        closest[closest == above] = vertex
        self._kept[vertex] = True

        joining = []
        here = vertex
        while here >= 0 and not self._on_tree[here]:
            joining.append(here)
            here = int(self._parent[here])
        for vertex_on_way in reversed(joining):
            self._on_tree[vertex_on_way] = True
            self._tree_above[vertex_on_way + 1 : self._subtree_end[vertex_on_way]] = vertex_on_way

    def forest(self, deepest: NDArray[np.int64]) -> KeptForest:
        """Return what has been kept; ``deepest`` is in the numbers of the shared prefixes."""
        kept = np.flatnonzero(self._kept)
        # One more entry, so that -1 (nothing shared, no parent) stays -1.
        index = np.full(len(self._kept) + 1, -1, dtype=np.int64)
        index[kept] = np.arange(len(kept))
        closest = np.where(self._kept, np.arange(len(self._kept)), self._kept_above)
        here = np.where(deepest >= 0, np.append(self._rank, -1)[deepest], -1)
        return KeptForest(
            parent=index[self._kept_above[kept]],
            depth_tokens=self._depth[kept],
            deepest=index[np.append(closest, -1)[here]],
        )


def _mean_input(shared: SharedPrefixes, input_tokens: NDArray[np.int64]) -> NDArray[np.float64]:
    has = shared.deepest >= 0
    total = np.bincount(
        shared.deepest[has], weights=input_tokens[has], minlength=len(shared.parent)
    )
    for child in range(len(total) - 1, -1, -1):
        if shared.parent[child] >= 0:
            total[shared.parent[child]] += total[child]
    return total / shared.requests
