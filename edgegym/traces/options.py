"""What a user decides when a scenario is built from a trace."""

from dataclasses import dataclass

import numpy as np

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
    """Requests per second and node; by default the trace's rate divided by the nodes."""
    families: int = 8
    """Most families, the one of requests without a chosen prefix included."""
    profiles: int = 16
    """Most profiles, the empty one included."""
    types: int = 64
    """Most request types."""
    shared_prefix_tokens: int | None = None
    """For traces without prefixes: tokens of a prefix that longer prompts are taken to share."""
    nodes: int = 25
    """Number of nodes."""
    side_km: float | None = None
    """Side of the square region, km; by default 4 nodes per km²."""
    ttft_target_s: float | None = None
    """TTFT target, seconds; by default the round number at which hits matter most."""
    start_s: float = 0.0
    """Leave out the requests before this time of the trace."""
    window_s: float | None = None
    """Use only this much of the trace from ``start_s`` on; by default all that follows."""

    def __post_init__(self) -> None:
        for field, least in (("families", 2), ("profiles", 2), ("types", 2), ("nodes", 1)):
            if getattr(self, field) < least:
                raise ValueError(f"{field} = {getattr(self, field)}: must be at least {least}")
        for field in _POSITIVE:
            value = getattr(self, field)
            if value is not None and not (np.isfinite(value) and value > 0):
                raise ValueError(f"{field} = {value}: must be a positive number")
        if not (np.isfinite(self.start_s) and self.start_s >= 0):
            raise ValueError(f"start_s = {self.start_s}: must be a number, at least 0")
