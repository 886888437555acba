"""From a forest with its demand to the few profiles among which a placement is chosen."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.profiles.candidates import CandidateProfile, candidate_profile, without_dominated
from edgegym.profiles.demand import MOST_BYTES, ForestDemand, check_demand
from edgegym.profiles.greedy import Fill, Greedy
from edgegym.profiles.value import additive_value_s, checked_value_s
from edgegym.world.network import checked_number, checked_whole

LEVELS = (0.5, 0.25, 0.125)
"""Shares of the usable memory that profiles are filled to, in the order in which they are made."""

_FOR_ALL = "shared"
_FALLBACK = "uncached"
_MOST_PROFILES = 100_000


@dataclass(frozen=True)
class Cluster:
    """Vertices whose requests a profile is made for."""

    name: str
    """Begins the names of its profiles."""
    vertices: tuple[int, ...]
    """What is chosen among; ancestors come along."""


def family_clusters(demand: ForestDemand) -> tuple[Cluster, ...]:
    """Return a cluster for each family: the paths of its request types.

    A vertex on the paths of two families is in both clusters. Families that reuse nothing have
    none.
    """
    check_demand(demand)
    members: dict[str, set[int]] = {}
    for family, path in zip(demand.type_family, demand.type_paths, strict=True):
        members.setdefault(family, set()).update(path)
    return tuple(
        Cluster(name, tuple(sorted(vertices))) for name, vertices in members.items() if vertices
    )


def root_clusters(demand: ForestDemand) -> tuple[Cluster, ...]:
    """Return a cluster for each tree of the forest, named after its root."""
    check_demand(demand)
    order, end = demand.walk
    roots = [place for place, vertex in enumerate(order.tolist()) if demand.parent[vertex] < 0]
    return tuple(
        Cluster(
            demand.vertex_names[int(order[place])],
            tuple(sorted(order[place : end[place]].tolist())),
        )
        for place in roots
    )


def make_profiles(
    demand: ForestDemand,
    *,
    usable_bytes: int,
    runtime_bytes: int,
    number: int = 16,
    clusters: Sequence[Cluster] | None = None,
    levels: Sequence[float] = LEVELS,
    fill: Fill | None = None,
    value_s: ArrayLike | None = None,
) -> tuple[CandidateProfile, ...]:
    """Return at most ``number`` profiles, the empty one first.

    In this order, at each level: the memory filled for all vertices together; then, in rounds, for
    each cluster with what its earlier profiles of that level leave over, the cluster with most
    value first, until every vertex that fits is in one. Sets that are already there or dominated
    are left out. Every profile leaves room for one running sequence.

    Parameters
    ----------
    demand : ForestDemand
        The forest and the request types.
    usable_bytes : int
        Memory of a node for profile and running sequences together.
    runtime_bytes : int
        Memory of one running sequence.
    number : int, optional
        Most profiles, the fallback included.
    clusters : sequence of Cluster, optional
        For whom profiles are made; by default :func:`family_clusters`.
    levels : sequence of float, optional
        Shares of the usable memory that profiles are filled to.
    fill : Fill, optional
        How: :class:`Greedy` (the default) or :class:`~edgegym.profiles.knapsack.Knapsack`.
    value_s : array_like [V], optional
        Additive value of each vertex; by default :func:`additive_value_s`. With
        :func:`~edgegym.profiles.value.lifetime_value_s`, what expires soon counts for less.

    Returns
    -------
    tuple of CandidateProfile
        ``[profile.as_profile() for profile in ...]`` is a scenario's ``profiles``.

    Raises
    ------
    ValueError
        If a number is out of range, not one sequence fits into the memory, or names clash.
    """
    check_demand(demand)
    usable = checked_whole("usable_bytes", usable_bytes, 1, MOST_BYTES)
    runtime = checked_whole("runtime_bytes", runtime_bytes, 1, MOST_BYTES)
    most = checked_whole("number", number, 1, _MOST_PROFILES)
    checked_levels = _checked_levels(levels)
    value = additive_value_s(demand) if value_s is None else checked_value_s(value_s, demand)
    left_at_start = _by_value(
        family_clusters(demand) if clusters is None else clusters, demand, value
    )
    choose = Greedy() if fill is None else fill
    if not callable(getattr(choose, "fill", None)) or isinstance(choose, np.ndarray | np.generic):
        raise TypeError(f"fill is {fill!r}: must be a Fill such as Greedy() or Knapsack()")

    def profile(name: str, vertices: frozenset[int]) -> CandidateProfile:
        return candidate_profile(name, demand, vertices, usable_bytes=usable, runtime_bytes=runtime)

    found = [profile(_FALLBACK, frozenset())]
    for level in checked_levels:
        room = min(int(level * usable), usable - runtime)
        percent = round(100 * level)
        held = choose.fill(demand, value, room)
        found = _with(found, profile(f"{_FOR_ALL}_{percent}", held))
        left_over = dict(left_at_start)
        part = 0
        while left_over and len(found) < most:
            part += 1
            for name, vertices in list(left_over.items()):
                held = choose.fill(demand, value, room, vertices)
                left_over[name] = vertices - held
                if left_over[name] == vertices or not left_over[name]:
                    del left_over[name]
                suffix = "" if part == 1 else f"_{part}"
                found = _with(found, profile(f"{name}_{percent}{suffix}", held))
    return tuple(found[:most])


def _with(found: list[CandidateProfile], new: CandidateProfile) -> list[CandidateProfile]:
    """Add a profile unless its set is there already, then drop dominated ones."""
    if any(new.vertices == other.vertices for other in found):
        return found
    fallback = found[0]
    return [fallback, *(p for p in without_dominated([*found, new]) if p is not fallback)]


def _by_value(
    clusters: Sequence[Cluster], demand: ForestDemand, value_s: NDArray[np.float64]
) -> dict[str, frozenset[int]]:
    """Return the vertices of each cluster by name, the cluster with most value first."""
    found: dict[str, frozenset[int]] = {}
    if not isinstance(clusters, Iterable):
        raise TypeError(f"clusters is {clusters!r}: must be a sequence of Clusters")
    for cluster in clusters:
        if not isinstance(cluster, Cluster):
            raise TypeError(f"clusters holds {cluster!r}: must be a sequence of Clusters")
        if cluster.name in found or cluster.name in (_FOR_ALL, _FALLBACK):
            raise ValueError(
                f"clusters: name '{cluster.name}' is taken; must differ from '{_FOR_ALL}', "
                f"'{_FALLBACK}' and each other"
            )
        found[cluster.name] = frozenset(
            demand.checked_vertices(f"clusters: '{cluster.name}'", cluster.vertices)
        )
    order = sorted(found, key=lambda name: -value_s[sorted(found[name])].sum())
    return {name: found[name] for name in order}


def _checked_levels(levels: Sequence[float]) -> list[float]:
    if not isinstance(levels, Iterable):
        raise ValueError(f"levels is {levels!r}: must be a sequence of shares")
    checked = [
        checked_number(f"levels[{place}]", level, 0.0, 1.0, strict=True)
        for place, level in enumerate(levels)
    ]
    if len({round(100 * level) for level in checked}) < len(checked):
        raise ValueError(f"levels is {levels!r}: must differ by at least a percent")
    return checked
