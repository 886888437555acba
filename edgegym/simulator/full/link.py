"""The backhaul: one link that all moves, refreshes and fetches share, or a rate for each of them.

On a shared link the rates are max-min fair: all flows get the same, but the flows to one station
together never more than its access rate; what they leave goes to the others. Rates change only when
a flow comes or goes, and in between every flow of a group receives the same, so a flow is kept as
the number of bytes that its group will have served when it ends: nothing is subtracted step by
step, and a change costs the same however many flows there are. With access rates it costs a pass
over the stations that receive something.

A flow's end is known to the last bits of the clock: an error is made once per flow, when its end is
rounded to a time, and never adds up over its life.
"""

import math

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.accounting import ticks
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.flows import (
    ABANDONED_BYTES,
    ADVERTISED,
    ADVERTISED_INDEX,
    BUSY_TICKS,
    CARRIED_BYTES,
    CHANGED_S,
    DOWN_S,
    FIRST_GROUP,
    FLOW_BEGIN_S,
    FLOW_BYTES,
    FLOW_END_S,
    FLOW_FINISH,
    FLOW_ITEM,
    FLOW_KIND,
    FLOW_SEQUENCE,
    FLOW_SOURCE,
    FLOW_STATION,
    FLOW_TICKS,
    FLOWS,
    FREE_FLOW,
    GROUP_ENDED,
    GROUP_FLOWS,
    GROUP_RATE,
    GROUP_ROOT,
    GROUP_SERVED,
    GROUP_STATION,
    GROUPS,
    LINK_ACCRUED_TICK,
    LINK_UP,
    NO_FLOW,
    NUM_FLOW_INTS,
    NUM_FLOW_REALS,
    NUM_FLOWS,
    NUM_GROUP_INTS,
    NUM_GROUP_REALS,
    NUM_LINK_INTS,
    NUM_LINK_REALS,
    LinkState,
    free_flow,
    meld,
    new_flow,
    without_flow,
)
from edgegym.simulator.full.sharing import LinkParams, bytes_on_link, group_rate, water_level

_FIRST_ROOM = 64


def allocate_link(params: LinkParams, stations: int, batch: int = 1) -> LinkState:
    """Return the backhaul of B fleets at time 0, without flows.

    Parameters
    ----------
    params : LinkParams
        Says whether stations need groups of their own.
    stations : int
        Stations of a fleet, M.
    batch : int
        Number of fleets, B.

    Returns
    -------
    LinkState
        With a leading axis of fleets.
    """
    groups = stations if params.access_bytes_per_s < math.inf else 1
    state = LinkState(
        num=np.zeros((batch, NUM_LINK_INTS), dtype=np.int64),
        real=np.zeros((batch, NUM_LINK_REALS)),
        flow=np.full((batch, _FIRST_ROOM, NUM_FLOW_INTS), NO_FLOW, dtype=np.int64),
        flow_real=np.zeros((batch, _FIRST_ROOM, NUM_FLOW_REALS)),
        listed=np.zeros((batch, _FIRST_ROOM), dtype=np.int64),
        group=np.full((batch, groups, NUM_GROUP_INTS), NO_FLOW, dtype=np.int64),
        group_real=np.zeros((batch, groups, NUM_GROUP_REALS)),
        group_of=np.full((batch, groups), -1, dtype=np.int64),
    )
    state.num[:, FREE_FLOW] = NO_FLOW
    state.num[:, NUM_FLOWS] = _FIRST_ROOM
    state.num[:, LINK_UP] = 1
    state.real[:, FLOW_END_S] = np.inf
    state.real[:, ADVERTISED] = min(params.bytes_per_s, params.access_bytes_per_s)
    return state


def with_more_flows(state: LinkState) -> LinkState:
    """Return the backhaul with room for twice as many flows.

    Parameters
    ----------
    state : LinkState
        Of B fleets; arrays that don't grow are shared with the result.

    Returns
    -------
    LinkState
        The same content.
    """
    room = state.listed.shape[1]
    num = state.num.copy()
    num[:, NUM_FLOWS] = 2 * room
    return state._replace(
        num=num,
        flow=_twice(state.flow, NO_FLOW),
        flow_real=_twice(state.flow_real, 0),
        listed=_twice(state.listed, 0),
    )


def _twice(array: NDArray[np.generic], fill: int) -> NDArray[np.generic]:
    return np.concatenate([array, np.full_like(array, fill)], axis=1)


@helper
def newcomer_rate(params: LinkParams, link: LinkState) -> float:
    """Return the rate that a flow to a station without flows would get now."""
    if link.num[LINK_UP] == 0:
        return 0.0
    if not params.shared:
        return params.bytes_per_s
    level = water_level(params, link.group, link.num[GROUPS], link.num[FLOWS], True)
    return min(level, params.access_bytes_per_s)


@inlined
def _advertise(params: LinkParams, link: LinkState, now: float, ending: bool) -> None:
    """Keep what was advertised last, before the flows change: ends come before the advertising."""
    index = int(now / params.advertise_s)
    if ending and index * params.advertise_s == now:
        index -= 1
    if index > link.num[ADVERTISED_INDEX]:
        link.num[ADVERTISED_INDEX] = index
        link.real[ADVERTISED] = newcomer_rate(params, link)


@inlined
def advertised_bytes_per_s(params: LinkParams, link: LinkState, now: float) -> float:
    """Return the rate for one more flow as it was at the last multiple of the period."""
    if int(now / params.advertise_s) > link.num[ADVERTISED_INDEX]:
        return newcomer_rate(params, link)
    return link.real[ADVERTISED]


@inlined
def accrue_link(link: LinkState, now: float) -> None:
    """Count the time that the link has been busy; call before its flows change."""
    tick = ticks(now)
    if link.num[LINK_UP] == 1 and link.num[FLOWS] > 0:
        elapsed = tick - link.num[LINK_ACCRUED_TICK]
        link.num[BUSY_TICKS] += elapsed
        link.num[FLOW_TICKS] += elapsed * link.num[FLOWS]
    link.num[LINK_ACCRUED_TICK] = tick


@helper
def _catch_up(params: LinkParams, link: LinkState, now: float) -> None:
    """Serve all groups at their present rates until now."""
    accrue_link(link, now)
    elapsed_s = now - link.real[CHANGED_S]
    link.real[CHANGED_S] = now
    if link.num[LINK_UP] == 0:
        link.real[DOWN_S] += elapsed_s
    elif params.shared:
        for place in range(link.num[GROUPS]):
            link.group_real[place, GROUP_SERVED] += elapsed_s * link.group_real[place, GROUP_RATE]


@helper
def _set_rates(params: LinkParams, link: LinkState) -> None:
    """Set the rates that hold from now on, and which flow ends first, and when."""
    first, earliest = NO_FLOW, np.inf
    groups, flows, now = link.num[GROUPS], link.num[FLOWS], link.real[CHANGED_S]
    if link.num[LINK_UP] == 0 or flows == 0:
        link.real[FLOW_END_S] = earliest
        return
    level = params.bytes_per_s
    if params.shared:
        level = water_level(params, link.group, groups, flows, False)
    for place in range(groups):
        root = link.group[place, GROUP_ROOT]
        finish = link.flow_real[root, FLOW_FINISH]
        if params.shared:
            rate = group_rate(params, level, link.group[place, GROUP_FLOWS])
            link.group_real[place, GROUP_RATE] = rate
            end = now
            if finish > link.group_real[place, GROUP_ENDED]:
                end += max(0.0, finish - link.group_real[place, GROUP_SERVED]) / rate
        else:
            end = finish + link.real[DOWN_S]
        earlier = end < earliest or (
            end == earliest and link.flow[root, FLOW_SEQUENCE] < link.flow[first, FLOW_SEQUENCE]
        )
        if earlier:
            first, earliest = root, end
            link.num[FIRST_GROUP] = place
    link.real[FLOW_END_S] = earliest


@inlined
def _group_of(params: LinkParams, station: int) -> int:
    return station if params.access_bytes_per_s < np.inf else 0


@helper
def _enter(params: LinkParams, link: LinkState, flow: int) -> None:
    """Put a flow into its group."""
    group = _group_of(params, link.flow[flow, FLOW_STATION])
    place = link.group_of[group]
    if place < 0:
        place = link.num[GROUPS]
        link.num[GROUPS] = place + 1
        link.group_of[group] = place
        link.group[place, GROUP_STATION] = group
        link.group[place, GROUP_ROOT] = NO_FLOW
        link.group[place, GROUP_FLOWS] = 0
        link.group_real[place, GROUP_SERVED] = 0.0
        link.group_real[place, GROUP_ENDED] = 0.0
    if params.shared:
        link.flow_real[flow, FLOW_FINISH] += link.group_real[place, GROUP_SERVED]
    link.group[place, GROUP_FLOWS] += 1
    link.group[place, GROUP_ROOT] = meld(link, link.group[place, GROUP_ROOT], flow)


@helper
def _leave(params: LinkParams, link: LinkState, flow: int) -> None:
    """Take a flow out of its group and back to the pool."""
    group = _group_of(params, link.flow[flow, FLOW_STATION])
    place = link.group_of[group]
    link.group[place, GROUP_FLOWS] -= 1
    link.group[place, GROUP_ROOT] = without_flow(link, link.group[place, GROUP_ROOT], flow)
    if link.group[place, GROUP_FLOWS] == 0:
        last = link.num[GROUPS] - 1
        link.num[GROUPS] = last
        link.group_of[link.group[last, GROUP_STATION]] = place
        link.group_of[group] = -1
        for column in range(NUM_GROUP_INTS):
            link.group[place, column] = link.group[last, column]
        for column in range(NUM_GROUP_REALS):
            link.group_real[place, column] = link.group_real[last, column]
    free_flow(link, flow)


@helper
def add_flow(
    params: LinkParams,
    link: LinkState,
    now: float,
    kind: int,
    item: int,
    source: int,
    station: int,
    size_bytes: int,
) -> int:
    """Let state flow to a station and return the flow; there is room for it.

    ``size_bytes`` is the size of the state, of at least one byte; the link carries it compressed.
    """
    _advertise(params, link, now, False)
    _catch_up(params, link, now)
    flow = new_flow(link)
    size = bytes_on_link(params, size_bytes)
    link.flow[flow, FLOW_KIND] = kind
    link.flow[flow, FLOW_STATION] = station
    link.flow[flow, FLOW_SOURCE] = source
    link.flow[flow, FLOW_ITEM] = item
    link.flow[flow, FLOW_BYTES] = size
    link.flow_real[flow, FLOW_BEGIN_S] = now
    if params.shared:
        link.flow_real[flow, FLOW_FINISH] = float(size)
    else:
        link.flow_real[flow, FLOW_FINISH] = now - link.real[DOWN_S] + size / params.bytes_per_s
    _enter(params, link, flow)
    _set_rates(params, link)
    return flow


@inlined
def next_flow_end_s(link: LinkState) -> float:
    """Return when the first flow ends, inf if none does while the link is as it is."""
    return link.real[FLOW_END_S]


@helper
def pop_flow(params: LinkParams, link: LinkState, now: float) -> int:
    """Take the flow out that ends now, ``next_flow_end_s``, and return it.

    Flows that end together come one by one, in the order in which they began.
    What the pool says of the flow stays readable until the next one is added.
    """
    _advertise(params, link, now, True)
    _catch_up(params, link, now)
    place = link.num[FIRST_GROUP]
    first = link.group[place, GROUP_ROOT]
    link.group_real[place, GROUP_ENDED] = link.flow_real[first, FLOW_FINISH]
    link.num[CARRIED_BYTES + link.flow[first, FLOW_KIND]] += link.flow[first, FLOW_BYTES]
    _leave(params, link, first)
    _set_rates(params, link)
    return first


@helper
def bytes_left(params: LinkParams, link: LinkState, now: float, flow: int) -> float:
    """Return the bytes that a flow still has to receive."""
    elapsed_s = now - link.real[CHANGED_S] if link.num[LINK_UP] == 1 else 0.0
    finish = link.flow_real[flow, FLOW_FINISH]
    if params.shared:
        place = link.group_of[_group_of(params, link.flow[flow, FLOW_STATION])]
        rate = link.group_real[place, GROUP_RATE]
        left = finish - (link.group_real[place, GROUP_SERVED] + elapsed_s * rate)
    else:
        left = (finish + link.real[DOWN_S] - link.real[CHANGED_S] - elapsed_s) * params.bytes_per_s
    return min(max(0.0, left), float(link.flow[flow, FLOW_BYTES]))


@helper
def cancel_flow(params: LinkParams, link: LinkState, now: float, flow: int) -> None:
    """Take a flow out that has not ended; what has arrived of it is lost."""
    carried = link.flow[flow, FLOW_BYTES] - math.ceil(bytes_left(params, link, now, flow))
    _advertise(params, link, now, False)
    _catch_up(params, link, now)
    link.num[ABANDONED_BYTES] += carried
    _leave(params, link, flow)
    _set_rates(params, link)


@helper
def set_link_up(params: LinkParams, link: LinkState, now: float, up: bool) -> None:
    """Let all flows stand still, or go on with what they still have to receive."""
    _advertise(params, link, now, False)
    _catch_up(params, link, now)
    link.num[LINK_UP] = 1 if up else 0
    _set_rates(params, link)
