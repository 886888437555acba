"""How a request finds its node, and when nodes close."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from edgegym.world.block import Amount, Block, Count, CountOrZero, Duration, Quantity, Share

_MOST_SLOTS = 1_000_000


class NearestRouting(Block):
    """Each request goes to the nearest node."""

    kind: Literal["nearest"] = "nearest"


class PrefixAwareRouting(Block):
    """Each request goes where radio plus residual prefill is least."""

    kind: Literal["prefix_aware"] = "prefix_aware"


class Margin(Block):
    """What the router adds to a node's predicted cost because the prediction may be wrong (ψ)."""

    deviations: Amount = 0.0
    """Times the standard deviation of the node's past prediction errors (z_δ σ̂)."""
    moving_s: Amount = 0.0
    """While the node is receiving state."""
    burst_s: Amount = 0.0
    """Times the excess over 1 of the dispersion index of the node's arrivals."""


class LoadAwareRouting(Block):
    """Each request goes where radio plus residual prefill plus advertised wait is least."""

    kind: Literal["load_aware"] = "load_aware"
    advertised_wait: Literal["backlog", "measured", "tier"] = "backlog"
    """From the node's backlog, an average of measured waits, or the tier's analytic mean."""
    margin: Margin = Margin()
    """Safety margin of the predicted cost."""


class CandidateRouting(Block):
    """The common part of rules that look at a few nodes only."""

    candidates_per_profile: Count = 2
    """The nearest nodes of each profile that are looked at."""


class LeastLoadedRouting(CandidateRouting):
    """Each request goes to the candidate with the least backlog per slot."""

    kind: Literal["least_loaded"] = "least_loaded"


class PowerOfTwoRouting(CandidateRouting):
    """The less loaded of two random candidates."""

    kind: Literal["power_of_two"] = "power_of_two"


class LMetricRouting(CandidateRouting):
    """Least new tokens times the number of requests there: (L − h)(n + 1)."""

    kind: Literal["lmetric"] = "lmetric"


class CacheAwareRouting(CandidateRouting):
    """The longest match while load is balanced, the least loaded candidate otherwise."""

    kind: Literal["cache_aware"] = "cache_aware"
    max_gap: Amount = 32.0
    """Load is unbalanced when the most exceeds the least by more than this number of requests …"""
    max_ratio: Annotated[Quantity, Field(ge=1)] = 1.1
    """… and by more than this factor."""
    match_share: Share = 0.5
    """Share of the prompt that must match for the match to count."""


class KvRouting(CandidateRouting):
    """Least prefill blocks less overlap credit plus decode blocks, by softmax when warm."""

    kind: Literal["kv_router"] = "kv_router"
    overlap_weight: Amount = 1.0
    """Credit for each block that matches."""
    block_tokens: Count = 16
    """Tokens of a block."""
    temperature: Amount = 0.0
    """Of the softmax over costs normalised by their range; 0 takes the least."""


class PrebleRouting(CandidateRouting):
    """Exploit the longest match when it is longer than the rest, else balance load."""

    kind: Literal["preble"] = "preble"


class MooncakeRouting(CandidateRouting):
    """Least transfer plus queue plus prefill."""

    kind: Literal["mooncake"] = "mooncake"
    transfer_ratio: Annotated[Quantity, Field(ge=1)] = 1.5
    """A transfer is assumed when the best match exceeds the local one by more than this factor."""


class SessionAffinityRouting(CandidateRouting):
    """A hash of the family picks the node; the next in order when that one is closed."""

    kind: Literal["session_affinity"] = "session_affinity"


Routing = Annotated[
    NearestRouting
    | PrefixAwareRouting
    | LoadAwareRouting
    | LeastLoadedRouting
    | PowerOfTwoRouting
    | LMetricRouting
    | CacheAwareRouting
    | KvRouting
    | PrebleRouting
    | MooncakeRouting
    | SessionAffinityRouting,
    Field(discriminator="kind"),
]


class Threshold(Block):
    """Closes above one utilisation and reopens below a lower one."""

    close_above: Quantity
    """Utilisation, (active + queued) / slots."""
    reopen_below: Quantity
    """At most ``close_above``."""

    @model_validator(mode="after")
    def _lower(self) -> "Threshold":
        if self.reopen_below > self.close_above:
            raise ValueError(
                f"reopen_below = {self.reopen_below}: must not exceed close_above = "
                f"{self.close_above}"
            )
        return self


class Admission(Block):
    """When a node, or a whole profile tier, takes no more requests."""

    ewma_s: Duration = 10.0
    """Time constant of the average utilisation."""
    node: Threshold | None = None
    """For each node by itself."""
    tier: Threshold | None = None
    """For all nodes of a profile together."""
    spill: Literal["next_best", "origin", "reject"] = "next_best"
    """Where a request goes whose best node is closed; the origin follows when all are closed."""
    redirect: bool = False
    """Is a request that finds its node closed on arrival sent on, at the price of its way?"""


class Origin(Block):
    """A distant data centre that can serve any request."""

    rtt_s: Quantity
    """Round trip over the backbone."""
    handshakes: Amount = 2.0
    """Round trips that a new connection costs before the request."""
    new_connection_share: Share = 0.0
    """Share of requests that open a new connection."""
    slots: Annotated[Count, Field(le=_MOST_SLOTS)]
    """Sequences that run at once."""
    prefill_linear_s: Quantity
    """Seconds per new token."""
    prefill_quadratic_s: Amount = 0.0
    """Seconds per squared new token."""
    tpot_s: Quantity
    """Seconds per output token."""
    affinity: Share = 1.0
    """Share of requests that reach the replica which holds their prefix."""
    output_cap_tokens: Count | None = None
    """Longest output that the edge serves; longer ones go to the origin at once."""


class Spell(Block):
    """Random up and down times, exponential."""

    mean_up_s: Duration
    """Mean time between a recovery and the next failure."""
    mean_down_s: Duration
    """Mean time until it is up again."""


class Outage(Block):
    """A failure at a stated time."""

    what: Literal["node", "backhaul", "origin"]
    """Which part."""
    node: CountOrZero | None = None
    """Which node."""
    begin_s: Amount
    """When it fails."""
    end_s: Quantity
    """When it is up again."""

    @model_validator(mode="after")
    def _sensible(self) -> "Outage":
        if self.end_s <= self.begin_s:
            raise ValueError(f"end_s = {self.end_s}: must be after begin_s = {self.begin_s}")
        if (self.what == "node") != (self.node is not None):
            raise ValueError(f"node = {self.node}: give it with what = 'node', and only then")
        return self


class Failures(Block):
    """What fails and recovers."""

    nodes: Spell | None = None
    """Each node by itself."""
    backhaul: Spell | None = None
    """The shared link."""
    origin: Spell | None = None
    """The origin."""
    outages: tuple[Outage, ...] = ()
    """Failures at stated times, besides the random ones."""
