"""A strip chart: one percentage over the minutes of an episode."""

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

_INK = "#22272E"
_SOFT = "#6E7781"


class StripChart:
    """Draws a percentage against minutes; :meth:`update` changes only the moving artists.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
        Empty axes.
    title, unit : str
        What is shown, and of what it is a percentage.
    horizon_min : float
        Right end of the time axis, minutes.
    color : str
        Of the line.
    time_axis : bool
        Whether the minutes are labelled.
    """

    def __init__(
        self,
        axes: "Axes",
        *,
        title: str,
        unit: str,
        horizon_min: float,
        color: str,
        time_axis: bool,
    ) -> None:
        axes.set_xlim(0.0, horizon_min)
        axes.set_ylim(0.0, 100.0)
        axes.set_yticks([0, 50, 100])
        axes.grid(axis="y", color="#E1E4E8", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(colors=_SOFT, labelsize=8, length=2.5)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        for side in ("left", "bottom"):
            axes.spines[side].set_color("#AFB8C1")
        axes.set_ylabel(unit, size=8, color=_SOFT)
        axes.set_title(title, loc="left", size=9, color=_INK, pad=5)
        axes.locator_params(axis="x", nbins=6)
        if time_axis:
            axes.set_xlabel("minutes", size=8, color=_SOFT, labelpad=1)
        else:
            axes.tick_params(labelbottom=False)
        self._horizon_min = horizon_min
        self._line = axes.plot([], [], color=color, linewidth=1.5, animated=True)[0]
        self._tip = axes.plot([], [], "o", color=color, markersize=4, animated=True)[0]
        self._value = axes.text(
            1.0, 1.07, "", transform=axes.transAxes, ha="right", size=11, weight="bold",
            color=color, animated=True,
        )  # fmt: skip
        self.moving: list[Any] = [self._line, self._tip, self._value]

    def update(self, minutes: "Sequence[float]", percent: "Sequence[float]") -> None:
        """Show a series; NaN leaves a gap."""
        self._line.set_data(minutes, percent)
        shown = [pair for pair in zip(minutes, percent, strict=True) if not math.isnan(pair[1])]
        self._tip.set_data([p[0] for p in shown[-1:]], [p[1] for p in shown[-1:]])
        self._value.set_text(f"{shown[-1][1]:.0f} %" if shown else "")
