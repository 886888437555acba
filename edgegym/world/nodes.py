"""The edge nodes: how many, where, and of which classes."""

from pydantic import Field, model_validator

from edgegym.world.block import Block, Count, PositiveShare, Quantity
from edgegym.world.hardware import Hardware


class NodeClass(Block):
    """Nodes of one kind in a mixed fleet."""

    name: str = Field(min_length=1)
    """Unique among classes."""
    share: PositiveShare
    """Share of all nodes; the shares add up to 1. Each episode has the nearest whole numbers."""
    gpu: bool = True
    """A node without one is only an access point: it holds nothing and serves nobody."""
    hardware: Hardware | None = None
    """Its GPU; by default the scenario's ``hardware``."""
    offers: tuple[str, ...] | None = None
    """Tags of the request types that it can serve, besides those that require none; by default all
    tags."""

    @model_validator(mode="after")
    def _nothing_without_gpu(self) -> "NodeClass":
        if not self.gpu and (self.hardware is not None or self.offers is not None):
            raise ValueError(
                f"gpu = {self.gpu}: a class without GPU has neither hardware nor offers"
            )
        return self

    def can_serve(self, tag: str | None) -> bool:
        """Return whether nodes of this class serve request types that require a tag (or none)."""
        return self.gpu and (tag is None or self.offers is None or tag in self.offers)


class Nodes(Block):
    """How many edge nodes there are and of which classes; their places are uniform."""

    count: Count | None = None
    """A fixed number of nodes."""
    density_per_km2: Quantity | None = None
    """Mean density of a Poisson number of nodes; give this or ``count``."""
    max_count: Count | None = None
    """Largest Poisson number (larger and empty draws are redrawn); default the 0.9999 quantile."""
    classes: tuple[NodeClass, ...] = ()
    """Classes of a mixed fleet; by default all nodes have the scenario's ``hardware``."""

    @model_validator(mode="after")
    def _one_rule(self) -> "Nodes":
        if (self.count is None) == (self.density_per_km2 is None):
            raise ValueError(
                f"count = {self.count}, density_per_km2 = {self.density_per_km2}: give exactly one"
            )
        if self.count is not None and self.max_count is not None:
            raise ValueError(
                f"max_count = {self.max_count}: only for a Poisson number of nodes, not with count"
            )
        return self
