"""The backhaul, and when prefix state is fetched over it instead of computed."""

from typing import Annotated, Literal

from pydantic import Field

from edgegym.world.block import Amount, Block, Count, Duration, Quantity


class Backhaul(Block):
    """The link over which persistent state reaches a node."""

    rate_bytes_per_s: Quantity
    """Rate of each transfer, or of the shared link."""
    sharing: Literal["dedicated", "shared"] = "dedicated"
    """Does each transfer have this rate, or do all share it (processor sharing)?"""
    access_bytes_per_s: Quantity | None = None
    """Most that one node can receive, on a shared link."""
    compression: Annotated[Quantity, Field(ge=1)] = 1.0
    """Bytes of state for each byte on the link."""
    restore_bytes_per_s: Quantity | None = None
    """Rate at which a node unpacks what it fetched for a request; by default it takes no time."""
    restore_slowdown: Annotated[Quantity, Field(ge=1)] = 1.0
    """Factor by which running sequences decode more slowly during a restoration."""
    layers: Count = 1
    """Layers of the model that are streamed one by one: prefill starts with the first."""


class Fetch(Block):
    """Whether a request's missing prefix is fetched from where it is held, or computed."""

    controller: Literal["never", "always", "independent", "joint"] = "never"
    """Never; always; by the last advertised bandwidth; by all flows, and what it costs them."""
    advertise_s: Duration = 1.0
    """How often the bandwidth is advertised to independent controllers."""
    budget_share: Amount = 1.0
    """Joint: a fetch may use this share of the request's latency target, else it is computed."""
