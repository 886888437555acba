"""Pictures of a fleet: a map of nodes and demand beside charts of coverage and load."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.charts import StripChart
from edgegym.envs.fleet_map import FleetMap
from edgegym.envs.legend import Legend
from edgegym.envs.palette import make_palette
from edgegym.envs.window import Window

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.simulator import Fleet
    from edgegym.world.scenario import Scenario

_WIDTH_PX, _HEIGHT_PX = 960, 540
_DPI = 100
_INK = "#22272E"


class FleetRenderer:
    """Draws the fleets of one scenario with Agg; no display, no global state of matplotlib.

    Static parts (axes, legend) are drawn once an episode; a frame redraws only what moves.

    Parameters
    ----------
    scenario : Scenario
    """

    def __init__(self, scenario: "Scenario") -> None:
        self._scenario = scenario
        self._palette = make_palette(scenario)
        self._minutes: list[float] = []
        self._coverage: list[float] = []
        self._load: list[float] = []
        self._canvas: Any = None
        self._static: Any = None
        self._map: FleetMap | None = None
        self._legend: Legend | None = None
        self._charts: tuple[StripChart, ...] = ()
        self._clock: Any = None
        self._window: Window | None = None

    def start(self, fleet: "Fleet") -> None:
        """Begin an episode: forget the charts and place the nodes."""
        self._minutes, self._coverage, self._load = [], [], []
        self._build(fleet)

    def record(self, fleet: "Fleet", epoch: dict[str, int | float]) -> None:
        """Add an epoch's values (of ``edgegym.envs.info.EPOCH_KEYS``) to the charts."""
        decided = epoch["decided"]
        self._minutes.append(self._elapsed_s(fleet) / 60.0)
        self._coverage.append(100.0 * epoch["hits"] / decided if decided else math.nan)
        self._load.append(100.0 * epoch["utilization"])

    def draw(self, fleet: "Fleet", demand_per_s: "NDArray[np.float64]") -> "NDArray[np.uint8]":
        """Return a picture of the fleet now.

        Parameters
        ----------
        fleet : Fleet
        demand_per_s : ndarray, shape [N, F]
            Requests/s nearest to each node, by family.

        Returns
        -------
        ndarray of uint8, shape [540, 960, 3]
        """
        if self._canvas is None:
            self._build(fleet)
        assert self._map is not None
        assert self._legend is not None
        canvas = self._canvas
        canvas.restore_region(self._static)
        pixels = np.asarray(canvas.buffer_rgba())
        pixels[self._map.rows, self._map.columns, :3] = self._map.haze(demand_per_s)
        self._map.update(fleet)
        self._legend.update(demand_per_s)
        for chart, values in zip(self._charts, (self._coverage, self._load), strict=True):
            chart.update(self._minutes, values)
        elapsed_s = max(self._elapsed_s(fleet), 0.0)
        self._clock.set_text(f"{int(elapsed_s // 60)} min {int(elapsed_s % 60):02d} s")
        for artist in self._moving_artists():
            canvas.figure.draw_artist(artist)
        return pixels[:, :, :3].copy()

    def show(self, fleet: "Fleet", demand_per_s: "NDArray[np.float64]") -> None:
        """Show the picture in a window, if there is a display."""
        if self._window is None:
            self._window = Window(f"edgegym: {self._scenario.name}")
        if self._window.is_open:
            self._window.show(self.draw(fleet, demand_per_s))

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._window is not None:
            self._window.close()

    def _elapsed_s(self, fleet: "Fleet") -> float:
        return fleet.now_s - self._scenario.initial.warmup_s

    def _moving_artists(self) -> list[Any]:
        assert self._map is not None
        assert self._legend is not None
        charts = [artist for chart in self._charts for artist in chart.moving]
        return [*self._map.moving, *self._legend.moving, *charts, self._clock]

    def _build(self, fleet: "Fleet") -> None:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        figure = Figure(figsize=(_WIDTH_PX / _DPI, _HEIGHT_PX / _DPI), dpi=_DPI, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        text = {"color": _INK, "va": "baseline"}
        figure.text(0.603, 0.935, self._scenario.name, size=15, weight="bold", **text)
        self._clock = figure.text(0.978, 0.935, "", size=12, ha="right", animated=True, **text)
        self._map = FleetMap(
            figure.add_axes((0.012, 0.05, 0.57, 0.94)),
            scenario=self._scenario,
            fleet=fleet,
            palette=self._palette,
        )
        self._legend = Legend(
            figure.add_axes((0.605, 0.50, 0.38, 0.395)),
            scenario=self._scenario,
            palette=self._palette,
        )
        control = self._scenario.control
        horizon_min = control.horizon_epochs * control.epoch_s / 60.0
        self._charts = (
            StripChart(
                figure.add_axes((0.65, 0.30, 0.328, 0.14)),
                title=f"first token within {self._scenario.objective.ttft_target_s:g} s",
                unit="% of requests",
                horizon_min=horizon_min,
                color="#0072B2",
                time_axis=False,
            ),
            StripChart(
                figure.add_axes((0.65, 0.085, 0.328, 0.14)),
                title="slots busy",
                unit="% of slots",
                horizon_min=horizon_min,
                color="#57606A",
                time_axis=True,
            ),
        )
        canvas.draw()
        self._canvas = canvas
        self._static = canvas.copy_from_bbox(figure.bbox)
