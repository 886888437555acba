"""The demand model at a time: load, popularity and places, given the phases of an episode."""

import math
from typing import NamedTuple

from edgegym.jit import kernel
from edgegym.simulator.state import Floats, Ints
from edgegym.world.compiled import World


class DemandPhases(NamedTuple):
    """What is random in the demand of one episode, flash crowds apart."""

    diurnal: Floats  # [n] phase of each swing in turns
    drift_rank: Ints  # [F] starting rank of the members of the drift, -1 for other families
    drift: Floats  # [1] phase in turns
    drift_weight: Floats  # [members + 1] Zipf weight of each rank, adding up to 1; the first again
    hotspot: Floats  # [1] phase in turns


@kernel(forceinline=True)
def load_at(world: World, phases: DemandPhases, time: float) -> float:
    """Return the load relative to the base rate, flash crowds apart."""
    load = 1.0
    for swing in range(len(world.diurnal)):
        turns = time / world.diurnal[swing, 1] + phases.diurnal[swing]
        load *= 1.0 + world.diurnal[swing, 0] * math.sin(2.0 * math.pi * turns)
    return load


@kernel
def write_family_weights(world: World, phases: DemandPhases, time: float, weights: Floats) -> None:
    """Write the share of each family, flash crowds apart, into ``weights``, ``[F]``."""
    if len(world.drift) == 0:
        weights[:] = world.family_base_share
        return
    members = len(phases.drift_weight) - 1
    together = 0.0
    for family in range(world.num_families):
        if phases.drift_rank[family] >= 0:
            together += world.family_base_share[family]
    moved = members * ((time / world.drift[0, 1] + phases.drift[0]) % 1.0)
    shift = int(moved)
    between = moved - shift
    for family in range(world.num_families):
        rank = phases.drift_rank[family]
        if rank < 0:
            weights[family] = world.family_base_share[family]
        else:
            position = (rank + shift) % members
            low, high = phases.drift_weight[position], phases.drift_weight[position + 1]
            weights[family] = together * ((1.0 - between) * low + between * high)


@kernel(forceinline=True)
def hotspot_centre_km(
    world: World, phases: DemandPhases, members: int, family: int, time: float
) -> tuple[float, float]:
    """Return the centre of a member family's hotspot; it may lie outside the region."""
    turns = time / world.hotspot[0, 3] + phases.hotspot[0] + world.hotspot_order[family] / members
    angle = 2.0 * math.pi * turns
    radius = world.hotspot[0, 2]
    x = 0.5 * world.width_km + radius * math.cos(angle)
    y = 0.5 * world.height_km + radius * math.sin(angle)
    return x, y
