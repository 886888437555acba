"""Profiles that a node could hold, and which of them are worth considering."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from edgegym.profiles.demand import MOST_BYTES, ForestDemand, check_demand
from edgegym.world.catalogue import Profile
from edgegym.world.network import checked_whole


@dataclass(frozen=True)
class CandidateProfile:
    """An ancestor-closed set of vertices, and what it means for a node."""

    name: str
    """Says for whom and how full."""
    vertices: tuple[int, ...]
    """Sorted."""
    vertex_names: tuple[str, ...]
    """In the same order."""
    bytes: int
    """Each vertex counted once [4]."""
    hit_tokens: tuple[int, ...]
    """Cached prefix of each request type ``[Q]`` [3]."""
    concurrency: int
    """Sequences that run at once beside it [12]."""

    def as_profile(self) -> Profile:
        """Return it as an entry of a scenario's ``profiles``."""
        return Profile(name=self.name, vertices=self.vertex_names)


def candidate_profile(
    name: str,
    demand: ForestDemand,
    vertices: Iterable[int],
    *,
    usable_bytes: int,
    runtime_bytes: int,
) -> CandidateProfile:
    """Return the profile of some vertices and their ancestors.

    Parameters
    ----------
    name : str
        Its name.
    demand : ForestDemand
        The forest and the request types.
    vertices : iterable of int
        Their ancestors are added.
    usable_bytes : int
        Memory of a node for profile and running sequences together.
    runtime_bytes : int
        Memory of one running sequence.

    Raises
    ------
    ValueError
        If the name is empty, a number is out of range, a vertex is none of the forest, or no
        sequence fits beside the profile.
    TypeError
        If `demand` is none.
    """
    if not (isinstance(name, str) and name):
        raise ValueError(f"name is {name!r}: must be a text")
    check_demand(demand)
    usable_bytes = checked_whole("usable_bytes", usable_bytes, 1, MOST_BYTES)
    runtime_bytes = checked_whole("runtime_bytes", runtime_bytes, 1, MOST_BYTES)
    held = demand.closure(demand.checked_vertices(f"profile '{name}':", vertices))
    size = demand.total_bytes(held)
    if size + runtime_bytes > usable_bytes:
        raise ValueError(
            f"usable_bytes is {usable_bytes}: must hold profile '{name}' of {size} bytes and one "
            f"sequence of {runtime_bytes} bytes"
        )
    ordered = tuple(sorted(held))
    return CandidateProfile(
        name=name,
        vertices=ordered,
        vertex_names=tuple(demand.vertex_names[vertex] for vertex in ordered),
        bytes=size,
        hit_tokens=demand.hit_tokens(held),
        concurrency=(usable_bytes - size) // runtime_bytes,
    )


def without_dominated(profiles: Sequence[CandidateProfile]) -> list[CandidateProfile]:
    """Return the profiles that no other dominates, in order.

    A profile is dominated if another has no more bytes, no smaller hit for any request type and no
    lower concurrency, and is better in at least one of these. Equals stay.
    """
    for profile in profiles:
        if not isinstance(profile, CandidateProfile):
            raise TypeError(f"profiles holds {profile!r}: must be CandidateProfiles")
    if not profiles:
        return []
    merits = np.array([(-p.bytes, p.concurrency, *p.hit_tokens) for p in profiles], dtype=np.int64)
    kept = []
    for profile, merit in zip(profiles, merits, strict=True):
        as_good = (merits >= merit).all(axis=1)
        if not (as_good & (merits > merit).any(axis=1)).any():
            kept.append(profile)
    return kept
