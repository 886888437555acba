"""The law by which nodes get their places and marks, as plain numbers."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.world.nodes import LatticeLayout, MaternLayout

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

LAYOUT_KINDS = ("poisson", "matern", "lattice", "coordinates")
"""Kinds of layouts, by their number in :class:`PlaceLaw`."""
_MOST_COVERED = 0.95


class PlaceLaw(NamedTuple):
    """What is drawn for the nodes of an episode."""

    kind: int  # index into LAYOUT_KINDS
    fixed_count: bool  # exactly max_nodes nodes, or a random number
    min_distance_km: float  # matern
    jitter: float  # lattice
    coordinates_km: NDArray[np.float64]  # [n, 2] from the region's corner; empty unless given
    class_clustering: float
    profile_clustering: float


def place_law(scenario: "Scenario") -> PlaceLaw:
    """Return the law of a valid scenario."""
    nodes, layout = scenario.nodes, scenario.nodes.layout
    given = nodes.coordinates_km is not None
    return PlaceLaw(
        kind=LAYOUT_KINDS.index("coordinates" if given else layout.kind),
        fixed_count=nodes.fixed_count(scenario.region.area_km2) is not None,
        min_distance_km=layout.min_distance_km if isinstance(layout, MaternLayout) else 0.0,
        jitter=layout.jitter if isinstance(layout, LatticeLayout) else 0.0,
        coordinates_km=_from_corner(scenario),
        class_clustering=nodes.clustering,
        profile_clustering=scenario.initial.clustering,
    )


def _from_corner(scenario: "Scenario") -> NDArray[np.float64]:
    places = np.array(scenario.nodes.coordinates_km or (), dtype=np.float64).reshape(-1, 2)
    return places - np.array(scenario.nodes.origin_km)


def check_layout(scenario: "Scenario") -> None:
    """Check that the nodes have room in the region.

    Parameters
    ----------
    scenario : Scenario
        Its blocks are valid each by itself.

    Raises
    ------
    ValueError
        Names the field, the value and the rule.
    """
    if scenario.nodes.coordinates_km is not None:
        _check_inside(scenario)
    layout = scenario.nodes.layout
    if isinstance(layout, MaternLayout):
        _check_distance(scenario, layout.min_distance_km)


def _check_inside(scenario: "Scenario") -> None:
    region, places = scenario.region, _from_corner(scenario)
    outside = (places < 0) | (places > [region.width_km, region.height_km])
    if not outside.any():
        return
    index = int(np.flatnonzero(outside.any(axis=1))[0])
    given = np.array(scenario.nodes.coordinates_km)
    (left, bottom), (right, top) = given.min(axis=0), given.max(axis=0)
    raise ValueError(
        f"nodes.coordinates_km.{index} = {tuple(given[index].tolist())}: outside the region of "
        f"{region.width_km:g} km x {region.height_km:g} km from nodes.origin_km = "
        f"{scenario.nodes.origin_km}; the places span x {left:g} to {right:g} and y {bottom:g} to "
        f"{top:g} km"
    )


def _check_distance(scenario: "Scenario", distance_km: float) -> None:
    region = scenario.region
    shorter = min(region.width_km, region.height_km)
    if region.periodic and 2 * distance_km > shorter:
        raise ValueError(
            f"nodes.layout.min_distance_km = {distance_km:g}: must be at most half the shorter "
            f"side of a torus, {shorter / 2:g} km"
        )
    disc_km2 = np.pi * distance_km**2
    covered = scenario.density_per_km2 * disc_km2
    if covered > _MOST_COVERED:
        raise ValueError(
            f"nodes.layout.min_distance_km = {distance_km:g}: allows at most "
            f"{_MOST_COVERED / disc_km2:.4g} nodes per km², {_MOST_COVERED:.0%} of 1 / (π r²), not "
            f"{scenario.density_per_km2:.4g}"
        )
