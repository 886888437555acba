"""Flat observations of named features: rows of one kind, then what the whole fleet shares."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

DEMAND_EWMA_S = 30.0
"""Time constant of the demand estimates, in seconds."""

Scope = Literal["node", "region", "candidate", "global"]
"""What a feature is about."""

Row = tuple[str, int, str, float | None]
"""Name, size, unit and scale of a feature."""

_LAYOUT_VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Feature:
    """One named run of columns of an observation.

    Attributes
    ----------
    name : str
        Name, unique in its layout.
    scope : {"node", "region", "candidate", "global"}
        Whether each node, region or candidate has its own columns, or all share them.
    start, size : int
        Columns ``start : start + size`` of the block of its scope.
    unit : str
        Unit of the decoded value.
    scale : float or None
        The observation holds ``x / (x + scale)`` of a value ``x >= 0``; None: ``x`` itself, which
        lies in [0, 1].
    """

    name: str
    scope: Scope
    start: int
    size: int
    unit: str
    scale: float | None

    @property
    def columns(self) -> slice:
        """Columns of this feature within the block of its scope."""
        return slice(self.start, self.start + self.size)


def significant(value: float, digits: int = 6) -> float:
    """Round to `digits` significant digits, so that equal worlds of other sizes hash alike."""
    return float(f"{value:.{digits}g}")


def in_order(scope: Scope, rows: Sequence[Row]) -> list[Feature]:
    """Return features of one scope, each beginning where the one before it ends."""
    features: list[Feature] = []
    start = 0
    for name, size, unit, scale in rows:
        features.append(
            Feature(name=name, scope=scope, start=start, size=size, unit=unit, scale=scale)
        )
        start += size
    return features


@dataclass(frozen=True, kw_only=True)
class BlockLayout:
    """Names, places, units and normalisers of a flat observation of R rows and a global block.

    A flat observation is the rows, ``[R, K]`` row-major, then the global block ``[G]``. All values
    lie in [0, 1].

    Attributes
    ----------
    num_profiles, num_families : int
        S and F.
    features : tuple of Feature
        In order, those of the rows first.
    """

    num_profiles: int
    num_families: int
    features: tuple[Feature, ...]

    scope: ClassVar[Scope]
    """What a row is about: the scope of its features."""
    count: ClassVar[str]
    """Name of the attribute that holds the number of rows."""

    @property
    def num_rows(self) -> int:
        """R, rows of the block that precedes the global one."""
        return getattr(self, self.count)

    @property
    def row_features(self) -> int:
        """K, columns of a row."""
        return sum(f.size for f in self.features if f.scope == self.scope)

    @property
    def global_features(self) -> int:
        """G, length of the global block."""
        return sum(f.size for f in self.features if f.scope == "global")

    @property
    def size(self) -> int:
        """Length of a flat observation, R·K + G."""
        return self.num_rows * self.row_features + self.global_features

    @property
    def observes_clock(self) -> bool:
        """Whether the global block ends with the clock."""
        return any(f.name == "clock" for f in self.features)

    @property
    def hash(self) -> str:
        """16 hexadecimal digits that name everything a network relies on."""
        content = self._relied_on() | {"demand_ewma_s": DEMAND_EWMA_S}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def _relied_on(self) -> dict[str, Any]:
        """Return what a network relies on."""
        return self.to_dict()

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

    def row_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the rows ``[..., R, K]`` of flat observations ``[..., R·K + G]``."""
        self._check_size(observation)
        flat = observation[..., : self.num_rows * self.row_features]
        return flat.reshape(*observation.shape[:-1], self.num_rows, self.row_features)

    def global_block(self, observation: "NDArray[Any]") -> "NDArray[Any]":
        """View the global block ``[..., G]`` of flat observations ``[..., R·K + G]``."""
        self._check_size(observation)
        return observation[..., self.num_rows * self.row_features :]

    def decode(self, observation: "NDArray[Any]", name: str) -> "NDArray[np.float64]":
        """Return a feature in its physical unit.

        Parameters
        ----------
        observation : ndarray, shape [..., R·K + G]
            Flat observations.
        name : str
            Name of a feature.

        Returns
        -------
        ndarray of float64, shape [..., R, size] or [..., size]
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
        block = self.global_block if feature.scope == "global" else self.row_block
        values = block(np.asarray(observation))[..., feature.columns].astype(np.float64)
        if feature.scale is None:
            return values
        with np.errstate(divide="ignore"):
            return feature.scale * values / (1.0 - values)

    def to_dict(self) -> dict[str, Any]:
        """Return the layout as plain JSON data."""
        return {
            "version": _LAYOUT_VERSION,
            self.count: self.num_rows,
            "num_profiles": self.num_profiles,
            "num_families": self.num_families,
            "features": [asdict(feature) for feature in self.features],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
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
        rows = {cls.count: data[cls.count]}
        return cls(
            **rows,
            num_profiles=data["num_profiles"],
            num_families=data["num_families"],
            features=tuple(Feature(**feature) for feature in data["features"]),
        )

    def _check_size(self, observation: "NDArray[Any]") -> None:
        if observation.shape[-1:] != (self.size,):
            raise ValueError(
                f"observation has shape {observation.shape}: its last axis must be {self.size} "
                f"({self.num_rows} {self.scope}s x {self.row_features} + {self.global_features})"
            )
