"""The requests of an episode: a function of scenario and seed alone.

Time is cut into fixed blocks, and every block is made from counter-based generators keyed by (seed,
stream name) with the block number in the counter. So no action, slicing of time or horizon can change
a request, any block can be made again, and a stream of any length needs the memory of one block.

Candidates arrive at the block's largest rate (arrival times by normalised exponential spacings, which
are sorted by construction) and are thinned to the rate at their time.
"""

import zlib

import numpy as np
from numpy.random import Generator, Philox, SeedSequence

from edgegym.jit import kernel
from edgegym.simulator.intensity import (
    DemandPhases,
    hotspot_centre_km,
    load_at,
    write_family_weights,
)
from edgegym.simulator.service import EXPONENTIAL, LOGNORMAL
from edgegym.simulator.state import (
    NEXT_BLOCK,
    NEXT_REQUEST,
    NUM_REQUESTS,
    FleetState,
    Floats,
    with_block_capacity,
)
from edgegym.world.compiled import World

CANDIDATES_PER_BLOCK = 4096

# Columns of the flashes that touch a block.
_FLASH_START_S, _FLASH_END_S, _FLASH_X_KM, _FLASH_Y_KM, _FLASH_FAMILY = range(5)


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


def draw_phases(world: World, seed: int) -> DemandPhases:
    """Draw the phases of an episode.

    Parameters
    ----------
    world : World
        The compiled scenario.
    seed : int
        Seed of the episode.

    Returns
    -------
    DemandPhases
        Phases given in the scenario stand; the others are random.
    """
    generator = stream_generator(seed, "demand-phase")
    fixed = world.diurnal[:, 2]
    diurnal = np.where(np.isnan(fixed), generator.random(len(fixed)), fixed)
    members = np.flatnonzero(world.drift_member)
    ranks = np.full(world.num_families, -1, dtype=np.int64)
    ranks[members] = generator.permutation(len(members))
    exponent = float(world.drift[0, 0]) if len(world.drift) else 0.0
    zipf = np.arange(1.0, len(members) + 1.0) ** -exponent
    zipf = zipf / zipf.sum() if len(members) else np.ones(1)
    return DemandPhases(
        diurnal=diurnal,
        drift_rank=ranks,
        drift=generator.random(1),
        drift_weight=np.append(zipf, zipf[0]),
        hotspot=generator.random(1),
    )


@kernel(forceinline=True)
def _pick(weights: Floats, draw: float) -> tuple[int, float]:
    """Return the index that a uniform draw falls on, and what is left of the draw as a uniform."""
    last = len(weights) - 1
    for index in range(last):
        if draw < weights[index]:
            return index, draw / weights[index]
        draw -= weights[index]
    return last, min(draw / weights[last], 1.0) if weights[last] > 0.0 else 0.0


@kernel(forceinline=True)
def _wrapped(position_km: float, period_km: float) -> float:
    wrapped = position_km % period_km
    return wrapped if wrapped < period_km else 0.0


@kernel
def _pick_type(world: World, family: int, draw: float) -> int:
    chosen = -1
    for request_type in range(world.num_types):
        if world.type_family[request_type] == family:
            chosen = request_type
            draw -= world.type_share_in_family[request_type]
            if draw < 0.0:
                break
    return chosen


@kernel
def shape_block(
    world: World,
    phases: DemandPhases,
    flashes: Floats,
    start_s: float,
    length_s: float,
    rate_per_s: float,
    spacings: Floats,
    uniforms: Floats,
    normals: Floats,
    marks: Floats,
    spots: Floats,
    state: FleetState,
    b: int,
) -> int:
    """Turn the draws of a block into requests; return how many there are.

    ``spacings`` is ``[K + 1]`` for K candidates, ``uniforms`` ``[5, K]`` (thinning, type, x, y, hotspot
    or background), ``normals`` ``[2, K]`` or empty, ``marks`` ``[K]`` or empty for 1. On a plain
    rectangle ``spots``, ``[3, K]`` zeros, receives centre and deviation of the requests whose place
    is a truncated Gaussian; their x and y stay uniform for the caller to transform.
    """
    times, types = state.request_time_s[b], state.request_type[b]
    xs, ys, request_marks = state.request_x_km[b], state.request_y_km[b], state.request_mark[b]
    candidates = len(spacings) - 1
    total = 0.0
    for candidate in range(candidates + 1):
        total += spacings[candidate]
    scale = length_s / total
    weights = np.empty(world.num_families)
    write_family_weights(world, phases, start_s, weights)
    drifts = len(world.drift) > 0
    members = 0
    for family in range(world.num_families):
        members += world.hotspot_order[family] >= 0
    relative_peak = rate_per_s / world.base_rate_per_s
    elapsed = 0.0
    count = 0
    for candidate in range(candidates):
        elapsed += spacings[candidate]
        time = start_s + elapsed * scale
        level = uniforms[0, candidate] * relative_peak - load_at(world, phases, time)
        family = -1
        centre_x, centre_y, sigma = -1.0, -1.0, 0.0
        if level < 0.0:
            if drifts:
                write_family_weights(world, phases, time, weights)
            family, draw = _pick(weights, uniforms[1, candidate])
            if world.hotspot_order[family] >= 0 and uniforms[4, candidate] < world.hotspot[0, 0]:
                centre_x, centre_y = hotspot_centre_km(world, phases, members, family, time)
                sigma = world.hotspot[0, 1]
        else:
            draw = uniforms[1, candidate]
            for flash in range(len(flashes)):
                if flashes[flash, _FLASH_START_S] <= time < flashes[flash, _FLASH_END_S]:
                    if level < world.flash[0, 2]:
                        family = int(flashes[flash, _FLASH_FAMILY])
                        centre_x = flashes[flash, _FLASH_X_KM]
                        centre_y = flashes[flash, _FLASH_Y_KM]
                        sigma = world.flash[0, 3]
                    break
        if family < 0:
            continue
        x, y = uniforms[2, candidate] * world.width_km, uniforms[3, candidate] * world.height_km
        if sigma > 0.0:
            if world.periodic:
                x = _wrapped(centre_x + sigma * normals[0, candidate], world.width_km)
                y = _wrapped(centre_y + sigma * normals[1, candidate], world.height_km)
            else:
                spots[0, count], spots[1, count], spots[2, count] = centre_x, centre_y, sigma
        times[count] = time
        types[count] = _pick_type(world, family, draw)
        xs[count], ys[count] = x, y
        request_marks[count] = marks[candidate] if len(marks) > 0 else 1.0
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
    phases : DemandPhases
        The random phases of the episode's demand.
    block_s : float
        Length of a block: so that at most 4096 candidates are expected in it.
    """

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self.phases = draw_phases(world, seed)
        self._demand = _BlockStream(seed, "demand")
        self._service = _BlockStream(seed, "service")
        self._flash = _BlockStream(seed, "flash")
        self._swing = float(np.prod(1.0 + world.diurnal[:, 0]))
        self._has_spots = len(world.hotspot) > 0 or len(world.flash) > 0
        flash = float(world.flash[0, 2]) if len(world.flash) else 0.0
        self.block_s = CANDIDATES_PER_BLOCK / (world.base_rate_per_s * (self._swing + flash))

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
        world = self._world
        block = int(state.scalars[b, NEXT_BLOCK])
        start_s = block * self.block_s
        flashes = self.flashes(start_s, start_s + self.block_s)
        rate_per_s = world.base_rate_per_s * self._swing
        if len(flashes):
            rate_per_s += world.base_rate_per_s * world.flash[0, 2]
        generator = self._demand.generator(block)
        candidates = int(generator.poisson(rate_per_s * self.block_s))
        spacings = generator.standard_exponential(candidates + 1)
        uniforms = generator.random((5 if self._has_spots else 4, candidates))
        normals, spots = np.empty((2, 0)), np.empty((3, 0))
        if self._has_spots and world.periodic:
            normals = generator.standard_normal((2, candidates))
        elif self._has_spots:
            spots = np.zeros((3, candidates))
        state = with_block_capacity(state, candidates)
        count = shape_block(
            world,
            self.phases,
            flashes,
            start_s,
            self.block_s,
            rate_per_s,
            spacings,
            uniforms,
            normals,
            self._marks(block, candidates),
            spots,
            state,
            b,
        )
        if spots.size:
            chosen = np.flatnonzero(spots[2, :count])
            x, y, sigma = spots[:, chosen]
            for positions, centre, length in (
                (state.request_x_km[b], x, world.width_km),
                (state.request_y_km[b], y, world.height_km),
            ):
                uniform = positions[chosen] / length
                positions[chosen] = _truncated_normal_km(uniform, centre, sigma, length)
        state.scalars[b, NEXT_BLOCK] = block + 1
        state.scalars[b, NEXT_REQUEST] = 0
        state.scalars[b, NUM_REQUESTS] = count
        state.stream_end_s[b] = (block + 1) * self.block_s
        return state

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
                generator = self._flash.generator(interval)
                when, x, y = generator.random(3)
                family = members[generator.integers(len(members))]
                begin_s = interval * interval_s + when * (interval_s - duration_s)
                if begin_s < end_s and begin_s + duration_s > start_s:
                    place = (x * world.width_km, y * world.height_km)
                    found.append((begin_s, begin_s + duration_s, *place, float(family)))
        return np.array(found).reshape(-1, 5)

    def _marks(self, block: int, candidates: int) -> Floats:
        """Return unit-mean service marks, or none where the law has none."""
        kind, sigma = self._world.service_kind, self._world.service_sigma
        if kind == EXPONENTIAL:
            return self._service.generator(block).standard_exponential(candidates)
        if kind == LOGNORMAL:
            normal = self._service.generator(block).standard_normal(candidates)
            return np.exp(sigma * normal - 0.5 * sigma * sigma)
        return np.empty(0)
