"""What one more flow would get, and what it would cost the flows that are there.

Both are exact as long as nothing else comes, goes or fails. A new flow of S bytes delays a present
one with r bytes left by min(S, r) / R where only the link's rate R limits them: it takes from it
as much as the shorter of the two needs. With access rates the schedule is played to its end, with
the new flow and without.
"""

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.flows import (
    FLOW_STATION,
    FLOWS,
    GROUP_FLOWS,
    GROUPS,
    LINK_UP,
    NUM_GROUP_INTS,
    LinkState,
)
from edgegym.simulator.full.link import bytes_left
from edgegym.simulator.full.sharing import LinkParams, bytes_on_link, group_rate, water_level


@helper
def _play_to_the_end(
    params: LinkParams, link: LinkState, now: float, station: int, size: float, with_new: bool
) -> tuple[float, float]:
    """Return when a new flow ends, and the sum of the ends of all flows, in seconds from now."""
    groups, flows = link.num[GROUPS], link.num[FLOWS]
    own = link.group_of[station]
    if with_new and own < 0:
        own = groups
        groups += 1
    group = np.zeros((groups, NUM_GROUP_INTS), dtype=np.int64)
    for place in range(link.num[GROUPS]):
        group[place, GROUP_FLOWS] = link.group[place, GROUP_FLOWS]
    if with_new:
        group[own, GROUP_FLOWS] += 1
        flows += 1
    head = np.zeros(groups, dtype=np.int64)
    for place in range(1, groups):
        head[place] = head[place - 1] + group[place - 1, GROUP_FLOWS]
    left, filled = np.empty(flows), head.copy()
    for k in range(link.num[FLOWS]):
        flow = link.listed[k]
        place = link.group_of[link.flow[flow, FLOW_STATION]]
        left[filled[place]] = bytes_left(params, link, now, flow)
        filled[place] += 1
    if with_new:
        left[filled[own]] = size
        filled[own] += 1
    for place in range(groups):
        left[head[place] : filled[place]].sort()

    served, rate = np.zeros(groups), np.zeros(groups)
    own_s = clock_s = total_s = 0.0
    while flows > 0:
        level = water_level(params, group, groups, flows, False)
        first, wait_s = 0, np.inf
        for place in range(groups):
            if group[place, GROUP_FLOWS] > 0:
                rate[place] = group_rate(params, level, group[place, GROUP_FLOWS])
                ends_s = max(0.0, left[head[place]] - served[place]) / rate[place]
                if ends_s < wait_s:
                    first, wait_s = place, ends_s
        for place in range(groups):
            if group[place, GROUP_FLOWS] > 0:
                served[place] += wait_s * rate[place]
        clock_s += wait_s
        total_s += clock_s
        if with_new and first == own and left[head[own]] == size:
            own_s = clock_s
        head[first] += 1
        group[first, GROUP_FLOWS] -= 1
        flows -= 1
    return own_s, total_s


@helper
def forecast_flow(
    params: LinkParams, link: LinkState, now: float, station: int, size_bytes: int
) -> tuple[float, float]:
    """Return how long state would flow to a station, and the delay that it would impose, seconds.

    The delay is the sum over the flows that are there of how much later they would end. Without a
    working link nothing flows: the first number is inf, the second 0.
    """
    if link.num[LINK_UP] == 0:
        return np.inf, 0.0
    size = float(bytes_on_link(params, size_bytes))
    alone_s = size / params.bytes_per_s
    if not params.shared:
        return alone_s, 0.0
    if params.access_bytes_per_s < np.inf:
        own_s, total_s = _play_to_the_end(params, link, now, station, size, True)
        _, before_s = _play_to_the_end(params, link, now, station, size, False)
        return own_s, max(0.0, total_s - own_s - before_s)
    shared = 0.0
    for k in range(link.num[FLOWS]):
        shared += min(size, bytes_left(params, link, now, link.listed[k]))
    imposed_s = shared / params.bytes_per_s
    return alone_s + imposed_s, imposed_s


@inlined
def alone_s(params: LinkParams, size_bytes: int) -> float:
    """Return how long state would flow to a station if the link were empty."""
    rate = params.bytes_per_s
    if params.shared:
        rate = min(rate, params.access_bytes_per_s)
    return bytes_on_link(params, size_bytes) / rate
