"""Observations by region: what a controller of mixes would know, as float32 in [0, 1]."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from edgegym.interface.blocks import BlockLayout, Row, Scope, in_order, significant
from edgegym.interface.layout import ObservationLayout, fleet_rows
from edgegym.interface.observation import Observer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.interface.regions import RegionGrid
    from edgegym.world.scenario import Scenario

# The largest float32 below 1: a finite count never reads as infinite.
_BELOW_ONE = np.nextafter(np.float32(1.0), np.float32(0.0))
# Slots that requests count against where a region has none: far less than one.
_NO_SLOTS = 1e-9


@dataclass(frozen=True, kw_only=True)
class RegionLayout(BlockLayout):
    """Names, places, units and normalisers of an observation by region.

    A flat observation is the region block, ``[R, K]`` row-major, then the global block ``[G]``. All
    values lie in [0, 1].

    Attributes
    ----------
    num_regions : int
        R, rows of the region block.
    num_profiles, num_families : int
        S and F.
    features : tuple of Feature
        In order, region features first.

    Notes
    -----
    The global block and the demand estimates are those of
    :class:`~edgegym.interface.layout.ObservationLayout`. ``nodes``, ``share`` and ``receiving``
    count nodes that are up and have a GPU: those whose mix an agent decides.
    """

    num_regions: int

    scope: ClassVar[Scope] = "region"
    count: ClassVar[str] = "num_regions"

    @classmethod
    def from_scenario(
        cls, scenario: "Scenario", num_regions: int, *, observe_clock: bool = False
    ) -> "RegionLayout":
        """Derive the layout of a scenario's observations.

        Parameters
        ----------
        scenario : Scenario
            Gives the sizes and the normalisers.
        num_regions : int
            R.
        observe_clock : bool
            Append ``clock`` (sine and cosine of the time of day) to the global block.

        Returns
        -------
        RegionLayout
        """
        world = scenario.compile()
        profiles, families = int(world.num_profiles), int(world.num_families)
        rows: list[Row] = [
            (
                "nodes",
                1,
                "up nodes with a GPU",
                significant(float(world.mean_nodes) / num_regions),
            ),
            ("share", profiles, "fraction of them with each profile", None),
            ("backlog", 1, "requests per slot", 1.0),
            ("receiving", 1, "fraction of them that receive", None),
            (
                "demand",
                families,
                "requests/s nearest to its nodes",
                significant(world.mean_rate_per_s / families / num_regions),
            ),
        ]
        return cls(
            num_regions=num_regions,
            num_profiles=profiles,
            num_families=families,
            features=(
                *in_order("region", rows),
                *in_order("global", fleet_rows(scenario, observe_clock)),
            ),
        )

    @property
    def region_features(self) -> int:
        """K, columns of the region block."""
        return self.row_features

    def region_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the region block ``[..., R, K]`` of flat observations ``[..., R·K + G]``."""
        return self.row_block(observation)


class RegionObserver:
    """Keeps the demand estimates of one episode and writes its observations by region.

    Parameters
    ----------
    scenario : Scenario
    layout : RegionLayout
        Of that scenario.
    grid : RegionGrid
        The regions of that layout.
    num_nodes : int, optional
        Nodes of the demand estimates; the most that the scenario may have if omitted.
    reference : Scenario, optional
        The scenario that the layout's scales come from; the same if omitted.

    Notes
    -----
    Used as :class:`~edgegym.interface.observation.Observer`, whose estimates and global block it
    takes over.
    """

    def __init__(
        self,
        scenario: "Scenario",
        layout: RegionLayout,
        grid: "RegionGrid",
        *,
        num_nodes: int | None = None,
        reference: "Scenario | None" = None,
    ) -> None:
        self._layout = layout
        self._grid = grid
        usual = scenario if reference is None else reference
        self._node_layout = ObservationLayout.from_scenario(
            usual, observe_clock=layout.observes_clock
        ).with_num_nodes(scenario.max_nodes if num_nodes is None else num_nodes)
        self._nodes = Observer(scenario, self._node_layout, usual)
        self._scales = np.concatenate(
            [np.full(f.size, np.nan if f.scale is None else f.scale) for f in layout.features]
        )[: layout.region_features]
        self._columns = {f.name: f.columns for f in layout.features if f.scope == "region"}

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, shape [N, F] (a copy)."""
        return self._nodes.demand_per_s

    def reset(self, state: Any, b: int = 0) -> None:
        """Start an episode: see :meth:`Observer.reset`."""
        self._nodes.reset(state, b)

    def update(self, nearest_demand: "NDArray[np.int64]", seconds: float) -> None:
        """Take the requests of a window into the estimates: see :meth:`Observer.update`."""
        self._nodes.update(nearest_demand, seconds)

    def observe(self, state: Any, bucket_level_bytes: float, b: int = 0) -> "NDArray[np.float32]":
        """Return a fresh flat observation.

        Parameters
        ----------
        state : FleetState
        bucket_level_bytes : float
            What moves may cost now.
        b : int
            Row of the state's environment axis.

        Returns
        -------
        ndarray of float32, shape [R·K + G]
            Finite and within [0, 1].
        """
        layout = self._layout
        values = self._region_values(state, b)
        squashed = ~np.isnan(self._scales)
        with np.errstate(invalid="ignore"):
            ratio = values / (values + self._scales)
        below = np.minimum(ratio.astype(np.float32), _BELOW_ONE)
        rows = np.where(squashed, below, values.astype(np.float32))
        fleet = self._node_layout.global_block(self._nodes.observe(state, bucket_level_bytes, b))
        out = np.empty(layout.size, dtype=np.float32)
        layout.region_block(out)[...] = rows
        layout.global_block(out)[...] = fleet
        return out

    def _region_values(self, state: Any, b: int) -> "NDArray[np.float64]":
        """Return the features of the regions in their units, ``[R, K]``."""
        regions, profiles = self._grid.size, self._layout.num_profiles
        count = int(state.node_count[b])
        region = self._grid.of(state.node_x[b, :count], state.node_y[b, :count])
        up, profile = state.up[b, :count], state.profile[b, :count]
        slots = state.slots[b, :count]
        serves = up & (slots > 0).any(axis=1)
        nodes = np.bincount(region[serves], minlength=regions)
        held = np.bincount(
            region[serves] * profiles + profile[serves], minlength=regions * profiles
        ).reshape(regions, profiles)
        receiving = np.bincount(region[serves & state.receiving[b, :count]], minlength=regions)
        requests = (state.active[b] + state.queued[b] + state.in_flight[b])[:count]
        load = np.bincount(region[up], weights=requests[up], minlength=regions)
        capacity = np.bincount(
            region[up], weights=slots[np.arange(count), profile][up], minlength=regions
        )
        some = np.maximum(nodes, 1)
        out = np.empty((regions, self._layout.region_features))
        columns = self._columns
        out[:, columns["nodes"]] = nodes[:, None]
        out[:, columns["share"]] = held / some[:, None]
        backlog = load / np.where(capacity > 0.0, capacity, _NO_SLOTS)
        out[:, columns["backlog"]] = backlog[:, None]
        out[:, columns["receiving"]] = (receiving / some)[:, None]
        demand = np.zeros((regions, self._layout.num_families))
        np.add.at(demand, region, self._nodes.demand_per_s[:count])
        out[:, columns["demand"]] = demand
        return out

    def get_state(self) -> dict[str, Any]:
        """Return the estimates and neighbourhoods as plain arrays (copies)."""
        return self._nodes.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_state` returned (of the same scenario)."""
        self._nodes.set_state(state)
