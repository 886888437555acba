"""A fleet cut into regions: a grid of equal rectangles over the area."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario

_MOST_REGIONS = 1024


@dataclass(frozen=True, kw_only=True)
class RegionGrid:
    """Rows × columns equal rectangles; every place belongs to exactly one.

    Region ``row * columns + column``, from the lower left corner, rows upwards.

    Attributes
    ----------
    rows, columns : int
        How often the height and the width are cut.
    width_km, height_km : float
        Size of the whole area.
    """

    rows: int
    columns: int
    width_km: float
    height_km: float

    @classmethod
    def from_scenario(cls, scenario: "Scenario", regions: Sequence[int] = (2, 2)) -> "RegionGrid":
        """Cut the area of a scenario.

        Parameters
        ----------
        scenario : Scenario
            Gives the area.
        regions : sequence of two int
            Rows and columns.

        Raises
        ------
        TypeError
            If `regions` isn't two whole numbers.
        ValueError
            If one is below 1, or there are more than 1024 regions.
        """
        rows, columns = _checked(regions)
        return cls(
            rows=rows,
            columns=columns,
            width_km=float(scenario.region.width_km),
            height_km=float(scenario.region.height_km),
        )

    @property
    def size(self) -> int:
        """R, the number of regions."""
        return self.rows * self.columns

    def of(self, x_km: "NDArray[np.float64]", y_km: "NDArray[np.float64]") -> "NDArray[np.int64]":
        """Return the region of each place.

        Parameters
        ----------
        x_km, y_km : ndarray, shape [N]
            Places within the area. A place on a border belongs to the region above and to the right
            of it, on the far border of the area to the last one.

        Returns
        -------
        ndarray of int64, shape [N]
        """
        row = (np.asarray(y_km) / self.height_km * self.rows).astype(np.int64)
        column = (np.asarray(x_km) / self.width_km * self.columns).astype(np.int64)
        return row.clip(0, self.rows - 1) * self.columns + column.clip(0, self.columns - 1)


def _checked(regions: Any) -> tuple[int, int]:
    whole = isinstance(regions, Sequence) and all(
        isinstance(number, int | np.integer) and not isinstance(number, bool) for number in regions
    )
    if not whole or len(regions) != 2:
        raise TypeError(
            f"regions is {regions!r}: it must be two whole numbers, rows and columns, as (2, 2)"
        )
    rows, columns = int(regions[0]), int(regions[1])
    if min(rows, columns) < 1 or rows * columns > _MOST_REGIONS:
        raise ValueError(
            f"regions is {regions!r}: rows and columns must be at least 1, and at most "
            f"{_MOST_REGIONS} regions in all"
        )
    return rows, columns
