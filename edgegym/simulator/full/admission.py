"""When nodes and whole tiers take no more requests.

The utilisation of a node is (active + queued) / slots, that of a tier the same of all up nodes of a
profile together. What counts is its exponential average over time, u(t) = ∫ e^(−(t − s)/τ) x(s) ds
/ τ, exact for the piecewise constant x. It closes when the average exceeds ``close_above`` and
reopens when it falls below ``reopen_below``. Between two changes of x the average moves towards x
only, so the moment of the next flip is known at once and costs a comparison to look up.
"""

import math

from edgegym.simulator.columns import IN_SLOTS, WAITING
from edgegym.simulator.columns import SLOTS as WORK_SLOTS
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.routing_columns import (
    CLOSED,
    FLIP_S,
    LOAD,
    LOAD_AT_S,
    MEAN_LOAD,
    NOTED_BUSY,
    NOTED_SLOTS,
    NOTED_TIER,
    TIER_BUSY,
    TIER_NODES,
    TIER_SLOTS,
)
from edgegym.simulator.full.routing_groups import AdmissionParams, Routing
from edgegym.simulator.state import Floats


@inlined
def _is_closed(load: Floats, index: int, now: float) -> bool:
    return (load[index, CLOSED] > 0.0) != (now > load[index, FLIP_S])


@inlined
def _mean_at(load: Floats, index: int, now: float, ewma_s: float) -> float:
    fade = math.exp((load[index, LOAD_AT_S] - now) / ewma_s)
    return load[index, LOAD] + (load[index, MEAN_LOAD] - load[index, LOAD]) * fade


@helper
def _change_load(
    load: Floats,
    index: int,
    utilisation: float,
    now: float,
    ewma_s: float,
    close_above: float,
    reopen_below: float,
) -> None:
    """Take note that the utilisation is another from now on."""
    closed = _is_closed(load, index, now)
    mean = _mean_at(load, index, now, ewma_s)
    flip_s = math.inf
    if closed:
        if mean < reopen_below:
            flip_s = -math.inf
        elif utilisation < reopen_below:
            flip_s = now + ewma_s * math.log((mean - utilisation) / (reopen_below - utilisation))
    elif mean > close_above:
        flip_s = -math.inf
    elif utilisation > close_above:
        flip_s = now + ewma_s * math.log((utilisation - mean) / (utilisation - close_above))
    load[index, MEAN_LOAD] = mean
    load[index, LOAD] = utilisation
    load[index, LOAD_AT_S] = now
    load[index, CLOSED] = 1.0 if closed else 0.0
    load[index, FLIP_S] = flip_s


@inlined
def _change_tier(routing: Routing, params: AdmissionParams, tier: int, now: float) -> None:
    sums = routing.state.tier_sums
    slots = sums[tier, TIER_SLOTS]
    utilisation = sums[tier, TIER_BUSY] / slots if slots > 0 else 0.0
    _change_load(
        routing.state.tier_load,
        tier,
        utilisation,
        now,
        params.ewma_s,
        params.tier_close_above,
        params.tier_reopen_below,
    )


@helper
def note_load(routing: Routing, station: int, now: float) -> None:
    """Take note of a node's active and queued requests, slots and profile, and whether it is up.

    To be called after any of them has changed, and once for each node before the first request;
    where only requests have come or gone, :func:`note_requests` will do.
    """
    if station == routing.origin_station:
        return
    params, sums, own = (
        routing.params.admission,
        routing.state.tier_sums,
        routing.state.station_sums,
    )
    work = routing.nodes.work
    tier, busy, slots = -1, 0, 0
    if routing.up[station]:
        tier = routing.profile[station]
        busy = work[station, IN_SLOTS] + work[station, WAITING]
        slots = work[station, WORK_SLOTS]
    before = own[station, NOTED_TIER]
    if before >= 0:
        sums[before, TIER_BUSY] -= own[station, NOTED_BUSY]
        sums[before, TIER_SLOTS] -= own[station, NOTED_SLOTS]
        sums[before, TIER_NODES] -= 1
    if tier >= 0:
        sums[tier, TIER_BUSY] += busy
        sums[tier, TIER_SLOTS] += slots
        sums[tier, TIER_NODES] += 1
    own[station, NOTED_TIER] = tier
    own[station, NOTED_BUSY] = busy
    own[station, NOTED_SLOTS] = slots
    if not params.used:
        return
    if before >= 0 and before != tier:
        _change_tier(routing, params, before, now)
    if tier >= 0:
        _change_tier(routing, params, tier, now)
    _change_load(
        routing.state.station_load,
        station,
        busy / slots if slots > 0 else 0.0,
        now,
        params.ewma_s,
        params.node_close_above,
        params.node_reopen_below,
    )


@inlined
def note_requests(routing: Routing, station: int, now: float) -> None:
    """Take note of a node's active and queued requests: only admission looks at them."""
    if routing.params.admission.used:
        note_load(routing, station, now)


@inlined
def is_open(routing: Routing, station: int, now: float) -> bool:
    """Return whether a station takes requests; the origin always does."""
    if not routing.params.admission.used or station == routing.origin_station:
        return True
    if _is_closed(routing.state.station_load, station, now):
        return False
    return not _is_closed(routing.state.tier_load, routing.profile[station], now)
