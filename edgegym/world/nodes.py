"""The edge nodes: how many, where, and of which classes."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from edgegym.world.block import Block, Clustering, Count, PositiveShare, Quantity, Share
from edgegym.world.hardware import Hardware
from edgegym.world.sites import read_sites


class PoissonLayout(Block):
    """Every node is anywhere in the region, whatever the others do."""

    kind: Literal["poisson"] = "poisson"


class MaternLayout(Block):
    """No two nodes are close: a Matérn hard-core process of type II.

    Candidates come one after the other, uniform in the plane; one becomes a node if no earlier
    candidate is within the distance. With ``density_per_km2`` so many candidates come that the
    nodes have this density; with ``count`` they come until there are enough nodes.
    """

    kind: Literal["matern"] = "matern"
    min_distance_km: Quantity
    """Nodes are at least this far apart. Discs of this radius around all nodes must add up to at
    most 95 % of the region's area."""


class LatticeLayout(Block):
    """Nodes are near the centres of equal cells, about as wide as high.

    There are as many cells as nodes or up to a row more; random ones stay empty. A lattice on a
    torus is shifted at random. With ``density_per_km2`` the number of nodes is the nearest whole
    number.
    """

    kind: Literal["lattice"] = "lattice"
    jitter: Share = 0.5
    """Each node is uniform in this share of its cell's width and height: 0 gives a strict lattice,
    1 lets it be anywhere in its cell."""


Layout = Annotated[PoissonLayout | MaternLayout | LatticeLayout, Field(discriminator="kind")]


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
    """How many edge nodes there are, where, and of which classes."""

    count: Count | None = None
    """A fixed number of nodes."""
    density_per_km2: Quantity | None = None
    """Mean density of a random number of nodes; give this, ``count`` or coordinates."""
    max_count: Count | None = None
    """Largest random number (larger and empty draws are redrawn); default the 0.9999 quantile of
    the Poisson law."""
    layout: Layout = PoissonLayout()
    """How the places are drawn where no coordinates are given."""
    coordinates_file: Annotated[str, Field(min_length=1)] | None = None
    """CSV file with columns ``x_km`` and ``y_km``, and only rows of ``kind`` ``site`` where it has
    that column. In a scenario file the path is relative to its folder, otherwise to the current
    folder; it is kept as an absolute one. The file is read once: ``coordinates_km`` keeps what it
    says, so a saved scenario no longer needs it."""
    coordinates_km: tuple[tuple[float, float], ...] | None = None
    """x and y of each node, from ``coordinates_file`` or given instead."""
    origin_km: tuple[float, float] = (0.0, 0.0)
    """Place of the region's lower left corner in these coordinates."""
    classes: tuple[NodeClass, ...] = ()
    """Classes of a mixed fleet; by default all nodes have the scenario's ``hardware``."""
    clustering: Clustering = 0.0
    """How much nodes of a class stand together, see ``initial.clustering``."""

    @model_validator(mode="before")
    @classmethod
    def _read_coordinates(cls, document: Any) -> Any:
        if not isinstance(document, dict) or not document.get("coordinates_file"):
            return document
        written = document["coordinates_file"]
        if not isinstance(written, str):
            return document
        document = document | {"coordinates_file": str(Path(written).absolute())}
        if document.get("coordinates_km") is None:
            document["coordinates_km"] = read_sites(written)
        return document

    @model_validator(mode="after")
    def _one_rule(self) -> "Nodes":
        given = (self.count, self.density_per_km2, self.coordinates_km)
        if sum(value is not None for value in given) != 1:
            sites = "none" if self.coordinates_km is None else f"{len(self.coordinates_km)} places"
            raise ValueError(
                f"count = {self.count}, density_per_km2 = {self.density_per_km2}, coordinates: "
                f"{sites}: give exactly one"
            )
        if self.density_per_km2 is None and self.max_count is not None:
            raise ValueError(
                f"max_count = {self.max_count}: only for a random number of nodes, with "
                "density_per_km2"
            )
        if self.coordinates_km is not None and not self.coordinates_km:
            raise ValueError("coordinates_km = []: must have at least one place")
        if self.coordinates_km is not None and self.layout.kind != "poisson":
            raise ValueError(
                f"layout.kind = '{self.layout.kind}': places are given by coordinates; leave the "
                "layout away"
            )
        if self.coordinates_km is None and self.origin_km != (0.0, 0.0):
            raise ValueError(f"origin_km = {self.origin_km}: only with coordinates")
        return self

    def fixed_count(self, area_km2: float) -> int | None:
        """Return the number of nodes in a region of this area, none if it is random."""
        if self.coordinates_km is not None:
            return len(self.coordinates_km)
        if self.density_per_km2 is not None and isinstance(self.layout, LatticeLayout):
            return max(1, round(self.density_per_km2 * area_km2))
        return self.count
