"""A prefix forest with the demand on it, as arrays: what profiles are made from."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.profiles.tree import depth_first
from edgegym.world.hardware import Prefill, prefill_s
from edgegym.world.network import checked_numbers, checked_whole, checked_wholes

if TYPE_CHECKING:
    from edgegym.world.catalogue import RequestType
    from edgegym.world.forest import Forest
    from edgegym.world.scenario import Scenario

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_BYTES = 10**18
"""Largest number of bytes or tokens."""
LEAST_LIFETIME_S = 1e-12
"""Shortest mean time until a content changes."""

_SHARE_TOLERANCE = 1e-6


def _check_shape(name: str, array: NDArray[Any], axes: str, size: int) -> None:
    if array.shape != (size,):
        raise ValueError(f"{name} has shape {array.shape}: must be {axes} with shape ({size},)")


def _frozen(array: NDArray[Any]) -> NDArray[Any]:
    array = array.copy()
    array.setflags(write=False)
    return array


def check_demand(demand: object) -> None:
    """Refuse what is no forest with demand on it."""
    if not isinstance(demand, ForestDemand):
        raise TypeError(f"demand is {demand!r}: must be a ForestDemand, as scenario_demand returns")


@dataclass(frozen=True, kw_only=True, eq=False)
class ForestDemand:
    """V vertices that hold bytes, Q request types that pass through them, and what a hit saves.

    Lists are accepted; arrays are kept read-only. Vertices and types are numbered from 0.

    Parameters
    ----------
    parent : int [V]
        The vertex above, -1 for a root. Parents have lower numbers than their children.
    depth_tokens : int [V]
        Tokens from the start of the prompt to the end of the vertex; no less than the parent's.
    bytes : int [V]
        Own state, beyond the parent's [4].
    type_vertex : int [Q]
        The deepest vertex on each type's path, -1 if nothing of it can be reused.
    share : float [Q]
        Share of the requests; adds up to 1.
    input_tokens : int [Q]
        Prompt length, at least the depth of the type's path.
    prefill : Prefill
        Prices what a hit saves.
    type_family : sequence of str, optional
        Family of each type; all of one family by default.
    vertex_names : sequence of str, optional
        Unique; ``v0``, ``v1``, ... by default.
    lifetime_s : float [V] or float, optional
        Mean time until a vertex's content changes, or that of all; infinite (never) by default.

    Raises
    ------
    ValueError
        Names the field, the value and the rule.
    """

    parent: IntArray
    depth_tokens: IntArray
    bytes: IntArray
    type_vertex: IntArray
    share: FloatArray
    input_tokens: IntArray
    prefill: Prefill
    type_family: tuple[str, ...] = ()
    vertex_names: tuple[str, ...] = ()
    lifetime_s: FloatArray = field(default_factory=lambda: np.array(np.inf))

    def __post_init__(self) -> None:
        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        for name, axes, least in (
            ("parent", "[V]", -1),
            ("depth_tokens", "[V]", 0),
            ("bytes", "[V]", 0),
            ("type_vertex", "[Q]", -1),
            ("input_tokens", "[Q]", 1),
        ):
            whole = checked_wholes(name, getattr(self, name), axes, 1, least, MOST_BYTES)
            put(name, _frozen(whole))
        put("share", _frozen(checked_numbers("share", self.share, "[Q]")))
        vertices, types = len(self.parent), len(self.type_vertex)
        lifetime_s = checked_numbers("lifetime_s", self.lifetime_s, "[V] or one number")
        if lifetime_s.ndim == 0:
            lifetime_s = np.full(vertices, lifetime_s)
        put("lifetime_s", _frozen(lifetime_s))
        put("vertex_names", tuple(self.vertex_names) or tuple(f"v{v}" for v in range(vertices)))
        put("type_family", tuple(self.type_family) or ("all",) * types)
        if not isinstance(self.prefill, Prefill):
            raise ValueError(f"prefill is {self.prefill!r}: must be a Prefill")
        if types == 0:
            raise ValueError("type_vertex has shape (0,): must be [Q] with at least one type")
        for name in ("depth_tokens", "bytes", "lifetime_s"):
            _check_shape(name, getattr(self, name), "[V]", vertices)
        for name in ("share", "input_tokens"):
            _check_shape(name, getattr(self, name), "[Q]", types)
        self._check_names()
        self._check_forest()
        self._check_types()

    def _check_names(self) -> None:
        for name, size in (("vertex_names", self.num_vertices), ("type_family", self.num_types)):
            given = getattr(self, name)
            if len(given) != size:
                raise ValueError(f"{name} has {len(given)} entries: must have {size}")
        if len(set(self.vertex_names)) < self.num_vertices:
            twice = next(n for n in self.vertex_names if self.vertex_names.count(n) > 1)
            raise ValueError(f"vertex_names: '{twice}' stands twice; must be unique")

    def _check_forest(self) -> None:
        for v, above in enumerate(self.parent.tolist()):
            if above >= v:
                raise ValueError(
                    f"parent[{v}] is {above}: must be lower than {v}, or -1; parents come first"
                )
            if above >= 0 and self.depth_tokens[v] < self.depth_tokens[above]:
                raise ValueError(
                    f"depth_tokens[{v}] is {self.depth_tokens[v]}: must be at least its parent's, "
                    f"{self.depth_tokens[above]}"
                )
        if sum(self.bytes.tolist()) > MOST_BYTES:
            raise ValueError(
                f"bytes sums to {sum(self.bytes.tolist())}: must be at most {MOST_BYTES:g} in all"
            )
        lasting = self.lifetime_s >= LEAST_LIFETIME_S
        if not lasting.all():
            at = int(np.argmin(lasting))
            raise ValueError(
                f"lifetime_s[{at}] is {self.lifetime_s[at]:g}: must be at least "
                f"{LEAST_LIFETIME_S:g}"
            )

    def _check_types(self) -> None:
        for q, vertex in enumerate(self.type_vertex.tolist()):
            if vertex >= self.num_vertices:
                raise ValueError(
                    f"type_vertex[{q}] is {vertex}: must be at most {self.num_vertices - 1}"
                )
            if vertex >= 0 and self.depth_tokens[vertex] > self.input_tokens[q]:
                raise ValueError(
                    f"input_tokens[{q}] is {self.input_tokens[q]}: must be at least the depth of "
                    f"its path, {self.depth_tokens[vertex]}"
                )
        if not ((self.share >= 0) & np.isfinite(self.share)).all():
            at = int(np.argmin((self.share >= 0) & np.isfinite(self.share)))
            raise ValueError(f"share[{at}] is {self.share[at]:g}: must be finite and at least 0")
        if abs(self.share.sum() - 1.0) > _SHARE_TOLERANCE:
            raise ValueError(f"share sums to {self.share.sum():.9g}: must sum to 1")

    @property
    def num_vertices(self) -> int:
        """Number of vertices V."""
        return len(self.parent)

    @property
    def num_types(self) -> int:
        """Number of request types Q."""
        return len(self.type_vertex)

    @cached_property
    def walk(self) -> tuple[IntArray, IntArray]:
        """Vertices in depth-first order ``[V]``, and the end of each subtree in it ``[V]``."""
        return depth_first(self.parent)

    def path(self, vertex: int) -> list[int]:
        """Return a vertex and its ancestors, the root first; empty for -1."""
        found = []
        while vertex >= 0:
            found.append(vertex)
            vertex = int(self.parent[vertex])
        return found[::-1]

    @cached_property
    def type_paths(self) -> tuple[list[int], ...]:
        """The vertices of each type's path, the root first, ``[Q]`` lists."""
        return tuple(self.path(vertex) for vertex in self.type_vertex.tolist())

    @cached_property
    def through_share(self) -> FloatArray:
        """Share of the requests that pass through each vertex, ``[V]`` (p̂ in [48])."""
        through = np.zeros(self.num_vertices)
        for path, share in zip(self.type_paths, self.share, strict=True):
            through[path] += share
        return _frozen(through)

    def checked_vertices(self, name: str, vertices: Iterable[int]) -> list[int]:
        """Return vertices as a list of ints, or say which is none of the forest."""
        if not isinstance(vertices, Iterable):
            raise ValueError(f"{name} {vertices!r}: must be several vertices, as [0, 2]")
        return [checked_whole(f"{name} vertex", v, 0, self.num_vertices - 1) for v in vertices]

    def closure(self, vertices: Iterable[int]) -> frozenset[int]:
        """Return the smallest ancestor-closed set that contains these vertices."""
        found: set[int] = set()
        for vertex in vertices:
            while vertex >= 0 and vertex not in found:
                found.add(vertex)
                vertex = int(self.parent[vertex])
        return frozenset(found)

    def total_bytes(self, vertices: Iterable[int]) -> int:
        """Return the bytes of a set of vertices, each counted once [4]."""
        return sum(int(self.bytes[vertex]) for vertex in set(vertices))

    def hit_tokens(self, held: frozenset[int]) -> tuple[int, ...]:
        """Return the cached prefix of each type, ``[Q]``, on a node that holds these [3].

        At most the prompt less its last token, which must be computed to emit another.
        """
        hits = []
        for path, length in zip(self.type_paths, self.input_tokens.tolist(), strict=True):
            deepest = max((int(self.depth_tokens[v]) for v in path if v in held), default=0)
            hits.append(min(deepest, length - 1))
        return tuple(hits)

    def path_prefill_s(self, type_index: int) -> FloatArray:
        """Return a type's prefill time without a hit, then with each vertex of its path, s."""
        length = int(self.input_tokens[type_index])
        depths = self.depth_tokens[self.type_paths[type_index]]
        hits = np.minimum(np.concatenate(([0], depths)), length - 1)
        return prefill_s(self.prefill, length, hits)

    def saved_s(self, held: frozenset[int]) -> float:
        """Return the mean prefill time that a set saves per request, s, nothing expiring [6]."""
        before = prefill_s(self.prefill, self.input_tokens, 0)
        after = prefill_s(self.prefill, self.input_tokens, self.hit_tokens(held))
        return float(self.share @ (before - after))


def forest_demand(
    forest: "Forest",
    request_types: Sequence["RequestType"],
    prefill: Prefill,
    *,
    share: ArrayLike | None = None,
    lifetime_s: dict[str, float] | None = None,
) -> ForestDemand:
    """Return the vertices of a forest and the request types on them as arrays.

    Parameters
    ----------
    forest : Forest
        Vertices in any order; they come out parents first.
    request_types : sequence of RequestType
        The demand, ``[Q]``.
    prefill : Prefill
        Prices what a hit saves.
    share : array_like [Q], optional
        Shares of the types; by default those that they state.
    lifetime_s : dict of str to float, optional
        Mean time until the content of the named vertices changes; the others never do.

    Raises
    ------
    ValueError
        If a path or a lifetime names no vertex, or a number is out of range.
    """
    known = {vertex.name: vertex for vertex in forest.vertices}
    lifetimes = lifetime_s or {}
    for name in lifetimes:
        if name not in known:
            raise ValueError(f"lifetime_s: no vertex is named {name!r}; must name vertices")
    for item in request_types:
        if item.path is not None and item.path not in known:
            raise ValueError(f"request type '{item.name}': path '{item.path}' must name a vertex")
    position = {vertex.name: place for place, vertex in enumerate(forest.vertices)}
    position_of_parent = [
        -1 if vertex.parent is None else position[vertex.parent] for vertex in forest.vertices
    ]
    order, _ = depth_first(np.array(position_of_parent, dtype=np.int64))
    vertices = [forest.vertices[place] for place in order.tolist()]
    index = {vertex.name: place for place, vertex in enumerate(vertices)}
    return ForestDemand(
        parent=np.array([-1 if v.parent is None else index[v.parent] for v in vertices], dtype=int),
        depth_tokens=np.array([v.depth_tokens for v in vertices], dtype=np.int64),
        bytes=np.array([forest.vertex_bytes(v.name) for v in vertices], dtype=np.int64),
        type_vertex=np.array(
            [-1 if item.path is None else index[item.path] for item in request_types]
        ),
        share=np.asarray([item.share for item in request_types] if share is None else share),
        input_tokens=np.array([item.input_tokens for item in request_types]),
        prefill=prefill,
        type_family=tuple(item.family for item in request_types),
        vertex_names=tuple(vertex.name for vertex in vertices),
        lifetime_s=np.array([lifetimes.get(vertex.name, np.inf) for vertex in vertices]),
    )


def scenario_demand(
    scenario: "Scenario", *, lifetime_s: dict[str, float] | None = None
) -> ForestDemand:
    """Return a scenario's forest with its long-run mean demand (popularity drift averaged).

    Parameters
    ----------
    scenario : Scenario
        Any; its profiles play no part.
    lifetime_s : dict of str to float, optional
        Mean time until the content of the named vertices changes; the others never do.

    Raises
    ------
    ValueError
        If a lifetime is out of range or that of no vertex.
    TypeError
        If `scenario` is none.
    """
    # Imported here: scenarios take longer to import than profiles.
    from edgegym.world.scenario import Scenario

    if not isinstance(scenario, Scenario):
        raise TypeError(f"scenario is {scenario!r}: must be a Scenario, as preset() returns")
    return forest_demand(
        scenario.catalogue.forest,
        scenario.request_types,
        scenario.hardware.prefill,
        share=scenario.compile().type_share,
        lifetime_s=lifetime_s,
    )
