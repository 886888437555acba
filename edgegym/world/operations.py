"""The smaller blocks of a scenario: region, radio, telemetry, migration, control, goal."""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from edgegym.world.block import Amount, Block, Clustering, Count, Duration, Quantity, Share

_SHORTEST_PERIOD_S = 1e-3


class Region(Block):
    """The area that is served, a rectangle."""

    width_km: Quantity
    """Extent in x."""
    height_km: Quantity
    """Extent in y."""
    periodic: bool = True
    """Whether opposite edges meet (a torus: no boundary effects)."""

    @property
    def area_km2(self) -> float:
        """Area in km²."""
        return self.width_km * self.height_km


class Radio(Block):
    """Radio latency base_s + xi · r^alpha at distance r km (eq. 9)."""

    xi: Quantity
    """Seconds per km^alpha."""
    alpha: Annotated[Quantity, Field(ge=0.1, le=100)]
    """Exponent of the distance."""
    base_s: Amount = 0.0
    """Latency at distance 0."""


class Telemetry(Block):
    """What the router knows of the nodes' load, and how old it is."""

    period_s: Amount = 0.0
    """Reports come at multiples of this; 0 means live."""
    predict_on_route: bool = False
    """Whether the router adds what it has sent since the last report."""
    ewma_s: Duration = 10.0
    """Time constant of the measured wait."""
    catalogue_period_s: Amount = 0.0
    """What nodes hold is advertised at multiples of this; 0 means live."""

    @field_validator("period_s", "catalogue_period_s")
    @classmethod
    def _live_or_apart(cls, period_s: float) -> float:
        if 0 < period_s < _SHORTEST_PERIOD_S:
            raise ValueError(f"must be 0 (live) or at least {_SHORTEST_PERIOD_S:g} s")
        return period_s


class Migration(Block):
    """The token bucket from which moves are paid, in bytes that must be transferred."""

    budget_bytes_per_s: Quantity
    """Refill rate."""
    burst_bytes: Count
    """Size of the bucket, full at the start."""


class Initial(Block):
    """How an episode starts."""

    mix: dict[str, Share]
    """Share of nodes with a GPU by profile name; unnamed profiles have none. Each episode has the
    nearest whole numbers; a node without room for its profile takes the smallest that fits."""
    clustering: Clustering = 0.0
    """How much nodes that start with the same profile stand together.

    J is the share of equal profiles among all pairs of a node and one of its four nearest, E what
    random places give on average. Profiles of random pairs of nodes are swapped until
    (J - E) / (1 - E) is this number, or (J - E) / E for a negative one, or as near as swaps come:
    1 would be equal neighbours only, -1 none."""
    warmup_s: Amount = 20.0
    """Traffic before the first decision, not rewarded."""


class Control(Block):
    """When the agent acts."""

    epoch_s: Duration = 5.0
    """Length of one control epoch."""
    horizon_epochs: Count = 120
    """Epochs in an episode."""
    moves_per_epoch: Annotated[Count, Field(le=10**6)] = 1
    """Moves that can be started at each epoch."""


class Objective(Block):
    """What is rewarded."""

    kind: Literal["coverage", "squashed_ttft", "goodput"] = "coverage"
    """Share of requests within target, squashed mean TTFT, or tokens of requests within target."""
    ttft_target_s: Quantity
    """TTFT target of the request types that do not state their own."""
    migration_weight: Annotated[Amount, Field(le=1e6)] = 0.0
    """Price of moving as many bytes as the whole fleet's memory."""
