"""Cache profiles by value per byte."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.traces.grouping import TypeGroups
from edgegym.traces.selection import KeptForest
from edgegym.world.hardware import Prefill, prefill_s

LEVELS = (0.5, 0.25, 0.125)
"""Shares of the usable memory that profiles are filled to, in the order in which they are made."""


@dataclass(frozen=True)
class CandidateProfile:
    """An ancestor-closed set of vertices."""

    name: str
    """Says for whom and how full."""
    vertices: tuple[int, ...]
    """Sorted."""
    bytes: int
    """Each vertex counted once."""
    hit_tokens: tuple[int, ...]
    """Cached prefix of each request type ``[Q]``."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ProfileBuilder:
    """Makes profiles from a forest, its demand and the memory of a node."""

    forest: KeptForest
    """Vertices."""
    types: TypeGroups
    """Demand."""
    family: NDArray[np.int64]
    """Family of each vertex ``[V]``."""
    prefill: Prefill
    """Prices what a hit saves."""
    kv_bytes_per_token: int
    """Gives a vertex its bytes."""
    usable_bytes: int
    """Memory for profile and running sequences together."""
    runtime_bytes: int
    """Memory of one running sequence."""

    def build(self, number: int) -> list[CandidateProfile]:
        """Return at most ``number`` profiles, the empty one first.

        In this order, at each level of ``LEVELS``: the memory filled for all types together; then,
        in rounds, for each family with what its earlier profiles of that level leave over, the
        family with most to save first, until every vertex that fits is in one. Sets that are
        already there or dominated are left out.
        """
        value_s = self.value_s()
        everything = frozenset(range(self.forest.num_vertices))
        found = [self._profile("uncached", frozenset())]
        for level in LEVELS:
            room = min(int(level * self.usable_bytes), self.usable_bytes - self.runtime_bytes)
            percent = round(100 * level)
            filled = self._fill(everything, value_s, room)
            found = self._with(found, self._profile(f"shared_{percent}", filled))
            left_over = self._families_by_value(value_s)
            part = 0
            while left_over and len(found) < number:
                part += 1
                for family, vertices in list(left_over.items()):
                    filled = self._fill(vertices, value_s, room)
                    left_over[family] = vertices - filled
                    if not filled or not left_over[family]:
                        del left_over[family]
                    name = f"family_{family + 1}_{percent}" + ("" if part == 1 else f"_{part}")
                    found = self._with(found, self._profile(name, filled))
        return found[:number]

    def _families_by_value(self, value_s: NDArray[np.float64]) -> dict[int, frozenset[int]]:
        members = {
            family: np.flatnonzero(self.family == family)
            for family in range(int(self.family.max(initial=-1)) + 1)
        }
        order = sorted(members, key=lambda family: -value_s[members[family]].sum())
        return {family: frozenset(members[family].tolist()) for family in order}

    def value_s(self) -> NDArray[np.float64]:
        """Return each vertex's own value ``[V]``, seconds of prefill saved per request.

        It is what the vertex saves beyond its parent, summed over the types through it, weighted by
        their shares, so that values of nested vertices add up (theory, workload).
        """
        value = np.zeros(self.forest.num_vertices)
        for vertex, share, length in zip(
            self.types.vertex.tolist(), self.types.share, self.types.input_tokens, strict=True
        ):
            path = self.forest.path(vertex)
            depths = np.array([0, *self.forest.depth_tokens[path]])
            value[path] += share * -np.diff(prefill_s(self.prefill, length, depths))
        return value

    def _own_bytes(self, vertex: int) -> int:
        above = self.forest.parent[vertex]
        start = self.forest.depth_tokens[above] if above >= 0 else 0
        return self.kv_bytes_per_token * int(self.forest.depth_tokens[vertex] - start)

    def _fill(
        self, scope: frozenset[int], value_s: NDArray[np.float64], room: int
    ) -> frozenset[int]:
        """Add the vertex with most value per byte, with its missing ancestors, while one fits."""
        held: set[int] = set()
        left = room
        # Ancestors outside the scope count too; parents have lower numbers than their children.
        involved = sorted({v for vertex in scope for v in self.forest.path(vertex)})
        own_bytes = {vertex: self._own_bytes(vertex) for vertex in involved}
        while True:
            best, best_density = -1, 0.0
            package = {-1: (0.0, 0)}
            for vertex in involved:
                if vertex in held:
                    package[vertex] = (0.0, 0)
                    continue
                value, size = package[int(self.forest.parent[vertex])]
                value, size = value + float(value_s[vertex]), size + own_bytes[vertex]
                package[vertex] = (value, size)
                if vertex in scope and size <= left and value / size > best_density:
                    best, best_density = vertex, value / size
            if best < 0:
                return frozenset(held)
            left -= package[best][1]
            held.update(self.forest.path(best))

    def _profile(self, name: str, vertices: frozenset[int]) -> CandidateProfile:
        hits = []
        for vertex in self.types.vertex.tolist():
            held = [v for v in self.forest.path(vertex) if v in vertices]
            hits.append(int(self.forest.depth_tokens[held[-1]]) if held else 0)
        size = sum(self._own_bytes(vertex) for vertex in vertices)
        return CandidateProfile(name, tuple(sorted(vertices)), size, tuple(hits))

    def _with(
        self, profiles: list[CandidateProfile], new: CandidateProfile
    ) -> list[CandidateProfile]:
        """Add a profile unless its set is there already, then drop dominated ones.

        A profile is dominated if another has no more bytes, no smaller hit for any type and no
        fewer slots, and is better in one of them (theory, workload).
        """
        if any(new.vertices == other.vertices for other in profiles):
            return profiles
        listed = [*profiles, new]
        return [
            profile
            for profile in listed
            if not any(self._dominates(other, profile) for other in listed)
        ]

    def _dominates(self, better: CandidateProfile, worse: CandidateProfile) -> bool:
        # Fewer bytes never mean fewer slots, so the slots need no comparison of their own.
        as_good = better.bytes <= worse.bytes and all(
            a >= b for a, b in zip(better.hit_tokens, worse.hit_tokens, strict=True)
        )
        return as_good and (better.bytes < worse.bytes or better.hit_tokens != worse.hit_tokens)
