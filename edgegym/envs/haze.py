"""The density of requests over a region, as a picture."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_GRID = 48  # places at which the density is computed, each way


class DemandHaze:
    """Spreads the demand at each node around it, and colours it by families.

    Parameters
    ----------
    region : Region
    x_km, y_km : ndarray, shape [nodes]
        Places of the nodes.
    width_km : float
        Standard deviation of the Gaussian around each node.
    mean_rate : float
        Long-run requests/s per node: it sets the shade.
    family_rgb : ndarray, shape [F, 3]
        Colours, 0 to 1.
    shape_px : tuple of int
        Height and width of the picture.
    """

    def __init__(
        self,
        *,
        region: Any,
        x_km: "NDArray[np.float64]",
        y_km: "NDArray[np.float64]",
        width_km: float,
        mean_rate: float,
        family_rgb: "NDArray[np.float64]",
        shape_px: tuple[int, int],
    ) -> None:
        middle = (np.arange(_GRID) + 0.5) / _GRID
        dx = np.abs(middle[:, None] * region.width_km - x_km)
        # Rows of a picture go down, y goes up.
        dy = np.abs(middle[::-1, None] * region.height_km - y_km)
        if region.periodic:
            dx = np.minimum(dx, region.width_km - dx)
            dy = np.minimum(dy, region.height_km - dy)
        in_x = np.exp(-0.5 * (dx / width_km) ** 2)
        in_y = np.exp(-0.5 * (dy / width_km) ** 2)
        spread = (in_y[:, None] * in_x[None]).reshape(_GRID * _GRID, -1)
        # Uniform demand has about the same shade whatever the number of nodes.
        density = len(x_km) / region.area_km2
        per_rate = 1.0 / (2.0 * math.pi * width_km**2 * density * mean_rate)
        self._spread = (spread * per_rate).astype(np.float32)
        self._mean_rate = mean_rate
        self._family_rgb = family_rgb.astype(np.float32)
        self._rows, self._columns = (_between(pixels) for pixels in shape_px)

    def picture(self, demand_per_s: "NDArray[np.float64]") -> "NDArray[np.uint8]":
        """Return the picture ``[height, width, 3]`` of a demand estimate ``[nodes, F]``."""
        rate = self._spread @ demand_per_s.astype(np.float32)
        # What a place asks for more than the fleet does shows its colour; the rest only its shade.
        usual = np.maximum(demand_per_s.mean(axis=0) / self._mean_rate, 1e-12).astype(np.float32)
        weight = rate * (rate / usual) ** 2
        color = weight @ self._family_rgb
        color /= np.maximum(weight.sum(axis=1, keepdims=True), 1e-12)
        shade = 0.8 * -np.expm1(-0.6 * rate.sum(axis=1, keepdims=True))
        grid = 255.0 * (1.0 - shade * (1.0 - color)).clip(0.0, 1.0).reshape(_GRID, _GRID, 3)
        low, high, part = self._rows
        tall = grid[low] + part[:, None, None] * (grid[high] - grid[low])
        low, high, part = self._columns
        wide = tall[:, low] + part[:, None] * (tall[:, high] - tall[:, low])
        return wide.astype(np.uint8)


def _between(
    pixels: int,
) -> "tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float32]]":
    """Return the grid places around each pixel and how far it is from the first to the second."""
    at = np.clip((np.arange(pixels) + 0.5) / pixels * _GRID - 0.5, 0.0, _GRID - 1.0)
    low = np.minimum(at.astype(np.intp), _GRID - 2)
    return low, low + 1, (at - low).astype(np.float32)
