"""The requests of an episode: a function of scenario and seed alone.

Time is cut into fixed blocks, and every block is made from counter-based generators keyed by
(seed, stream name) with the block number in the counter. So no action, slicing of time or horizon
can change a request, any block can be made again, and a stream of any length needs the memory of
one block.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.simulator.bursts import Bursts, BurstStream, longest_span_s, peak_bursts
from edgegym.simulator.columns import NEXT_BLOCK, NEXT_REQUEST, NUM_REQUESTS
from edgegym.simulator.expected import write_intensity
from edgegym.simulator.full.groups import Lengths
from edgegym.simulator.generators import NumberedStream, stream_generator
from edgegym.simulator.intensity import draw_demand
from edgegym.simulator.lane import Requests, requests_of
from edgegym.simulator.replay import Replay
from edgegym.simulator.room import with_block_capacity
from edgegym.simulator.service import EXPONENTIAL, LOGNORMAL
from edgegym.simulator.shaping import (
    FLASH_END_S,
    FLASH_START_S,
    Block,
    Draws,
    shape_block,
    shape_replay,
    thin_by_place,
)
from edgegym.simulator.state import FleetState, Floats, Ints
from edgegym.world.compiled import World

CANDIDATES_PER_BLOCK = 4096
USUAL_BLOCK_CAPACITY = CANDIDATES_PER_BLOCK + 6 * 64
"""Six deviations beyond the mean: a larger block is possible, and gets longer arrays."""

_NONE = np.empty(0)


def _truncated_normal_km(
    uniform: Floats, centre_km: Floats, sigma_km: Floats, length_km: float
) -> Floats:
    """Return Gaussian positions conditioned on [0, length]: what redrawing until inside gives."""
    from scipy.special import ndtr, ndtri

    low, high = ndtr(-centre_km / sigma_km), ndtr((length_km - centre_km) / sigma_km)
    position = centre_km + sigma_km * ndtri(low + uniform * (high - low))
    return np.clip(position, 0.0, length_km)


def _geometric(mean: Floats, uniform: Floats) -> Ints:
    """Return geometric numbers, from 1 on, of given means, at least 1."""
    # A mean of 1 leaves no chance of another token: the logarithm is then that of 0.
    more = np.log1p(-1.0 / np.maximum(mean, 1.0 + 1e-12))
    return 1 + np.floor(np.log1p(-uniform) / more).astype(np.int64)


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
    bursts : BurstStream
        The episode's bursts.
    replay : Replay or None
        The episode's replayed trace.
    """

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self.demand = draw_demand(world, stream_generator(seed, "demand-phase"))
        self._demand_draws = NumberedStream(seed, "demand")
        self._service_draws = NumberedStream(seed, "service")
        self._flash_draws = NumberedStream(seed, "flash")
        self._swing = float(np.prod(1.0 + world.diurnal[:, 0]))
        self._has_spots = len(world.hotspot) > 0 or len(world.flash) > 0
        modulated = len(world.diurnal) > 0 or len(world.mmpp) > 0
        replayed = len(world.replay.begin_s) > 0
        self._thins = modulated or (len(world.drift) if replayed else len(world.flash)) > 0
        self._peak = self._swing * self._highest_level(replayed)
        rate_per_s = world.base_rate_per_s * (self._peak + self.demand.flash_magnitude)
        self.block_s = min(CANDIDATES_PER_BLOCK / rate_per_s, longest_span_s(world))
        self.bursts = BurstStream(world, seed, self.block_s)
        self.replay = Replay(world, seed, world.base_rate_per_s * self._peak) if replayed else None

    def _highest_level(self, replayed: bool) -> float:
        """Return a bound of bursts and, for a replayed trace, of the popularity of any family."""
        if not replayed and not len(self._world.mmpp):
            return 1.0
        level = peak_bursts(self._world)
        if replayed:
            highest = np.where(
                self.demand.drift_rank >= 0,
                self.demand.drift_weight.max(),
                self.demand.family_share,
            )
            level = level * highest / self.demand.family_share
        return float(level.max())

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
        return self._load(state, b)[0]

    def fill_with_lengths(self, state: FleetState, b: int) -> tuple[FleetState, Lengths]:
        """Load the next block of requests of fleet b, and return the lengths of the requests.

        Parameters
        ----------
        state : FleetState
            As for :meth:`fill`.
        b : int
            Which fleet.

        Returns
        -------
        state : FleetState
            As from :meth:`fill`, to the bit.
        lengths : Lengths
            Of the block's requests, new arrays of just their number: those of the replayed request,
            else the type's input length, and its output length or, with ``service.output:
            geometric``, a geometric one (from 1 on) with the type's as its mean.
        """
        state, draws = self._load(state, b)
        count = int(state.scalars[b, NUM_REQUESTS])
        return state, self._lengths(state.request_type[b, :count], draws)

    def intensity_per_km2(
        self, times_s: ArrayLike, x_km: ArrayLike, y_km: ArrayLike
    ) -> NDArray[np.float64]:
        """Return the rate at which requests are expected at some times and places.

        It knows everything that is random in the episode except the requests themselves: phases,
        bursts, flash crowds. A replayed trace counts with its mean rate and mix.

        Parameters
        ----------
        times_s, x_km, y_km : array_like
            The points, of shapes that broadcast against each other; times at least 0, places in
            the region.

        Returns
        -------
        ndarray
            ``[..., F]`` requests per second and km² of each family. 0 for a Gaussian whose
            centre is so far outside a plain rectangle that its mass inside underflows.
        """
        times, x, y = np.broadcast_arrays(
            *(np.asarray(v, np.float64) for v in (times_s, x_km, y_km))
        )
        intensity = np.empty((times.size, self._world.num_families))
        if times.size:
            start_s, end_s = float(times.min()), float(np.nextafter(times.max(), np.inf))
            write_intensity(
                self.demand,
                self._world.base_rate_per_s,
                self.flashes(start_s, end_s),
                self.bursts.over(start_s, end_s),
                times.ravel(),
                x.ravel(),
                y.ravel(),
                intensity,
            )
        return intensity.reshape(*times.shape, self._world.num_families)

    def _load(self, state: FleetState, b: int) -> tuple[FleetState, Draws]:
        number = int(state.scalars[b, NEXT_BLOCK])
        start_s, end_s = number * self.block_s, (number + 1) * self.block_s
        flashes = self.flashes(start_s, end_s)
        bursts = self.bursts.over(start_s, end_s)
        if self.replay is None:
            peak = self._swing * self._level_bound(bursts)
            peak += self.demand.flash_magnitude if len(flashes) else 0.0
            draws = self._draw_poisson(number, self._world.base_rate_per_s * peak * self.block_s)
            state = with_block_capacity(state, len(draws.choice))
            requests = requests_of(state, b)
            block = Block(start_s, self.block_s, peak)
            count = shape_block(self.demand, block, flashes, bursts, draws, requests)
        else:
            times, draws = self._draw_replay(number, self.replay, flashes)
            recorded = draws.recorded
            types = np.where(recorded >= 0, self._world.replay.type[recorded], -1)
            state = with_block_capacity(state, len(times))
            requests = requests_of(state, b)
            count = shape_replay(
                self.demand, self._peak, flashes, bursts, times, types, draws, requests
            )
        if draws.spots.size:
            self._transform_spots(requests, draws.spots[:, :count])
        if self.demand.load_varies_in_x:
            count = thin_by_place(self.demand, draws, requests, count)
        state.scalars[b, NEXT_BLOCK] = number + 1
        state.scalars[b, NEXT_REQUEST] = 0
        state.scalars[b, NUM_REQUESTS] = count
        state.stream_end_s[b] = end_s
        return state, draws

    def _level_bound(self, bursts: Bursts) -> float:
        """Return a bound of the rate over load times base rate while these bursts last."""
        if not len(bursts.start_s):
            return 1.0
        if len(self._world.drift):
            return float(bursts.level.max())
        return float((bursts.level * self.demand.family_share).sum(axis=1).max()) * (1.0 + 1e-12)

    def _draw_poisson(self, number: int, mean_candidates: float) -> Draws:
        """Draw the random numbers of a block, always in the same order."""
        generator = self._demand_draws.generator(number)
        candidates = int(generator.poisson(mean_candidates))
        spacings = generator.standard_exponential(candidates + 1)
        return self._draw(number, generator, candidates)._replace(spacings=spacings)

    def _draw_replay(self, number: int, replay: Replay, flashes: Floats) -> tuple[Floats, Draws]:
        """Return the arrivals of recorded requests and crowds in a block, and their draws."""
        start_s, end_s = number * self.block_s, (number + 1) * self.block_s
        times, recorded = replay.over(start_s, end_s)
        generator = self._demand_draws.generator(number)
        for flash in flashes:
            begin = max(start_s, flash[FLASH_START_S])
            length_s = min(end_s, flash[FLASH_END_S]) - begin
            rate_per_s = self._world.base_rate_per_s * self.demand.flash_magnitude
            crowd = begin + length_s * generator.random(generator.poisson(rate_per_s * length_s))
            times = np.concatenate((times, crowd))
            recorded = np.concatenate((recorded, np.full(len(crowd), -1)))
        order = np.argsort(times, kind="stable")
        draws = self._draw(number, generator, len(times))
        return times[order], draws._replace(recorded=recorded[order])

    def _draw(self, number: int, generator: np.random.Generator, candidates: int) -> Draws:
        hotspots, gaussian = len(self._world.hotspot) > 0, self._has_spots and self._world.periodic
        return Draws(
            spacings=_NONE,
            thinning=generator.random(candidates if self._thins else 0),
            choice=generator.random(candidates),
            x=generator.random(candidates),
            y=generator.random(candidates),
            background=generator.random(candidates if hotspots else 0),
            normal_x=generator.standard_normal(candidates if gaussian else 0),
            normal_y=generator.standard_normal(candidates if gaussian else 0),
            marks=self._marks(number, candidates),
            lengths=self._output_draws(number, candidates),
            recorded=np.empty(0, dtype=np.int64),
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

    def _output_draws(self, number: int, candidates: int) -> Floats:
        if self._world.output_geometric:
            return self._service_draws.generator(number).random(candidates)
        return np.empty(0)

    def _lengths(self, types: Ints, draws: Draws) -> Lengths:
        """Return the lengths of the first requests for which ``draws`` has been filled."""
        world, count = self._world, len(types)
        inputs = world.input_tokens[types].astype(np.int64)
        outputs = world.output_tokens[types].astype(np.int64)
        if world.output_geometric:
            outputs = _geometric(world.output_tokens[types], draws.lengths[:count])
        if len(draws.recorded):
            recorded = draws.recorded[:count]
            replayed = recorded >= 0
            inputs[replayed] = world.replay.input_tokens[recorded[replayed]]
            outputs[replayed] = world.replay.output_tokens[recorded[replayed]]
        return Lengths(inputs, outputs)

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
