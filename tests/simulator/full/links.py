"""Schedules of flows: played on the link under test, and in exact fractions from the definition."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.compiling import lend
from edgegym.simulator.full.flows import FETCH, FLOW_ITEM, NO_FLOW, has_flow_room
from edgegym.simulator.full.forecast import forecast_flow
from edgegym.simulator.full.link import (
    accrue_link,
    add_flow,
    allocate_link,
    cancel_flow,
    extend_flow,
    next_flow_end_s,
    pop_flow,
    set_link_up,
    with_more_flows,
)
from edgegym.simulator.full.sharing import LinkParams

ADD, CANCEL, DOWN, UP, PEEK, EXTEND = range(6)


def params(rate=100.0, *, shared=True, access=math.inf, compression=1.0, **others: Any):
    """Return a link's constants."""
    return LinkParams(
        shared=shared,
        bytes_per_s=rate,
        access_bytes_per_s=access,
        compression=compression,
        restore_bytes_per_s=others.get("restore", math.inf),
        restore_slowdown=1.0,
        layers=others.get("layers", 1),
        advertise_s=others.get("advertise_s", 1.0),
    )


def one_of(state, b=0):
    """Return the arrays of one fleet."""
    return type(state)(*(array[b] for array in state))


@kernel
def play_kernel(link_params, state, times, codes, numbers, ends, order, peeks):
    """Play a schedule; write when each flow ends, in which order, and what forecasts say."""
    link = lend(state)
    flows, ended = np.full(len(times), NO_FLOW), 0
    for k in range(len(times) + 1):
        limit = times[k] if k < len(times) else np.inf
        while next_flow_end_s(link) <= limit and next_flow_end_s(link) < np.inf:
            now = next_flow_end_s(link)
            item = link.flow[pop_flow(link_params, link, now), FLOW_ITEM]
            ends[item], order[ended] = now, item
            flows[item] = NO_FLOW
            ended += 1
        if k == len(times):
            break
        code, one, other = codes[k], numbers[k, 0], numbers[k, 1]
        if code == ADD:
            assert has_flow_room(link, 1)
            flows[k] = add_flow(link_params, link, limit, FETCH, k, 0, one, other)
        elif code == CANCEL and flows[one] != NO_FLOW:
            cancel_flow(link_params, link, limit, flows[one])
            flows[one] = NO_FLOW
        elif code == EXTEND and flows[one] != NO_FLOW:
            extend_flow(link_params, link, limit, flows[one], other)
        elif code in (DOWN, UP):
            set_link_up(link_params, link, limit, code == UP)
        elif code == PEEK:
            peeks[k, 0], peeks[k, 1] = forecast_flow(link_params, link, limit, one, other)
    if ended > 0:
        accrue_link(link, ends[order[ended - 1]])
    return ended


@dataclass
class Played:
    """What came of a schedule."""

    ends: np.ndarray  # [n] nan for what is no flow or did not end
    order: np.ndarray  # flows in the order in which they ended
    peeks: np.ndarray  # [n, 2]
    link: Any


def play(link_params, schedule, stations=4) -> Played:
    """Play (time, code, number, number) on the link under test."""
    state = allocate_link(link_params, stations)
    while state.listed.shape[1] < len(schedule):
        state = with_more_flows(state)
    link, count = one_of(state), len(schedule)
    times = np.array([float(row[0]) for row in schedule])
    codes = np.array([row[1] for row in schedule], dtype=np.int64)
    numbers = np.array([row[2:] for row in schedule], dtype=np.int64).reshape(count, 2)
    ends, order = np.full(count, np.nan), np.full(count, -1)
    peeks = np.full((count, 2), np.nan)
    ended = play_kernel(link_params, link, times, codes, numbers, ends, order, peeks)
    return Played(ends, order[:ended], peeks, link)


def fair_rates(rate, access, stations):
    """Return max-min fair rates by progressive filling: raise all that are not yet limited.

    ``stations`` has the station of each flow; numbers are exact.
    """
    rates = [Fraction(0)] * len(stations)
    rising = set(range(len(stations)))
    while rising:
        steps = [(rate - sum(rates)) / len(rising)]
        if access is not None:
            for station in {stations[k] for k in rising}:
                same = [k for k in range(len(stations)) if stations[k] == station]
                room = access - sum(rates[k] for k in same)
                steps.append(room / sum(k in rising for k in same))
        step = min(steps)
        for k in rising:
            rates[k] += step
        if step == steps[0]:
            break
        full = {
            station
            for station in set(stations)
            if sum(rates[k] for k in range(len(stations)) if stations[k] == station) == access
        }
        rising -= {k for k in rising if stations[k] in full}
    return rates


def exact_ends(link_params, schedule):
    """Return when flows end, as {index: fraction}, straight from the definition."""
    rate = Fraction(link_params.bytes_per_s)
    limited = link_params.access_bytes_per_s < math.inf
    access = Fraction(link_params.access_bytes_per_s) if limited else None
    left: dict[int, Fraction] = {}
    stations: dict[int, int] = {}
    ends: dict[int, Fraction] = {}
    clock, up = Fraction(0), True

    def run(until):
        nonlocal clock
        while left and up:
            flows = list(left)
            if link_params.shared:
                rates = fair_rates(rate, access, [stations[k] for k in flows])
            else:
                rates = [rate] * len(flows)
            step = min(left[k] / r for k, r in zip(flows, rates, strict=True))
            if until is not None and clock + step > until:
                step = until - clock
            for k, r in zip(flows, rates, strict=True):
                left[k] -= r * step
            clock += step
            for k in flows:
                if left[k] == 0:
                    ends[k] = clock
                    del left[k]
            if clock == until:
                break
        if until is not None:
            clock = until

    for k, (time, code, one, other) in enumerate(schedule):
        run(Fraction(time))
        if code == ADD:
            left[k], stations[k] = Fraction(bytes_on(link_params, other)), one
        elif code == CANCEL:
            left.pop(one, None)
        elif code == EXTEND and one in left:
            left[one] += bytes_on(link_params, other)
        elif code in (DOWN, UP):
            up = code == UP
    run(None)
    return ends


def bytes_on(link_params, size):
    """Return the bytes on the link, from the definition."""
    return math.ceil(Fraction(size) / Fraction(link_params.compression))
