"""What each number of a placement observation means, as data that policies and networks read."""

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario

DEMAND_EWMA_S = 30.0
"""Time constant of the demand estimates, in seconds."""

_LAYOUT_VERSION = 1
_Row = tuple[str, int, str, float | None]  # name, size, unit, scale
_DAY_S = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One named run of columns of an observation.

    Attributes
    ----------
    name : str
        Name, unique in its layout.
    scope : {"node", "global"}
        Whether each node has its own columns, or the whole fleet shares them.
    start, size : int
        Columns ``start : start + size`` of the block of its scope.
    unit : str
        Unit of the decoded value.
    scale : float or None
        The observation holds ``x / (x + scale)`` of a value ``x >= 0``; None: ``x`` itself, which
        lies in [0, 1].
    """

    name: str
    scope: Literal["node", "global"]
    start: int
    size: int
    unit: str
    scale: float | None

    @property
    def columns(self) -> slice:
        """Columns of this feature within the block of its scope."""
        return slice(self.start, self.start + self.size)


def _significant(value: float, digits: int = 6) -> float:
    """Round to `digits` significant digits, so that equal worlds of other sizes hash alike."""
    return float(f"{value:.{digits}g}")


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


@dataclass(frozen=True, kw_only=True)
class ObservationLayout:
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
    num_profiles: int
    num_families: int
    features: tuple[Feature, ...]

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
        demand_scale = _significant(world.mean_rate_per_s / world.mean_nodes / families)
        capacity_scale = _significant(float(np.mean(world.slots)) / profiles)
        node: list[_Row] = [
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
        fleet: list[_Row] = [
            (
                "family_demand",
                families,
                "requests/s of the family over long-run requests/s of all",
                _significant(1.0 / families),
            ),
            ("profile_share", profiles, "fraction of up nodes", None),
            ("bucket", 1, "fraction of the burst", None),
            ("load", 1, "requests per slot, whole fleet", 1.0),
        ]
        if observe_clock:
            fleet.append(("clock", 2, "(1 + sine) / 2 and (1 + cosine) / 2", None))
        features: list[Feature] = []
        scopes: tuple[tuple[Literal["node", "global"], list[_Row]], ...]
        scopes = (("node", node), ("global", fleet))
        for scope, rows in scopes:
            start = 0
            for name, size, unit, scale in rows:
                features.append(
                    Feature(name=name, scope=scope, start=start, size=size, unit=unit, scale=scale)
                )
                start += size
        return cls(
            num_nodes=int(world.max_nodes),
            num_profiles=profiles,
            num_families=families,
            features=tuple(features),
        )

    @property
    def node_features(self) -> int:
        """K, columns of the node block."""
        return sum(f.size for f in self.features if f.scope == "node")

    @property
    def global_features(self) -> int:
        """G, length of the global block."""
        return sum(f.size for f in self.features if f.scope == "global")

    @property
    def size(self) -> int:
        """Length of a flat observation, N·K + G."""
        return self.num_nodes * self.node_features + self.global_features

    @property
    def observes_clock(self) -> bool:
        """Whether the global block ends with the clock."""
        return any(f.name == "clock" for f in self.features)

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that name everything a network relies on, except N."""
        content = self.to_dict()
        del content["num_nodes"]
        content["demand_ewma_s"] = DEMAND_EWMA_S
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def feature(self, name: str) -> Feature:
        """Return the feature of that name.

        Raises
        ------
        KeyError
            If the layout has no such feature; the message lists those it has.
        """
        for feature in self.features:
            if feature.name == name:
                return feature
        known = ", ".join(f.name for f in self.features)
        raise KeyError(f"the observation has no feature {name!r}; it has {known}")

    def column(self, name: str) -> slice:
        """Return the columns of a feature within the block of its scope."""
        return self.feature(name).columns

    def node_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the node block ``[..., N, K]`` of flat observations ``[..., N·K + G]``."""
        self._check_size(observation)
        flat = observation[..., : self.num_nodes * self.node_features]
        return flat.reshape(*observation.shape[:-1], self.num_nodes, self.node_features)

    def global_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the global block ``[..., G]`` of flat observations ``[..., N·K + G]``."""
        self._check_size(observation)
        return observation[..., self.num_nodes * self.node_features :]

    def decode(self, observation: "NDArray[Any]", name: str) -> "NDArray[np.float64]":
        """Return a feature in its physical unit.

        Parameters
        ----------
        observation : ndarray, shape [..., N·K + G]
            Flat observations.
        name : str
            Name of a feature.

        Returns
        -------
        ndarray of float64, shape [..., N, size] or [..., size]
            Exact up to the float32 of the observation. ``price`` is infinite for a profile that
            never fits the node and for any bytes against an empty bucket; all else is finite.

        Raises
        ------
        KeyError
            If the layout has no such feature.
        ValueError
            If the observation has another length.
        """
        feature = self.feature(name)
        block = self.node_block if feature.scope == "node" else self.global_block
        values = block(np.asarray(observation))[..., feature.columns].astype(np.float64)
        if feature.scale is None:
            return values
        with np.errstate(divide="ignore"):
            return feature.scale * values / (1.0 - values)

    def with_num_nodes(self, num_nodes: int) -> "ObservationLayout":
        """Return the same layout for another number of nodes."""
        if num_nodes < 1:
            raise ValueError(f"num_nodes is {num_nodes}: a layout has at least one node")
        return replace(self, num_nodes=num_nodes)

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain JSON data."""
        return {
            "version": _LAYOUT_VERSION,
            "num_nodes": self.num_nodes,
            "num_profiles": self.num_profiles,
            "num_families": self.num_families,
            "features": [asdict(feature) for feature in self.features],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "ObservationLayout":
        """Rebuild a layout from :meth:`to_dict`.

        Raises
        ------
        ValueError
            If the data are of another version of the layout.
        """
        if data.get("version") != _LAYOUT_VERSION:
            raise ValueError(
                f"layout version is {data.get('version')!r}: this edgegym reads {_LAYOUT_VERSION}"
            )
        return cls(
            num_nodes=data["num_nodes"],
            num_profiles=data["num_profiles"],
            num_families=data["num_families"],
            features=tuple(Feature(**feature) for feature in data["features"]),
        )

    def _check_size(self, observation: "NDArray[Any]") -> None:
        if observation.shape[-1:] != (self.size,):
            raise ValueError(
                f"observation has shape {observation.shape}: its last axis must be {self.size} "
                f"({self.num_nodes} nodes x {self.node_features} + {self.global_features})"
            )
