"""Requests of a trace grouped into request types, and types grouped into families."""

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.traces.selection import KeptForest


@dataclass(frozen=True, kw_only=True, eq=False)
class TypeGroups:
    """The Q request types: requests with the same chosen prefix and similar prompt length."""

    vertex: NDArray[np.int64]
    """Deepest chosen prefix ``[Q]``, -1 for none."""
    share: NDArray[np.float64]
    """Share of requests ``[Q]``; adds up to 1."""
    input_tokens: NDArray[np.int64]
    """Mean prompt length, rounded ``[Q]``; beyond the prefix."""
    output_tokens: NDArray[np.int64]
    """Mean generated length, rounded, at least 1 ``[Q]``."""
    output_scv: float
    """Squared coefficient of variation of generated lengths within types: the mean over requests of
    their variance within their type, over the mean of the squared type means."""
    of_request: NDArray[np.int64]
    """Type of each request ``[R]``."""


def group_types(
    forest: KeptForest,
    input_tokens: NDArray[np.int64],
    output_tokens: NDArray[np.int64],
    cold_prefill_s: NDArray[np.float64],
    number: int,
) -> TypeGroups:
    """Group requests by chosen prefix, then split groups by prompt length until ``number``.

    Each split parts, at its mean prompt length, the group in which prefill times scatter most
    (number of requests times variance).

    Parameters
    ----------
    forest : KeptForest
        Gives each request's prefix.
    input_tokens, output_tokens : numpy.ndarray
        Lengths of the requests ``[R]``.
    cold_prefill_s : numpy.ndarray
        Prefill time without a hit ``[R]``, increasing in the prompt length.
    number : int
        Most types; at least the number of distinct prefixes with requests.

    Returns
    -------
    TypeGroups
        Ordered by prefix, then by length.
    """
    members = [
        np.flatnonzero(forest.deepest == vertex) for vertex in np.unique(forest.deepest).tolist()
    ]

    def entry(group: NDArray[np.int64]) -> tuple[float, int, NDArray[np.int64]]:
        # Equal lengths scatter by nothing, whatever rounding makes of their variance.
        alike = input_tokens[group].min() == input_tokens[group].max()
        scatter = 0.0 if alike else float(cold_prefill_s[group].var()) * len(group)
        return (-scatter, int(group[0]), group)

    heap = [entry(group) for group in members]
    heapq.heapify(heap)
    while len(heap) < number and heap[0][0] < 0.0:
        _, _, group = heap[0]
        below = input_tokens[group] <= input_tokens[group].mean()
        heapq.heapreplace(heap, entry(group[below]))
        heapq.heappush(heap, entry(group[~below]))
    groups = sorted(
        (group for _, _, group in heap),
        key=lambda group: (int(forest.deepest[group[0]]), float(input_tokens[group].mean())),
    )
    means = np.array([output_tokens[group].mean() for group in groups])
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    variances = np.array([output_tokens[group].var() for group in groups])
    squared = float(sizes @ means**2)
    of_request = np.empty(len(input_tokens), dtype=np.int64)
    for index, group in enumerate(groups):
        of_request[group] = index
    return TypeGroups(
        vertex=np.array([forest.deepest[group[0]] for group in groups]),
        share=sizes / sizes.sum(),
        input_tokens=np.array([round(float(input_tokens[group].mean())) for group in groups]),
        output_tokens=np.maximum(1, np.rint(means)).astype(np.int64),
        output_scv=float(sizes @ variances) / squared if squared > 0 else 0.0,
        of_request=of_request,
    )


def group_families(forest: KeptForest, types: TypeGroups, number: int) -> NDArray[np.int64]:
    """Group the forest's vertices into families of similar demand.

    Subtrees stay whole as far as possible: the trees of the forest are opened (the root alone,
    and each child's subtree), the most requested first, only while there are fewer pieces than
    families. Then the pieces go, the most requested first, to the family with the least demand so
    far: a few hot trees have a family each, many small ones are bundled.

    Parameters
    ----------
    forest : KeptForest
        The vertices.
    types : TypeGroups
        Their demand.
    number : int
        Most families for types with a prefix.

    Returns
    -------
    numpy.ndarray
        Family of each vertex ``[V]``, from 0, in descending order of demand.
    """
    own = np.zeros(forest.num_vertices)
    with_prefix = types.vertex >= 0
    np.add.at(own, types.vertex[with_prefix], types.share[with_prefix])
    through = own.copy()
    children: list[list[int]] = [[] for _ in range(forest.num_vertices)]
    for vertex in range(forest.num_vertices - 1, -1, -1):
        above = forest.parent[vertex]
        if above >= 0:
            through[above] += through[vertex]
            children[above].append(vertex)

    roots = np.flatnonzero(forest.parent < 0).tolist()
    whole = [(-float(through[root]), root) for root in roots if children[root]]
    pieces = {root: float(through[root]) for root in roots}
    heapq.heapify(whole)
    while whole and len(pieces) < number:
        _, opened = heapq.heappop(whole)
        pieces.pop(opened)
        if own[opened] > 0:
            pieces[opened] = float(own[opened])
        for child in children[opened]:
            pieces[child] = float(through[child])
            if children[child]:
                heapq.heappush(whole, (-float(through[child]), child))

    demand = np.zeros(min(number, len(pieces)))
    family_of_piece: dict[int, int] = {}
    for piece, share in sorted(pieces.items(), key=lambda item: (-item[1], item[0])):
        family = int(np.argmin(demand))
        family_of_piece[piece] = family
        demand[family] += share
    family = np.full(forest.num_vertices, -1, dtype=np.int64)
    for vertex in range(forest.num_vertices):
        above = forest.parent[vertex]
        inherited = family[above] if above >= 0 else -1
        family[vertex] = family_of_piece.get(vertex, inherited)
    # What was opened and is nobody's deepest prefix goes with its most requested child.
    for vertex in range(forest.num_vertices - 1, -1, -1):
        if family[vertex] < 0:
            family[vertex] = family[max(children[vertex], key=lambda child: through[child])]
    rank = np.empty(len(demand), dtype=np.int64)
    rank[np.argsort(-demand, kind="stable")] = np.arange(len(demand))
    return rank[family]
