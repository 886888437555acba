"""The backhaul, and when prefix state is fetched over it instead of computed."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from edgegym.world.block import Block, Count, Duration, Quantity

_MOST_LAYERS = 10_000


class Backhaul(Block):
    """The link over which state reaches a node: for its profile, or for one request."""

    rate_bytes_per_s: Quantity
    """Rate of each transfer, or of the shared link."""
    sharing: Literal["dedicated", "shared"] = "dedicated"
    """Does each transfer have this rate, or do all share it (max-min fair)?"""
    access_bytes_per_s: Quantity | None = None
    """Most that one node can receive, on a shared link; by default as much as there is."""
    compression: Annotated[Quantity, Field(ge=1)] = 1.0
    """Bytes of state for each byte on the link."""
    restore_bytes_per_s: Quantity | None = None
    """Rate, in bytes of state, at which a node unpacks what it fetched for a request; by default
    that takes no time."""
    restore_slowdown: Annotated[Quantity, Field(ge=1)] = 1.0
    """Factor by which running sequences decode more slowly during a restoration (``service.kind =
    engine``; the other laws know no such interference)."""
    layers: Annotated[Count, Field(le=_MOST_LAYERS)] = 1
    """Layers of the model that are fetched one by one: prefill starts with the first that is there.
    With 1, it starts when all is there."""

    @model_validator(mode="after")
    def _consistent(self) -> "Backhaul":
        if self.access_bytes_per_s is not None and self.sharing != "shared":
            raise ValueError(
                f"access_bytes_per_s = {self.access_bytes_per_s:g}: only with sharing = 'shared'; "
                "on a dedicated link each transfer has the rate to itself"
            )
        if self.restore_slowdown > 1 and self.restore_bytes_per_s is None:
            raise ValueError(
                f"restore_slowdown = {self.restore_slowdown:g}: give restore_bytes_per_s too; "
                "without it a restoration takes no time"
            )
        return self


class Fetch(Block):
    """Whether a request's missing prefix is fetched from where it is held, or computed."""

    controller: Literal["never", "always", "independent", "joint"] = "never"
    """Never; always; when the last advertised bandwidth makes it pay; or when it pays with the
    flows that there are, and saves the request more than it delays them."""
    advertise_s: Duration = 1.0
    """The bandwidth is advertised to independent controllers at multiples of this."""
    budget_share: Quantity = 1.0
    """Joint: a fetch must bring the first token within this part of the request's latency target,
    as predicted, else the prefix is computed."""
