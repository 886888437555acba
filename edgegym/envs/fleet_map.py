"""The map of a fleet: what each node holds, how loaded it is, and where requests come from."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.haze import DemandHaze

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from edgegym.envs.palette import Palette
    from edgegym.simulator import Fleet
    from edgegym.world.scenario import Scenario

_INK = "#22272E"
_SOFT = "#6E7781"
BUSY_COLOR = "#3D444D"
QUEUE_COLOR = "#C1121F"
BUSY_RADIUS = 1.34  # in radii of a node's disc
QUEUE_RADIUS = 1.7
_TURN = np.linspace(0.0, 2.0 * math.pi, 37)


def arcs(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    radius: float,
    fraction: "NDArray[np.float64]",
) -> "NDArray[np.float64]":
    """Return arcs clockwise from the top, points of shape ``[n, 37, 2]``.

    Parameters
    ----------
    x, y : ndarray, shape [n]
        Centres.
    radius : float
    fraction : ndarray, shape [n]
        Of a full turn, 0 to 1.
    """
    angle = fraction[:, None] * _TURN
    return np.stack(
        [x[:, None] + radius * np.sin(angle), y[:, None] + radius * np.cos(angle)], axis=-1
    )


def pies(
    x: "NDArray[np.float64]",
    y: "NDArray[np.float64]",
    radius: float,
    fraction: "NDArray[np.float64]",
) -> "NDArray[np.float64]":
    """Return filled sectors clockwise from the top, ``[n, 38, 2]``; fraction 1 is a full disc."""
    rim = arcs(x, y, radius, fraction)
    # A full disc must not show the line from the centre to the top.
    hub = np.where(fraction >= 1.0, 0.0, 1.0)[:, None]
    centre = np.stack([x, y], axis=-1)
    hub_points = hub * centre + (1.0 - hub) * rim[:, 0]
    return np.concatenate([rim, hub_points[:, None]], axis=1)


class FleetMap:
    """Draws one fleet's map; :meth:`update` changes only the moving artists.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Empty axes.
    scenario : Scenario
    fleet : Fleet
        Gives the places of the nodes, which stay.
    palette : Palette
    """

    def __init__(
        self, axes: "Axes", *, scenario: "Scenario", fleet: "Fleet", palette: "Palette"
    ) -> None:
        from matplotlib.colors import to_rgba_array

        region = scenario.region
        count = int(fleet.state.node_count[0])
        self._count = count
        self._x = fleet.state.node_x[0, :count].copy()
        self._y = fleet.state.node_y[0, :count].copy()
        # Nodes without a GPU only route: they hold nothing, and have no slots to be busy.
        self._serving = (fleet.state.slots[0, :count] > 0).any(axis=1)
        self._profile_rgba = to_rgba_array(palette.profile_color)
        self._dot_rgba = to_rgba_array(palette.profile_dot)
        spacing_km = math.sqrt(region.area_km2 / max(count, 16))
        self._radius_km = 0.15 * spacing_km

        # Nodes at the edge are drawn whole.
        margin_km = QUEUE_RADIUS * self._radius_km
        axes.set_axis_off()
        axes.set_aspect("equal", anchor="W")
        axes.set_xlim(-margin_km, region.width_km + margin_km)
        axes.set_ylim(-margin_km, region.height_km + margin_km)
        axes.apply_aspect()
        corners = axes.transData.transform([(0.0, 0.0), (region.width_km, region.height_km)])
        (left, bottom), (right, top) = np.rint(corners).astype(int)
        height_px = round(axes.figure.bbox.height)
        self.rows = slice(height_px - top, height_px - bottom)
        self.columns = slice(left, right)
        self._haze = DemandHaze(
            region=region,
            x_km=self._x,
            y_km=self._y,
            width_km=0.5 * spacing_km,
            mean_rate=float(fleet.world.mean_rate_per_s) / scenario.mean_nodes,
            family_rgb=palette.family_rgb,
            shape_px=(top - bottom, right - left),
        )
        _scale_bar(axes, region, count, 1.25 * margin_km)
        self.moving: list[Any] = []
        self._add_nodes(axes, self._radius_km * (right - left) / region.width_km, region)

    def _add_nodes(self, axes: "Axes", radius_px: float, region: Any) -> None:
        """Create the artists of the nodes, in the order in which they are drawn."""
        from matplotlib.collections import LineCollection, PolyCollection
        from matplotlib.patches import Rectangle

        pixel = 72.0 / axes.figure.dpi  # in points
        ring = pixel * min(max(0.22 * radius_px, 1.2), 3.2)
        shared: dict[str, Any] = {"animated": True, "clip_on": False}

        def marks(which: Any, scale: float, **style: Any) -> Any:
            area = (2.0 * scale * radius_px * pixel) ** 2  # of the square around, in points²
            return axes.scatter(self._x[which], self._y[which], s=area, **style, **shared)

        def discs(scale: float, **style: Any) -> Any:
            return marks(self._serving, scale, **style)

        def added(collection: Any) -> Any:
            return axes.add_collection(collection, autolim=False)

        border = Rectangle((0.0, 0.0), region.width_km, region.height_km, fill=False, animated=True)
        border.set_edgecolor("#AFB8C1")
        axes.add_patch(border)
        halo = discs(1.6, facecolors="#FFFFFFC0", linewidths=0)
        self._disc = discs(1.0, linewidths=0)
        self._pie = added(PolyCollection([], linewidths=0, **shared))
        edge = discs(1.0, facecolors="none", edgecolors=_INK, linewidths=0.9 * pixel)
        self._busy = added(LineCollection([], colors=BUSY_COLOR, linewidths=ring, **shared))
        self._queue = added(LineCollection([], colors=QUEUE_COLOR, linewidths=ring, **shared))
        self._dot = discs(0.23, linewidths=0)
        bare = marks(~self._serving, 0.6, marker="s", facecolors="white", edgecolors=_INK)
        self._down = marks(slice(None), 0.75, marker="x", color=_INK)
        self.moving = [border, halo, self._disc, self._pie, edge]
        self.moving += [self._busy, self._queue, self._dot, bare, self._down]

    def haze(self, demand_per_s: "NDArray[np.float64]") -> "NDArray[np.uint8]":
        """Return the picture under the nodes, for the pixels ``[rows, columns]`` of the figure."""
        return self._haze.picture(demand_per_s[: self._count])

    def update(self, fleet: "Fleet") -> None:
        """Show what nodes hold, receive, run and queue."""
        count, state = self._count, fleet.state
        up, profile = state.up[0, :count], state.profile[0, :count]
        slots = np.maximum(state.slots[0, np.arange(count), profile], 1)
        whole = up & ~state.receiving[0, :count]
        part = up & state.receiving[0, :count] & self._serving
        held = np.where(whole[:, None], self._profile_rgba[profile], 1.0)
        self._disc.set_facecolors(held[self._serving])
        received = _received_fraction(fleet, part)
        self._pie.set_verts(list(pies(self._x[part], self._y[part], self._radius_km, received)))
        self._pie.set_facecolors(self._profile_rgba[profile[part]])
        self._busy.set_segments(self._ring(BUSY_RADIUS, up * state.active[0, :count] / slots))
        self._queue.set_segments(self._ring(QUEUE_RADIUS, up * state.queued[0, :count] / slots))
        self._dot.set_facecolors((self._dot_rgba[profile] * up[:, None])[self._serving])
        self._down.set_offsets(np.column_stack([self._x[~up], self._y[~up]]))

    def _ring(self, radius: float, fraction: "NDArray[np.float64]") -> list[Any]:
        """Return an arc for each node with a positive fraction of a full turn."""
        some = fraction > 0.0
        turn = np.minimum(fraction[some], 1.0)
        return list(arcs(self._x[some], self._y[some], radius * self._radius_km, turn))


def _received_fraction(fleet: "Fleet", receiving: "NDArray[np.bool_]") -> "NDArray[np.float64]":
    """Return the fraction that has arrived at each receiving node; 0 while it drains."""
    count = len(receiving)
    start = fleet.state.transfer_start_s[0, :count][receiving]
    end = fleet.state.transfer_end_s[0, :count][receiving]
    flowing = np.isfinite(end)
    received = np.zeros(len(end))
    span_s = np.maximum(end[flowing] - start[flowing], 1e-9)
    received[flowing] = (fleet.now_s - start[flowing]) / span_s
    return received.clip(0.0, 1.0)


def _scale_bar(axes: "Axes", region: Any, count: int, below_km: float) -> None:
    """Draw a bar of a round length under the map, and say how many nodes there are."""
    longest_km = region.width_km / 4.0
    power = 10.0 ** math.floor(math.log10(longest_km))
    length_km = max(step * power for step in (1.0, 2.0, 5.0) if step * power <= longest_km)
    axes.plot([0.0, length_km], [-below_km, -below_km], color=_INK, linewidth=2, clip_on=False)
    scale = f"{length_km:g} km" + (", edges wrap around" if region.periodic else "")
    nodes = "1 node" if count == 1 else f"{count} nodes"
    style = {"size": 8.5, "color": _SOFT, "va": "center_baseline"}
    axes.text(length_km + 0.015 * region.width_km, -below_km, scale, **style)
    axes.text(region.width_km, -below_km, nodes, ha="right", **style)
