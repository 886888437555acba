"""Cache profiles for the prefixes and request types of a trace."""

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles import CandidateProfile, Cluster, ForestDemand, make_profiles
from edgegym.traces.blocks import vertex_names
from edgegym.traces.grouping import TypeGroups
from edgegym.traces.selection import KeptForest
from edgegym.world.hardware import Hardware


def trace_demand(forest: KeptForest, types: TypeGroups, hardware: Hardware) -> ForestDemand:
    """Return the chosen prefixes with the request types on them.

    Parameters
    ----------
    forest : KeptForest
        Vertices.
    types : TypeGroups
        Request types.
    hardware : Hardware
        Gives a token its bytes and prices what a hit saves.
    """
    above = np.where(forest.parent >= 0, forest.depth_tokens[forest.parent], 0)
    return ForestDemand(
        parent=forest.parent,
        depth_tokens=forest.depth_tokens,
        bytes=hardware.kv_bytes_per_token * (forest.depth_tokens - above),
        type_vertex=types.vertex,
        share=types.share,
        input_tokens=types.input_tokens,
        prefill=hardware.prefill,
        vertex_names=tuple(vertex_names(forest)),
    )


def trace_profiles(
    demand: ForestDemand,
    family: NDArray[np.int64],
    *,
    usable_bytes: int,
    runtime_bytes: int,
    number: int,
) -> tuple[CandidateProfile, ...]:
    """Return at most ``number`` profiles, the empty one first: for all types, and by family.

    Parameters
    ----------
    demand : ForestDemand
        What :func:`trace_demand` returned.
    family : ndarray of int64, shape [V]
        Family of each vertex, from 0.
    usable_bytes : int
        Memory for profile and running sequences together.
    runtime_bytes : int
        Memory of one running sequence.
    number : int
        Most profiles.
    """
    clusters = [
        Cluster(f"family_{k + 1}", tuple(np.flatnonzero(family == k).tolist()))
        for k in range(int(family.max(initial=-1)) + 1)
    ]
    return make_profiles(
        demand,
        usable_bytes=usable_bytes,
        runtime_bytes=runtime_bytes,
        number=number,
        clusters=clusters,
    )
