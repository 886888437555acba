"""From the random draws of a block to its requests."""

from typing import NamedTuple

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.bursts import Bursts
from edgegym.simulator.compiling import borrow, inlined
from edgegym.simulator.intensity import (
    DemandModel,
    hotspot_centre_km,
    load_at,
    load_bound_at,
    write_family_shares,
)
from edgegym.simulator.lane import Requests
from edgegym.simulator.state import Floats, Ints

# Columns of a table of flash crowds.
FLASH_START_S = 0
FLASH_END_S = 1
FLASH_X_KM = 2
FLASH_Y_KM = 3
FLASH_FAMILY = 4


class Block(NamedTuple):
    """Span and peak of a block."""

    start_s: float
    length_s: float
    peak: float  # rate of candidates over the base rate


class Draws(NamedTuple):
    """Random numbers for the K candidates of a block: ``[K]`` or, where unused, empty.

    Separate arrays, because one of all draws would be large enough for the allocator to map fresh
    pages for every block. What is needed after the candidates have been thinned is moved forward,
    to the places of those that are left.
    """

    spacings: Floats  # [K + 1] exponential; unused for a trace
    thinning: Floats  # uniform; unused where the rate is constant
    choice: Floats  # uniform, picks family and type
    x: Floats  # uniform
    y: Floats  # uniform
    background: Floats  # uniform, tells hotspot from background; unused without hotspots
    normal_x: Floats  # used on a torus with Gaussian places
    normal_y: Floats
    marks: Floats  # unit-mean service marks; unused where they are 1
    lengths: Floats  # uniform, give the output lengths; unused where those are fixed
    recorded: Ints  # request of the file, -1 for one of a flash crowd; unused without a trace
    spots: Floats
    """``[3, K]`` zeros on a plain rectangle with Gaussian places, else empty. Receives centre and
    deviation of the requests whose place is a truncated Gaussian; their x and y stay uniform for
    the caller to transform."""


@inlined
def _pick(weights: Floats, draw: float) -> tuple[int, float]:
    """Return the index that a draw below the sum falls on, and what is left of it as a uniform."""
    last = len(weights) - 1
    for index in range(last):
        if draw < weights[index]:
            return index, draw / weights[index]
        draw -= weights[index]
    return last, min(draw / weights[last], 1.0) if weights[last] > 0.0 else 0.0


@inlined
def _wrapped(position_km: float, period_km: float) -> float:
    wrapped = position_km % period_km
    return wrapped if wrapped < period_km else 0.0


@inlined
def _pick_type(demand: DemandModel, family: int, draw: float) -> int:
    chosen = -1
    for request_type in range(len(demand.type_family)):
        if demand.type_family[request_type] == family:
            chosen = request_type
            draw -= demand.type_share_in_family[request_type]
            if draw < 0.0:
                break
    return chosen


@inlined
def _write_weights(shares: Floats, bursts: Bursts, piece: int, weights: Floats) -> float:
    """Write the rate of each family over the base rate, and return their sum."""
    total = 0.0
    for family in range(len(shares)):
        weights[family] = shares[family] * bursts.level[piece, family]
        total += weights[family]
    return total


@inlined
def _flash_at(flashes: Floats, time: float) -> int:
    """Return the last crowd at a time, -1 when there is none."""
    found = -1
    for flash in range(len(flashes)):
        if flashes[flash, FLASH_START_S] <= time < flashes[flash, FLASH_END_S]:
            found = flash
    return found


@inlined
def _background_spot(
    demand: DemandModel, draws: Draws, candidate: int, family: int, time: float
) -> tuple[float, float, float]:
    """Return centre and deviation of a request's place; deviation 0 where it is uniform."""
    if (
        demand.hotspot_order[family] >= 0
        and draws.background[candidate] < demand.hotspot_concentration
    ):
        centre_x, centre_y = hotspot_centre_km(demand, family, time)
        return centre_x, centre_y, demand.hotspot_sigma_km
    return 0.0, 0.0, 0.0


@inlined
def _write_request(
    demand: DemandModel,
    draws: Draws,
    requests: Requests,
    candidate: int,
    count: int,
    time: float,
    request_type: int,
    spot: tuple[float, float, float],
) -> None:
    centre_x, centre_y, sigma = spot
    x = draws.x[candidate] * demand.width_km
    y = draws.y[candidate] * demand.height_km
    if sigma > 0.0:
        if demand.periodic:
            x = _wrapped(centre_x + sigma * draws.normal_x[candidate], demand.width_km)
            y = _wrapped(centre_y + sigma * draws.normal_y[candidate], demand.height_km)
        else:
            draws.spots[0, count] = centre_x
            draws.spots[1, count] = centre_y
            draws.spots[2, count] = sigma
    requests.time_s[count] = time
    requests.type[count] = request_type
    requests.x_km[count] = x
    requests.y_km[count] = y
    requests.mark[count] = draws.marks[candidate] if len(draws.marks) > 0 else 1.0
    if len(draws.lengths) > 0:
        draws.lengths[count] = draws.lengths[candidate]


@kernel
def shape_block(
    demand: DemandModel,
    block: Block,
    flashes: Floats,
    bursts: Bursts,
    draws: Draws,
    requests: Requests,
) -> int:
    """Turn the draws of a block into requests; return how many there are.

    Candidates arrive at the block's largest rate (arrival times by normalised exponential spacings,
    which are sorted by construction) and are thinned to the rate at their time. Where that depends
    on the place too, the rate at the busiest place counts here, and ``draws.thinning`` receives
    what :func:`thin_by_place` compares with the load at the place.
    """
    demand, flashes, draws = borrow(demand), borrow(flashes), borrow(draws)
    requests, bursts = borrow(requests), borrow(bursts)
    candidates = len(draws.spacings) - 1
    spacings = 0.0
    for candidate in range(candidates + 1):
        spacings += draws.spacings[candidate]
    scale = block.length_s / spacings
    drifts, bursty = demand.drift_period_s < np.inf, len(bursts.start_s) > 0
    shares = np.empty(len(demand.family_share))
    write_family_shares(demand, block.start_s, shares)
    weights, total, piece = shares, 1.0, 0
    if bursty:
        weights = np.empty(len(shares))
        total = _write_weights(shares, bursts, 0, weights)
    elapsed = 0.0
    count = 0
    for candidate in range(candidates):
        elapsed += draws.spacings[candidate]
        time = block.start_s + elapsed * scale
        if bursty:
            before = piece
            while piece + 1 < len(bursts.start_s) and time >= bursts.start_s[piece + 1]:
                piece += 1
            if drifts:
                write_family_shares(demand, time, shares)
            if drifts or piece != before:
                total = _write_weights(shares, bursts, piece, weights)
        level, bound = -1.0, total
        if len(draws.thinning) > 0:
            bound = load_bound_at(demand.diurnal, time) * total
            level = draws.thinning[candidate] * block.peak - bound
        draw = draws.choice[candidate]
        family, spot = -1, (0.0, 0.0, 0.0)
        if level < 0.0:
            if drifts and not bursty:
                write_family_shares(demand, time, shares)
            family, draw = _pick(weights, draw * total)
            spot = _background_spot(demand, draws, candidate, family, time)
            if demand.load_varies_in_x:
                draws.thinning[count] = draws.thinning[candidate] * block.peak / bound
        elif level < demand.flash_magnitude:
            flash = _flash_at(flashes, time)
            if flash >= 0:
                family = int(flashes[flash, FLASH_FAMILY])
                spot = (
                    flashes[flash, FLASH_X_KM],
                    flashes[flash, FLASH_Y_KM],
                    demand.flash_sigma_km,
                )
                if demand.load_varies_in_x:
                    draws.thinning[count] = -1.0
        if family < 0:
            continue
        request_type = _pick_type(demand, family, draw)
        _write_request(demand, draws, requests, candidate, count, time, request_type, spot)
        count += 1
    return count


@kernel
def shape_replay(
    demand: DemandModel,
    peak: float,
    flashes: Floats,
    bursts: Bursts,
    times: Floats,
    types: Ints,
    draws: Draws,
    requests: Requests,
) -> int:
    """Turn recorded requests and those of flash crowds into requests; return how many there are.

    Recorded requests come at ``peak`` times the base rate and are thinned by load, bursts, and the
    popularity of their family over that in the file.

    Parameters
    ----------
    demand : DemandModel
        The episode's demand.
    peak : float
        Bound of what the recorded requests are thinned by.
    flashes : ndarray
        ``[n, 5]`` flash crowds.
    bursts : Bursts
        Of the block.
    times : ndarray
        ``[K]`` arrivals, in order.
    types : ndarray of int
        ``[K]`` types of recorded requests, -1 for those of flash crowds.
    draws : Draws
        For the K candidates.
    requests : Requests
        Receives them.
    """
    demand, flashes, draws = borrow(demand), borrow(flashes), borrow(draws)
    requests, bursts = borrow(requests), borrow(bursts)
    drifts, bursty = demand.drift_period_s < np.inf, len(bursts.start_s) > 0
    shares = np.empty(len(demand.family_share))
    write_family_shares(demand, 0.0, shares)
    piece = 0
    count = 0
    for candidate in range(len(times)):
        time, request_type = times[candidate], types[candidate]
        if request_type < 0:
            flash = _flash_at(flashes, time)
            if flash < 0:
                continue
            family = int(flashes[flash, FLASH_FAMILY])
            request_type = _pick_type(demand, family, draws.choice[candidate])
            spot = (flashes[flash, FLASH_X_KM], flashes[flash, FLASH_Y_KM], demand.flash_sigma_km)
            if demand.load_varies_in_x:
                draws.thinning[count] = -1.0
        else:
            family = demand.type_family[request_type]
            if len(draws.thinning) > 0:
                bound = load_bound_at(demand.diurnal, time)
                if drifts:
                    write_family_shares(demand, time, shares)
                    bound *= shares[family] / demand.family_share[family]
                if bursty:
                    while piece + 1 < len(bursts.start_s) and time >= bursts.start_s[piece + 1]:
                        piece += 1
                    bound *= bursts.level[piece, family]
                level = draws.thinning[candidate] * peak
                if level >= bound:
                    continue
                if demand.load_varies_in_x:
                    draws.thinning[count] = level / bound
            spot = _background_spot(demand, draws, candidate, family, time)
        draws.recorded[count] = draws.recorded[candidate]
        _write_request(demand, draws, requests, candidate, count, time, request_type, spot)
        count += 1
    return count


@kernel
def thin_by_place(demand: DemandModel, draws: Draws, requests: Requests, count: int) -> int:
    """Thin requests to the load at their place; return how many are left.

    Parameters
    ----------
    demand : DemandModel
        The episode's demand.
    draws : Draws
        ``draws.thinning`` has a uniform to compare with load over bound, or -1 for requests that
        stay in any case.
    requests : Requests
        Those of the block, with their final places; changed in place.
    count : int
        How many there are.
    """
    demand, draws, requests = borrow(demand), borrow(draws), borrow(requests)
    left = 0
    for at in range(count):
        time, x = requests.time_s[at], requests.x_km[at]
        bound = load_bound_at(demand.diurnal, time)
        if draws.thinning[at] * bound >= load_at(demand.diurnal, time, x):
            continue
        requests.time_s[left] = time
        requests.type[left] = requests.type[at]
        requests.x_km[left] = x
        requests.y_km[left] = requests.y_km[at]
        requests.mark[left] = requests.mark[at]
        if len(draws.lengths) > 0:
            draws.lengths[left] = draws.lengths[at]
        if len(draws.recorded) > 0:
            draws.recorded[left] = draws.recorded[at]
        left += 1
    return left
