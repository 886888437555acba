"""The demand of one episode at a time: load, popularity and places.

A :class:`DemandModel` is the scenario's demand with everything drawn that is random per episode,
flash crowds apart.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.state import Floats, Ints
from edgegym.world.compiled import World


class DemandModel(NamedTuple):
    """The demand of one episode, narrow enough to be passed between kernels."""

    width_km: float
    height_km: float
    periodic: bool
    type_family: Ints  # [Q]
    type_share_in_family: Floats  # [Q]
    family_share: Floats  # [F] before the drift
    # [n, 4] amplitude, period_s, phase in turns at x = 0, turns per km in x
    diurnal: Floats
    load_varies_in_x: bool
    drift_rank: Ints  # [F] starting rank of the members of the drift, -1 for the others
    drift_weight: Floats  # [members + 1] share of each rank in all, the first again at the end
    drift_period_s: float  # inf without a drift
    drift_phase: float  # turns
    hotspot_order: Ints  # [F] position among the members, -1 for uniform families
    hotspot_members: int
    hotspot_concentration: float
    hotspot_sigma_km: float
    hotspot_radius_km: float
    hotspot_period_s: float
    hotspot_phase: float  # turns
    flash_magnitude: float  # 0 without flash crowds
    flash_sigma_km: float


def draw_demand(world: World, generator: Generator) -> DemandModel:
    """Draw what is random in the demand of an episode.

    Parameters
    ----------
    world : World
        The compiled scenario.
    generator : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    DemandModel
        Phases given in the scenario stand; the others are uniform.
    """
    diurnal = world.diurnal.copy()
    phases = generator.random(len(diurnal))
    diurnal[:, 2] = np.where(np.isnan(diurnal[:, 2]), phases, diurnal[:, 2])
    members = np.flatnonzero(world.drift_member)
    rank = np.full(world.num_families, -1, dtype=np.int64)
    rank[members] = generator.permutation(len(members))
    exponent, drift_period_s = world.drift[0] if len(world.drift) else (0.0, np.inf)
    zipf = np.arange(1.0, len(members) + 1.0) ** -exponent
    together = world.family_base_share[members].sum()
    weight = together * zipf / zipf.sum() if len(members) else np.zeros(1)
    spot = world.hotspot[0] if len(world.hotspot) else (0.0, 0.0, 0.0, 1.0)
    flash = world.flash[0] if len(world.flash) else (0.0, 0.0, 0.0, 0.0)
    return DemandModel(
        width_km=world.width_km,
        height_km=world.height_km,
        periodic=world.periodic,
        type_family=world.type_family,
        type_share_in_family=world.type_share_in_family,
        family_share=world.family_base_share,
        diurnal=diurnal,
        load_varies_in_x=bool((diurnal[:, 3] != 0.0).any()),
        drift_rank=rank,
        drift_weight=np.append(weight, weight[0]),
        drift_period_s=float(drift_period_s),
        drift_phase=float(generator.random()),
        hotspot_order=world.hotspot_order,
        hotspot_members=int((world.hotspot_order >= 0).sum()),
        hotspot_concentration=float(spot[0]),
        hotspot_sigma_km=float(spot[1]),
        hotspot_radius_km=float(spot[2]),
        hotspot_period_s=float(spot[3]),
        hotspot_phase=float(generator.random()),
        flash_magnitude=float(flash[2]),
        flash_sigma_km=float(flash[3]),
    )


@inlined
def load_at(diurnal: Floats, time: float, x_km: float) -> float:
    """Return the load at a place relative to the base rate, flash crowds and bursts apart."""
    load = 1.0
    for swing in range(len(diurnal)):
        turns = time / diurnal[swing, 1] + diurnal[swing, 2] + diurnal[swing, 3] * x_km
        load *= 1.0 + diurnal[swing, 0] * math.sin(2.0 * math.pi * turns)
    return load


@inlined
def load_bound_at(diurnal: Floats, time: float) -> float:
    """Return a bound of the load over all places: the load itself where places are alike."""
    load = 1.0
    for swing in range(len(diurnal)):
        if diurnal[swing, 3] == 0.0:
            turns = time / diurnal[swing, 1] + diurnal[swing, 2]
            load *= 1.0 + diurnal[swing, 0] * math.sin(2.0 * math.pi * turns)
        else:
            load *= 1.0 + diurnal[swing, 0]
    return load


@helper
def write_family_shares(demand: DemandModel, time: float, shares: Floats) -> None:
    """Write the share of each family, flash crowds apart, into ``shares``, ``[F]``."""
    members = len(demand.drift_weight) - 1
    moved = members * ((time / demand.drift_period_s + demand.drift_phase) % 1.0)
    shift = int(moved)
    between = moved - shift
    for family in range(len(shares)):
        rank = demand.drift_rank[family]
        if rank < 0:
            shares[family] = demand.family_share[family]
        else:
            position = (rank + shift) % members
            low, high = demand.drift_weight[position], demand.drift_weight[position + 1]
            shares[family] = (1.0 - between) * low + between * high


@inlined
def hotspot_centre_km(demand: DemandModel, family: int, time: float) -> tuple[float, float]:
    """Return the centre of a member family's hotspot; it may lie outside the region."""
    turns = time / demand.hotspot_period_s + demand.hotspot_phase
    turns += demand.hotspot_order[family] / demand.hotspot_members
    angle = 2.0 * math.pi * turns
    x = 0.5 * demand.width_km + demand.hotspot_radius_km * math.cos(angle)
    y = 0.5 * demand.height_km + demand.hotspot_radius_km * math.sin(angle)
    return x, y
