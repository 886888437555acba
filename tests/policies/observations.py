"""Observations written by hand, in physical units, through the layout."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.interface.layout import ObservationLayout
from edgegym.world import Scenario


def make_observation(
    scenario: Scenario,
    profile: ArrayLike,
    *,
    receiving: ArrayLike = (),
    down: ArrayLike = (),
    bucket_fill: float = 1.0,
    near_demand_per_s: ArrayLike | None = None,
    near_holders: ArrayLike | None = None,
    family_rates_per_s: ArrayLike | None = None,
) -> NDArray[np.float32]:
    """Return the observation of a fleet in which each node holds a profile.

    ``receiving`` and ``down`` list nodes; ``near_holders`` ``[N, S]`` is the weighted share of the
    nodes around that hold each profile; demands are the long-run means unless given.
    """
    world = scenario.compile()
    layout = ObservationLayout.from_scenario(scenario)
    held = np.asarray(profile, dtype=np.int64)
    nodes = len(held)
    up = np.ones(nodes, dtype=bool)
    up[np.asarray(down, dtype=np.int64)] = False
    long_run = world.mean_rate_per_s * world.family_share
    rates = long_run if family_rates_per_s is None else np.asarray(family_rates_per_s)
    shares = np.bincount(held[up], minlength=layout.num_profiles) / max(up.sum(), 1)
    near = np.tile(rates / nodes, (nodes, 1)) if near_demand_per_s is None else near_demand_per_s
    around = np.tile(shares, (nodes, 1)) if near_holders is None else np.asarray(near_holders)
    receives = np.zeros(nodes)
    receives[np.asarray(receiving, dtype=np.int64)] = 0.5
    level = bucket_fill * world.burst_bytes
    with np.errstate(divide="ignore", invalid="ignore"):
        price = np.where(world.move_bytes == 0, 0.0, world.move_bytes / level)[held]
    physical: dict[str, Any] = {
        "profile": np.eye(layout.num_profiles)[held],
        "backlog": np.full((nodes, 1), 0.4),
        "receiving": receives[:, None],
        "up": up[:, None],
        "price": price,
        "demand": near,
        "near_demand": near,
        "near_capacity": around * world.slots,
        "near_backlog": np.full((nodes, 1), 0.4),
        "family_demand": rates / world.mean_rate_per_s,
        "profile_share": shares,
        "bucket": [bucket_fill],
        "load": [0.4],
    }
    observation = np.zeros(layout.size, dtype=np.float32)
    for feature in layout.features:
        value = np.asarray(physical[feature.name], dtype=np.float64)
        if feature.scale is not None:
            finite = np.where(np.isinf(value), 0.0, value)
            value = np.where(np.isinf(value), 1.0, finite / (finite + feature.scale))
        if feature.scope == "node":
            layout.node_block(observation)[:nodes, feature.columns] = value
        else:
            layout.global_block(observation)[feature.columns] = value
    return observation
