"""How many requests arrive, where, when, and of which family.

The intensity of family f at place u and time t is::

    base rate x load(t) x family_weight_f(t) x place_f(u, t)  +  flash crowds

Modulations compose: each changes one factor. Everything random in them (phases, permutations, times
of flash crowds) is drawn per episode from the seed, never from a clock that an agent could read.
"""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from edgegym.world.block import Amount, Block, Duration, PositiveShare, Quantity


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError(f"got {list(names)}: a family stands twice; name each once")
    return names


Families = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(_distinct)]
"""Names of families, each once."""


class Diurnal(Block):
    """Load that swings: load(t) = 1 + amplitude · sin(2π (t / period_s + phase))."""

    kind: Literal["diurnal"] = "diurnal"
    amplitude: PositiveShare
    """Relative swing around the mean."""
    period_s: Duration
    """Length of one day."""
    phase: Annotated[float, Field(ge=-1, le=1)] | None = None
    """Phase at time 0, in turns; random in each episode when absent."""


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


Modulation = Annotated[Diurnal | Drift | Hotspot | FlashCrowd, Field(discriminator="kind")]


class Demand(Block):
    """The base rate and what modulates it."""

    rate_per_node: Quantity | None = None
    """Requests per second for each node of the mean fleet."""
    request_intensity: Quantity | None = None
    """Requests per second and km²; give this or ``rate_per_node``."""
    modulations: tuple[Modulation, ...] = ()
    """At most one each of drift, hotspot and flash_crowd; diurnal swings multiply."""

    @model_validator(mode="after")
    def _one_rate_and_single_modulations(self) -> "Demand":
        if (self.rate_per_node is None) == (self.request_intensity is None):
            raise ValueError(
                f"rate_per_node = {self.rate_per_node}, request_intensity = "
                f"{self.request_intensity}: give exactly one of them"
            )
        kinds = [item.kind for item in self.modulations if item.kind != "diurnal"]
        for kind in kinds:
            if kinds.count(kind) > 1:
                raise ValueError(f"modulations: kind '{kind}' stands twice; at most one is allowed")
        return self

    def modulations_of(self, kind: type[Block]) -> tuple[Block, ...]:
        """Return the modulations of one class, in order."""
        return tuple(item for item in self.modulations if isinstance(item, kind))
