"""What a user decides when a scenario is built from a trace."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

MOST_NODES = 1_000_000
MOST_RATE_PER_NODE = 1e6
_POSITIVE = (
    "rate_per_node",
    "side_km",
    "ttft_target_s",
    "shared_prefix_tokens",
    "window_s",
)


@dataclass(frozen=True, kw_only=True)
class BuildOptions:
    """What the user decides; the rest is measured from the trace.

    Raises
    ------
    ValueError
        If a number is out of range; the message names the field, the value and the rule.
    """

    hardware: str = "llama-3.1-8b@l40s"
    """Hardware preset of every node."""
    rate_per_node: float | None = None
    """Requests per second and node, at most 1e6; by default the trace's rate divided by the
    nodes."""
    families: int = 8
    """Most families, the one of requests without a chosen prefix included; at least 2."""
    profiles: int = 16
    """Most profiles, the empty one included; at least 2."""
    types: int = 64
    """Most request types; at least 2."""
    whole_forest: bool = False
    """Make every prefix that two prompts share a vertex, whether or not a node could be given it:
    for radix caches, which hold what comes. There are then at least as many types as prefixes."""
    shared_prefix_tokens: int | None = None
    """For traces without prefixes: tokens of a prefix that longer prompts are taken to share."""
    service: Literal["slots", "engine"] = "slots"
    """What serves: slots that prefill side by side and hold a request for a scattered time, which
    the analytic model knows; or engines, with one prefill server for each GPU and a pace of decode
    that all running sequences share."""
    nodes: int = 25
    """Number of nodes, 1 to 1,000,000."""
    side_km: float | None = None
    """Side of the square region, km; by default 4 nodes per km²."""
    ttft_target_s: float | None = None
    """TTFT target, seconds; by default the round number at which hits matter most."""
    start_s: float = 0.0
    """Leave out the requests before this time of the trace, seconds."""
    window_s: float | None = None
    """Use only so many seconds of the trace from the start on; by default all that follows."""

    def __post_init__(self) -> None:
        for field, least in (("families", 2), ("profiles", 2), ("types", 2), ("nodes", 1)):
            if getattr(self, field) < least:
                raise ValueError(f"{field} = {getattr(self, field)}: must be at least {least}")
        for field in _POSITIVE:
            value = getattr(self, field)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise ValueError(f"{field} = {value}: must be a positive number")
        if self.service not in ("slots", "engine"):
            raise ValueError(f"service = {self.service!r}: must be 'slots' or 'engine'")
        if self.nodes > MOST_NODES:
            raise ValueError(f"nodes = {self.nodes}: must be at most {MOST_NODES:,}")
        if self.rate_per_node is not None and self.rate_per_node > MOST_RATE_PER_NODE:
            raise ValueError(
                f"rate_per_node = {self.rate_per_node}: must be at most {MOST_RATE_PER_NODE:g} "
                "requests per second"
            )
        if not (np.isfinite(self.start_s) and self.start_s >= 0):
            raise ValueError(f"start_s = {self.start_s}: must be a number, at least 0")
