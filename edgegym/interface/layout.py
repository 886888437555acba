"""What each number of a placement observation means, as data that policies and networks read."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from edgegym.interface.blocks import (
    DEMAND_EWMA_S,
    BlockLayout,
    Feature,
    Row,
    Scope,
    in_order,
    significant,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.draw import ScenarioDraw
    from edgegym.world.scenario import Scenario

__all__ = [
    "DEMAND_EWMA_S",
    "Feature",
    "ObservationLayout",
    "clock_period_s",
    "fleet_rows",
    "placement_layout",
]

_DAY_S = 86_400.0


def clock_period_s(scenario: "Scenario") -> float:
    """Return the period of the observed clock in seconds.

    That of the first diurnal modulation, else of the popularity drift, else of the hotspots; a day
    in a world without periods.
    """
    world = scenario.compile()
    for table, column in ((world.diurnal, 1), (world.drift, 1), (world.hotspot, 3)):
        if len(table):
            return float(table[0, column])
    return _DAY_S


def fleet_rows(scenario: "Scenario", observe_clock: bool) -> list[Row]:
    """Return the features of the whole fleet, which all layouts share."""
    world = scenario.compile()
    profiles, families = int(world.num_profiles), int(world.num_families)
    rows: list[Row] = [
        (
            "family_demand",
            families,
            "requests/s of the family over long-run requests/s of all",
            significant(1.0 / families),
        ),
        ("profile_share", profiles, "fraction of up nodes", None),
        ("bucket", 1, "fraction of the burst", None),
        ("load", 1, "requests per slot, whole fleet", 1.0),
    ]
    if observe_clock:
        rows.append(("clock", 2, "(1 + sine) / 2 and (1 + cosine) / 2", None))
    return rows


@dataclass(frozen=True, kw_only=True)
class ObservationLayout(BlockLayout):
    """Names, places, units and normalisers of the numbers in a flat observation.

    A flat observation is the node block, ``[N, K]`` row-major, then the global block ``[G]``. All
    values lie in [0, 1]. K and G, and every normaliser, depend on profiles, families, hardware and
    demand per node, not on the number of nodes: what is learned on 25 nodes applies to 100.

    Attributes
    ----------
    num_nodes : int
        N, rows of the node block; rows beyond a smaller episode's nodes are zero.
    num_profiles, num_families : int
        S and F.
    features : tuple of Feature
        In order, node features first.

    Notes
    -----
    ``demand``, ``near_demand`` and ``family_demand`` come from one estimate per node and family: an
    exponentially weighted mean, time constant ``DEMAND_EWMA_S`` (30 s), of the rate of the requests
    whose nearest up node it was, updated once per epoch. It starts at the scenario's long-run mean
    rate, shared equally among families.

    ``near_*`` are means over the nodes around, weighted by ``exp(-(r / l)^alpha)``, where l is the
    distance at which radio latency costs what the best prefix saves, kept between one and two mean
    node spacings: see :func:`edgegym.interface.neighbourhood.neighbourhood_length_km`.
    """

    num_nodes: int

    scope: ClassVar[Scope] = "node"
    count: ClassVar[str] = "num_nodes"

    @classmethod
    def from_scenario(
        cls, scenario: "Scenario", *, observe_clock: bool = False
    ) -> "ObservationLayout":
        """Derive the layout of a scenario's observations.

        Parameters
        ----------
        scenario : Scenario
            Gives the sizes and the normalisers.
        observe_clock : bool
            Append ``clock`` (sine and cosine of the time of day) to the global block.

        Returns
        -------
        ObservationLayout
        """
        world = scenario.compile()
        profiles, families = int(world.num_profiles), int(world.num_families)
        demand_scale = significant(world.mean_rate_per_s / world.mean_nodes / families)
        capacity_scale = significant(float(np.mean(world.slots)) / profiles)
        node: list[Row] = [
            ("profile", profiles, "one-hot of the profile held or being received", None),
            ("backlog", 1, "requests per slot", 1.0),
            ("receiving", 1, "fraction of the transfer left", None),
            ("up", 1, "1 if the node serves", None),
            ("price", profiles, "bytes to move over bytes in the bucket", 1.0),
            ("demand", families, "requests/s nearest to the node", demand_scale),
            ("near_demand", families, "requests/s per node around", demand_scale),
            ("near_capacity", profiles, "slots per node around", capacity_scale),
            ("near_backlog", 1, "requests per slot around", 1.0),
        ]
        return cls(
            num_nodes=int(world.max_nodes),
            num_profiles=profiles,
            num_families=families,
            features=(
                *in_order("node", node),
                *in_order("global", fleet_rows(scenario, observe_clock)),
            ),
        )

    @property
    def node_features(self) -> int:
        """K, columns of the node block."""
        return self.row_features

    def _relied_on(self) -> dict[str, Any]:
        content = self.to_dict()
        del content["num_nodes"]
        return content

    def node_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the node block ``[..., N, K]`` of flat observations ``[..., N·K + G]``."""
        return self.row_block(observation)

    def with_num_nodes(self, num_nodes: int) -> "ObservationLayout":
        """Return the same layout for another number of nodes.

        Raises
        ------
        ValueError
            If it is below 1.
        """
        if num_nodes < 1:
            raise ValueError(f"num_nodes is {num_nodes}: a layout has at least one node")
        return replace(self, num_nodes=num_nodes)


def placement_layout(draw: "ScenarioDraw", observe_clock: bool = False) -> ObservationLayout:
    """Return the layout that the observations of all scenarios of a draw have.

    Parameters
    ----------
    draw : ScenarioDraw
        Its reference gives the scales, its largest fleet the number of nodes.
    observe_clock : bool
        Append ``clock`` (sine and cosine of the time of day) to the global block.
    """
    layout = ObservationLayout.from_scenario(draw.layout_scenario, observe_clock=observe_clock)
    return layout.with_num_nodes(draw.max_nodes)
