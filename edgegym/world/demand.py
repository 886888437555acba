"""How many requests arrive, where, when, and of which family.

The intensity of family f at place u and time t is::

    base rate x load(t, x) x burst_f(t) x family_weight_f(t) x place_f(u, t)  +  flash crowds

Modulations compose: each changes one factor. Everything random in them (phases, permutations, times
of flash crowds and bursts) is drawn per episode from the seed, never from a clock that an agent
could read. A trace takes the place of the Poisson arrivals, and the factors then thin it.
"""

from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from edgegym.world.block import Amount, Block, Duration, PositiveShare, Quantity
from edgegym.world.recorded import RecordedRequests, read_replay


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"got {list(names)}: a family stands twice; name each once")
    return names


Families = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_distinct)]
"""Names of families, each once."""


class Diurnal(Block):
    """Load that swings: 1 + amplitude · sin(2π (t / period_s + phase + phase_turns_per_km · x)).

    Its mean over a period is 1 at every place.
    """

    kind: Literal["diurnal"] = "diurnal"
    amplitude: PositiveShare
    """Relative swing around the mean."""
    period_s: Duration
    """Length of one day."""
    phase: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Phase at time 0 and x = 0, in turns; random in each episode when absent."""
    phase_turns_per_km: Annotated[float, Field(ge=-1e3, le=1e3)] = 0.0
    """How much further the day is for each km in x, in turns: a longitude. On a torus the day jumps
    at the seam, unless the width is a whole number of turns."""


class Drift(Block):
    """Popularity that rotates: each family moves through the Zipf ranks once per period.

    With n members, family k is at rank position x = (π(k) + n (t / period_s + phase)) mod n
    for a random permutation π and a random phase; its weight is Zipf(x), linear between the integer
    ranks, so that the members' weights always add up to the same sum. In the long run all members
    are equally popular.
    """

    kind: Literal["drift"] = "drift"
    families: Families | None = None
    """Families that take part, by default all; the others keep their shares."""
    zipf_exponent: Annotated[Amount, Field(le=100)]
    """Weight of rank r (from 1) is proportional to r to the power of minus this."""
    period_s: Duration
    """Time in which a family passes through all ranks."""


class Hotspot(Block):
    """Places that wander: each family has a Gaussian centre on an orbit round the region's middle.

    The centre of member k of n is at angle 2π (t / period_s + phase + k / n), the phase random in
    each episode. A share ``concentration`` of a member's requests is Gaussian around its centre
    (wrapped on a torus, redrawn on a plain rectangle), the rest is uniform.
    """

    kind: Literal["hotspot"] = "hotspot"
    families: Families | None = None
    """Families with a centre, by default all; the others stay uniform."""
    concentration: PositiveShare
    """Share of a member's requests that come from around its centre."""
    sigma_km: Quantity
    """Standard deviation in each coordinate."""
    orbit_radius_km: Amount
    """Distance of the centres from the middle of the region."""
    period_s: Duration
    """Time of one orbit."""


class FlashCrowd(Block):
    """Bursts in one place: in each interval one family suddenly draws a crowd.

    Interval k covers [k, k + 1) · interval_s. In it one flash lasts ``duration_s``, wholly inside,
    from a random time, at a random place, for a random member family; it adds requests at
    ``magnitude`` times the base rate, Gaussian around the place.
    """

    kind: Literal["flash_crowd"] = "flash_crowd"
    families: Families | None = None
    """Families that can draw a crowd, by default all."""
    interval_s: Duration
    """One flash in each interval of this length."""
    duration_s: Duration
    """How long a flash lasts."""
    magnitude: Quantity
    """Added rate relative to the base rate of the whole region."""
    sigma_km: Quantity
    """Standard deviation of the crowd in each coordinate."""

    @model_validator(mode="after")
    def _fits_interval(self) -> "FlashCrowd":
        if self.duration_s > self.interval_s:
            raise ValueError(
                f"duration_s = {self.duration_s}: must not exceed interval_s = {self.interval_s}"
            )
        return self


class Mmpp(Block):
    """Bursts: a Markov chain of two states, calm and burst, modulates the rate.

    Sojourns are exponential and the chain is stationary from time 0 on. The level in the calm state
    follows from the long-run mean, which is 1: bursts change no mean rate.
    """

    kind: Literal["mmpp"] = "mmpp"
    families: Families | None = None
    """Families whose rate is modulated, all by the same chain; by default all. Several such
    modulations multiply, each with a chain of its own."""
    burst_level: Annotated[Quantity, Field(gt=1)]
    """Rate during a burst relative to the long-run mean."""
    burst_s: Duration
    """Mean length of a burst."""
    calm_s: Duration
    """Mean time between bursts."""

    @property
    def burst_share(self) -> float:
        """Share of time in bursts."""
        return self.burst_s / (self.burst_s + self.calm_s)

    @property
    def calm_level(self) -> float:
        """Rate between bursts relative to the long-run mean."""
        return (1.0 - self.burst_share * self.burst_level) / (1.0 - self.burst_share)

    @model_validator(mode="after")
    def _leaves_something_for_the_calm(self) -> "Mmpp":
        if self.burst_share * self.burst_level > 1.0:
            raise ValueError(
                f"burst_level = {self.burst_level:g}: bursts take {self.burst_share:.4g} of the "
                f"time, so it must be at most {1.0 / self.burst_share:.6g} for a mean of 1"
            )
        return self


class TraceReplay(Block):
    """Requests from a file instead of a Poisson process: real order and real lengths.

    Times are stretched so that the mean rate is that of the demand: ``rate_per_node`` sets the
    pace. Places come from the spatial law. Modulations of rate or popularity thin the requests,
    which then come at a higher pace, so that means stay; without them each request of the file is
    replayed. Flash crowds come on top, with the lengths of their types.

    The file is CSV, plain or gzipped, with the columns ``arrival_s, type, input_tokens,
    output_tokens`` in order of arrival; ``edgegym trace scenario --replay`` writes one. The shares
    of the scenario's request types must be those in the file.
    """

    kind: Literal["trace"] = "trace"
    path: Annotated[str, Field(min_length=1)]
    """The file. In a scenario file the path is relative to its folder, otherwise to the current
    folder; it is kept as an absolute one."""
    keep: PositiveShare = 1.0
    """Share of the requests that are kept, chosen at random in each episode and cycle."""
    repeat: bool = True
    """Start again when the file ends; otherwise nothing follows."""
    random_start: bool = False
    """Begin each episode at a random time of the cycle."""
    quantum_s: Amount | None = None
    """Step of the recorded times: requests spread uniformly over it, but not beyond the next
    recorded time, in their order. By default found from the times; 0 takes them as they are."""
    cycle_s: Duration | None = None
    """Recorded time from one start of the file to the next; by default up to the last request plus
    a step, or the mean time between requests if that is longer."""

    @model_validator(mode="before")
    @classmethod
    def _absolute(cls, given: object) -> object:
        path = given.get("path") if isinstance(given, dict) else None
        if isinstance(given, dict) and isinstance(path, str) and path:
            return given | {"path": str(Path(path).absolute())}
        return given

    @model_validator(mode="after")
    def _starts_somewhere(self) -> "TraceReplay":
        if self.random_start and not self.repeat:
            raise ValueError("random_start = true: only for a trace that repeats (repeat = true)")
        return self

    @cached_property
    def recorded(self) -> RecordedRequests:
        """The requests of the file."""
        return read_replay(self.path).timed(self.quantum_s, self.cycle_s)


Modulation = Annotated[
    Diurnal | Drift | Hotspot | FlashCrowd | Mmpp | TraceReplay, Field(discriminator="kind")
]


class Demand(Block):
    """The base rate and what modulates it."""

    rate_per_node: Quantity | None = None
    """Requests per second for each node of the mean fleet."""
    request_intensity: Quantity | None = None
    """Requests per second and km²; give this or ``rate_per_node``."""
    modulations: tuple[Modulation, ...] = ()
    """At most one each of drift, hotspot, flash_crowd and trace; diurnal swings and bursts
    multiply."""

    @model_validator(mode="after")
    def _one_rate_and_single_modulations(self) -> "Demand":
        if (self.rate_per_node is None) == (self.request_intensity is None):
            raise ValueError(
                f"rate_per_node = {self.rate_per_node}, request_intensity = "
                f"{self.request_intensity}: give exactly one of them"
            )
        kinds = [item.kind for item in self.modulations if item.kind not in ("diurnal", "mmpp")]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"modulations: kind '{kind}' stands twice; at most one is allowed")
        return self

    def modulations_of(self, kind: type[Block]) -> tuple[Block, ...]:
        """Return the modulations of one class, in order."""
        return tuple(item for item in self.modulations if isinstance(item, kind))
