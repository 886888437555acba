"""The requests of an episode: a function of scenario and seed alone.

Time is cut into fixed blocks, and every block is made from counter-based generators keyed by
(seed, stream name) with the block number in the counter. So no action, slicing of time or horizon
can change a request, any block can be made again, and a stream of any length needs the memory of
one block.

Candidates arrive at the block's largest rate (arrival times by normalised exponential spacings,
which are sorted by construction) and are thinned to the rate at their time.
"""

import zlib
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, Philox, SeedSequence

from edgegym.jit import kernel
from edgegym.simulator.columns import NEXT_BLOCK, NEXT_REQUEST, NUM_REQUESTS
from edgegym.simulator.compiling import borrow, inlined
from edgegym.simulator.intensity import (
    DemandModel,
    draw_demand,
    hotspot_centre_km,
    load_at,
    write_family_shares,
)
from edgegym.simulator.lane import Requests, requests_of
from edgegym.simulator.service import EXPONENTIAL, LOGNORMAL
from edgegym.simulator.state import FleetState, Floats, with_block_capacity
from edgegym.world.compiled import World

CANDIDATES_PER_BLOCK = 4096
USUAL_BLOCK_CAPACITY = CANDIDATES_PER_BLOCK + 6 * 64
"""Six deviations beyond the mean: a larger block is possible, and gets longer arrays."""

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
    pages for every block.
    """

    spacings: Floats  # [K + 1] exponential
    thinning: Floats  # uniform; unused where the rate is constant
    choice: Floats  # uniform, picks family and type
    x: Floats  # uniform
    y: Floats  # uniform
    background: Floats  # uniform, tells hotspot from background; unused without hotspots
    normal_x: Floats  # used on a torus with Gaussian places
    normal_y: Floats
    marks: Floats  # unit-mean service marks; unused where they are 1
    spots: Floats
    """``[3, K]`` zeros on a plain rectangle with Gaussian places, else empty. Receives centre and
    deviation of the requests whose place is a truncated Gaussian; their x and y stay uniform for
    the caller to transform."""


def _sequence(seed: int, name: str) -> SeedSequence:
    return SeedSequence([seed, zlib.crc32(name.encode())])


def stream_generator(seed: int, name: str) -> Generator:
    """Return the generator of a named stream that is drawn once per episode.

    Parameters
    ----------
    seed : int
        Seed of the episode.
    name : str
        Name of the stream.

    Returns
    -------
    numpy.random.Generator
        Independent between names and seeds.
    """
    return Generator(Philox(_sequence(seed, name)))


class _BlockStream:
    """A named stream cut into numbered blocks."""

    def __init__(self, seed: int, name: str) -> None:
        self._key = _sequence(seed, name).generate_state(2, np.uint64)

    def generator(self, block: int) -> Generator:
        return Generator(Philox(key=self._key, counter=[0, 0, block, 0]))


@inlined
def _pick(weights: Floats, draw: float) -> tuple[int, float]:
    """Return the index that a uniform draw falls on, and what is left of the draw as a uniform."""
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


@kernel
def shape_block(
    demand: DemandModel, block: Block, flashes: Floats, draws: Draws, requests: Requests
) -> int:
    """Turn the draws of a block into requests; return how many there are."""
    demand, flashes, draws = borrow(demand), borrow(flashes), borrow(draws)
    requests = borrow(requests)
    candidates = len(draws.spacings) - 1
    total = 0.0
    for candidate in range(candidates + 1):
        total += draws.spacings[candidate]
    scale = block.length_s / total
    drifts = demand.drift_period_s < np.inf
    shares = np.empty(len(demand.family_share))
    write_family_shares(demand, block.start_s, shares)
    elapsed = 0.0
    count = 0
    for candidate in range(candidates):
        elapsed += draws.spacings[candidate]
        time = block.start_s + elapsed * scale
        level = -1.0
        if len(draws.thinning) > 0:
            level = draws.thinning[candidate] * block.peak - load_at(demand.diurnal, time)
        draw = draws.choice[candidate]
        family = -1
        centre_x, centre_y, sigma = 0.0, 0.0, 0.0
        if level < 0.0:
            if drifts:
                write_family_shares(demand, time, shares)
            family, draw = _pick(shares, draw)
            if (
                demand.hotspot_order[family] >= 0
                and draws.background[candidate] < demand.hotspot_concentration
            ):
                centre_x, centre_y = hotspot_centre_km(demand, family, time)
                sigma = demand.hotspot_sigma_km
        elif level < demand.flash_magnitude:
            for flash in range(len(flashes)):
                if flashes[flash, FLASH_START_S] <= time < flashes[flash, FLASH_END_S]:
                    family = int(flashes[flash, FLASH_FAMILY])
                    centre_x, centre_y = flashes[flash, FLASH_X_KM], flashes[flash, FLASH_Y_KM]
                    sigma = demand.flash_sigma_km
        if family < 0:
            continue
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
        requests.type[count] = _pick_type(demand, family, draw)
        requests.x_km[count] = x
        requests.y_km[count] = y
        requests.mark[count] = draws.marks[candidate] if len(draws.marks) > 0 else 1.0
        count += 1
    return count


def _truncated_normal_km(
    uniform: Floats, centre_km: Floats, sigma_km: Floats, length_km: float
) -> Floats:
    """Return Gaussian positions conditioned on [0, length]: what redrawing until inside gives."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr(-centre_km / sigma_km), ndtr((length_km - centre_km) / sigma_km)
    position = centre_km + sigma_km * ndtri(low + uniform * (high - low))
    return np.clip(position, 0.0, length_km)


class RequestStream:
    """The request stream of one episode.

    Parameters
    ----------
    world : World
        The compiled scenario.
    seed : int
        Seed of the episode.

    Attributes
    ----------
    demand : DemandModel
        The episode's demand.
    block_s : float
        Length of a block: so that at most 4096 candidates are expected in it.
    """

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self.demand = draw_demand(world, stream_generator(seed, "demand-phase"))
        self._demand_draws = _BlockStream(seed, "demand")
        self._service_draws = _BlockStream(seed, "service")
        self._flash_draws = _BlockStream(seed, "flash")
        self._swing = float(np.prod(1.0 + world.diurnal[:, 0]))
        self._thins = len(world.diurnal) > 0 or len(world.flash) > 0
        self._has_spots = len(world.hotspot) > 0 or len(world.flash) > 0
        peak = self._swing + self.demand.flash_magnitude
        self.block_s = CANDIDATES_PER_BLOCK / (world.base_rate_per_s * peak)

    def fill(self, state: FleetState, b: int) -> FleetState:
        """Load the next block of requests of fleet b.

        Parameters
        ----------
        state : FleetState
            State of B fleets, changed in place.
        b : int
            Which fleet.

        Returns
        -------
        FleetState
            The state; with longer request arrays where the block did not fit.
        """
        number = int(state.scalars[b, NEXT_BLOCK])
        start_s = number * self.block_s
        flashes = self.flashes(start_s, start_s + self.block_s)
        peak = self._swing + (self.demand.flash_magnitude if len(flashes) else 0.0)
        block = Block(start_s, self.block_s, peak)
        draws = self._draw(number, self._world.base_rate_per_s * peak * self.block_s)
        state = with_block_capacity(state, len(draws.spacings) - 1)
        requests = requests_of(state, b)
        count = shape_block(self.demand, block, flashes, draws, requests)
        if draws.spots.size:
            self._transform_spots(requests, draws.spots[:, :count])
        state.scalars[b, NEXT_BLOCK] = number + 1
        state.scalars[b, NEXT_REQUEST] = 0
        state.scalars[b, NUM_REQUESTS] = count
        state.stream_end_s[b] = (number + 1) * self.block_s
        return state

    def _draw(self, number: int, mean_candidates: float) -> Draws:
        """Draw the random numbers of a block, always in the same order."""
        generator = self._demand_draws.generator(number)
        candidates = int(generator.poisson(mean_candidates))
        spacings = generator.standard_exponential(candidates + 1)
        hotspots, gaussian = len(self._world.hotspot) > 0, self._has_spots and self._world.periodic
        return Draws(
            spacings,
            thinning=generator.random(candidates if self._thins else 0),
            choice=generator.random(candidates),
            x=generator.random(candidates),
            y=generator.random(candidates),
            background=generator.random(candidates if hotspots else 0),
            normal_x=generator.standard_normal(candidates if gaussian else 0),
            normal_y=generator.standard_normal(candidates if gaussian else 0),
            marks=self._marks(number, candidates),
            spots=np.zeros((3, candidates if self._has_spots and not gaussian else 0)),
        )

    def _marks(self, number: int, candidates: int) -> Floats:
        kind, sigma = self._world.service_kind, self._world.service_sigma
        if kind == EXPONENTIAL:
            return self._service_draws.generator(number).standard_exponential(candidates)
        if kind == LOGNORMAL:
            normal = self._service_draws.generator(number).standard_normal(candidates)
            return np.exp(sigma * normal - 0.5 * sigma * sigma)
        return np.empty(0)

    def _transform_spots(self, requests: Requests, spots: Floats) -> None:
        """Make the places of hotspots and crowds on a plain rectangle Gaussian."""
        chosen = np.flatnonzero(spots[2])
        centre_x, centre_y, sigma = spots[:, chosen]
        for positions, centre, length in (
            (requests.x_km, centre_x, self._world.width_km),
            (requests.y_km, centre_y, self._world.height_km),
        ):
            uniform = positions[chosen] / length
            positions[chosen] = _truncated_normal_km(uniform, centre, sigma, length)

    def flashes(self, start_s: float, end_s: float) -> Floats:
        """Return the flash crowds that touch a span of time.

        Parameters
        ----------
        start_s, end_s : float
            The span in seconds.

        Returns
        -------
        ndarray
            ``[n, 5]``: start and end in seconds, place in km, index of the family.
        """
        world = self._world
        found: list[tuple[float, float, float, float, float]] = []
        if len(world.flash):
            interval_s, duration_s = world.flash[0, :2]
            members = np.flatnonzero(world.flash_member)
            for interval in range(int(start_s // interval_s), int(end_s // interval_s) + 1):
                generator = self._flash_draws.generator(interval)
                when, x, y = generator.random(3)
                family = members[generator.integers(len(members))]
                begin_s = interval * interval_s + when * (interval_s - duration_s)
                if begin_s < end_s and begin_s + duration_s > start_s:
                    place = (x * world.width_km, y * world.height_km)
                    found.append((begin_s, begin_s + duration_s, *place, float(family)))
        return np.array(found).reshape(-1, 5)
