"""How the backhaul's rate is divided among flows."""

import math
from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.flows import GROUP_FLOWS
from edgegym.simulator.state import Ints
from edgegym.world.scenario import Scenario


class LinkParams(NamedTuple):
    """What never changes about the backhaul."""

    shared: bool
    bytes_per_s: float  # of the link, or of each flow
    access_bytes_per_s: float  # most that a station receives, inf without a limit
    compression: float
    restore_bytes_per_s: float  # inf where it takes no time
    restore_slowdown: float
    layers: int
    advertise_s: float  # period of the advertised rate


def link_params(scenario: Scenario) -> LinkParams:
    """Return the constants of a scenario's backhaul.

    Parameters
    ----------
    scenario : Scenario
        Any.

    Returns
    -------
    LinkParams
        Infinite where there is no access limit, or restoring takes no time.
    """
    backhaul = scenario.backhaul
    return LinkParams(
        shared=backhaul.sharing == "shared",
        bytes_per_s=backhaul.rate_bytes_per_s,
        access_bytes_per_s=backhaul.access_bytes_per_s or math.inf,
        compression=backhaul.compression,
        restore_bytes_per_s=backhaul.restore_bytes_per_s or math.inf,
        restore_slowdown=backhaul.restore_slowdown,
        layers=backhaul.layers,
        advertise_s=scenario.fetch.advertise_s,
    )


@inlined
def bytes_on_link(params: LinkParams, size_bytes: int) -> int:
    """Return the bytes that cross the link for a piece of state."""
    if params.compression == 1.0:
        return size_bytes
    return math.ceil(size_bytes / params.compression)


@helper
def water_level(params: LinkParams, group: Ints, groups: int, flows: int, newcomer: bool) -> float:
    """Return the rate of the flows that no access rate limits, inf where all are limited.

    A group of n flows gets n times this, at most its access rate; together they get the link's
    rate unless all are limited. A newcomer is one more flow, to a station that has none.
    """
    total = flows + 1 if newcomer else flows
    level = params.bytes_per_s / total
    while params.access_bytes_per_s < np.inf:
        spare, free = params.bytes_per_s, total
        for place in range(groups):
            if group[place, GROUP_FLOWS] * level > params.access_bytes_per_s:
                spare -= params.access_bytes_per_s
                free -= group[place, GROUP_FLOWS]
        if newcomer and level > params.access_bytes_per_s:
            spare -= params.access_bytes_per_s
            free -= 1
        higher = spare / free if free > 0 else np.inf
        if higher <= level or free == 0:
            return higher
        level = higher
    return level


@inlined
def group_rate(params: LinkParams, level: float, flows: int) -> float:
    """Return the rate of each flow of a group."""
    if flows * level > params.access_bytes_per_s:
        return params.access_bytes_per_s / flows
    return level
