"""What the colours and rings of a fleet's map mean, and the mix of the requests."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.fleet_map import BUSY_COLOR, BUSY_RADIUS, QUEUE_COLOR, QUEUE_RADIUS, arcs, pies

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from edgegym.envs.palette import Palette
    from edgegym.world.scenario import Scenario

_INK = "#22272E"
_SOFT = "#6E7781"
_RIGHT_PX = 182.0  # left edge of the right column
_USUAL_STEP_PX, _LEAST_STEP_PX = 21.0, 15.0  # between two profiles
_BAR_PX = (176.0, 172.0, 11.0)  # top, width, height of the bar


class Legend:
    """Draws the legend; its bar moves with the mix of the requests.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Empty axes.
    scenario : Scenario
        Names the profiles.
    palette : Palette
    """

    def __init__(self, axes: "Axes", *, scenario: "Scenario", palette: "Palette") -> None:
        from matplotlib.patches import Rectangle

        box = axes.get_window_extent()
        axes.set_xlim(0.0, box.width)
        axes.set_ylim(box.height, 0.0)
        axes.set_axis_off()
        _draw_profiles(axes, scenario.profile_names, palette, box.height)
        _draw_rings(axes)
        if not all(item.gpu for item in scenario.node_classes):
            axes.text(_RIGHT_PX + 64.0, 104.0, "square: no GPU", size=8.5, color=_SOFT, va="center")
        top, _, height = _BAR_PX
        self._parts = [
            Rectangle(
                (_RIGHT_PX, top),
                0.0,
                height,
                facecolor=tuple(color),
                edgecolor="white",
                linewidth=0.6,
                animated=True,
            )
            for color in palette.family_rgb
        ]
        for part in self._parts:
            axes.add_patch(part)
        self.moving: list[Any] = list(self._parts)

    def update(self, demand_per_s: "NDArray[np.float64]") -> None:
        """Show the mix of a demand estimate ``[N, F]``."""
        family = demand_per_s.sum(axis=0)
        width = _BAR_PX[1] * family / max(float(family.sum()), 1e-12)
        for part, left, wide in zip(self._parts, np.cumsum(width) - width, width, strict=True):
            part.set_x(_RIGHT_PX + left)
            part.set_width(wide)


def _draw_profiles(
    axes: "Axes", names: tuple[str, ...], palette: "Palette", height_px: float
) -> None:
    """List the profiles: closer if there are many, then in two columns, then as many as fit."""
    axes.text(0.0, 10.0, "a node holds", size=9, color=_SOFT, va="center")
    room_px = height_px - 24.0
    step_px = min(max(room_px / len(names), _LEAST_STEP_PX), _USUAL_STEP_PX)
    rows = int(room_px // step_px)
    columns = 1 if len(names) <= rows else 2
    letters = 20 if columns == 1 else 9
    size = 9.0 if step_px == _USUAL_STEP_PX else 8.0
    disc = min(10.0, 0.5 * step_px)
    shown = names if len(names) <= 2 * rows else names[: 2 * rows - 1]

    def place(k: int) -> tuple[float, float]:
        return 8.0 + 92.0 * (k // rows), 20.0 + step_px * (k % rows + 0.5)

    for k, name in enumerate(shown):
        x, y = place(k)
        axes.plot(
            [x], [y], "o", markersize=disc, markerfacecolor=palette.profile_color[k],
            markeredgecolor=_INK, markeredgewidth=0.7,
        )  # fmt: skip
        if palette.profile_dot[k] != "none":
            axes.plot([x], [y], "o", markersize=0.4 * disc, color=palette.profile_dot[k])
        axes.text(x + 13.0, y, shortened(name, letters), size=size, color=_INK, va="center")
    if len(shown) < len(names):
        x, y = place(len(shown))
        axes.text(x, y, f"+ {len(names) - len(shown)} more", size=size, color=_SOFT, va="center")


def shortened(name: str, letters: int) -> str:
    """Return a name of at most so many letters; its end, where names differ, is kept.

    Parameters
    ----------
    name : str
        Any name.
    letters : int
        At least 3.
    """
    if len(name) <= letters:
        return name
    head = (letters - 1) // 3
    return f"{name[:head]}…{name[len(name) - (letters - 1 - head) :]}"


def _draw_rings(axes: "Axes") -> None:
    """Explain the rings with an enlarged node."""
    from matplotlib.collections import LineCollection, PolyCollection

    radius = 15.0
    x, y = np.array([_RIGHT_PX + 28.0]), np.array([62.0])
    # The y axis points down here: arcs are drawn upside down unless mirrored.
    mirror = np.array([1.0, -1.0])
    offset = np.array([0.0, 2.0 * y[0]])
    full, busy, queue, pie = (np.array([value]) for value in (1.0, 0.72, 0.3, 0.62))
    axes.text(_RIGHT_PX, 10.0, "how to read it", size=9, color=_SOFT, va="center")
    disc = arcs(x, y, radius, full)
    axes.add_collection(PolyCollection(list(disc), facecolors="white", linewidths=0))
    sector = pies(x, y, radius, pie) * mirror + offset
    axes.add_collection(PolyCollection(list(sector), facecolors="#A3A3A3", linewidths=0))
    axes.add_collection(LineCollection(list(disc), colors=_INK, linewidths=0.7))
    for scale, fraction, color in (
        (BUSY_RADIUS, busy, BUSY_COLOR),
        (QUEUE_RADIUS, queue, QUEUE_COLOR),
    ):
        ring = arcs(x, y, scale * radius, fraction) * mirror + offset
        axes.add_collection(LineCollection(list(ring), colors=color, linewidths=2.3))
    labels = (
        ("queue; a full ring:", QUEUE_COLOR, 36.0),
        ("one per slot", QUEUE_COLOR, 50.0),
        ("slots busy", BUSY_COLOR, 68.0),
        ("pie: on its way", _SOFT, 86.0),
    )
    for text, color, at in labels:
        axes.text(_RIGHT_PX + 64.0, at, text, size=8.5, color=color, va="center")
    axes.text(
        _RIGHT_PX,
        119.0,
        "haze: where requests are\nbar: their mix, coloured by the\nprofile that serves them best",
        size=8.5,
        color=_INK,
        va="top",
        linespacing=1.35,
    )
