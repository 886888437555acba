"""Pictures of a fleet: a map of nodes and demand beside charts of coverage and load."""

import math
from dataclasses import dataclass
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


@dataclass(frozen=True, kw_only=True)
class _Scene:
    """The figure of one episode: a picture of what stays, and the parts that move."""

    canvas: Any
    static: Any
    fleet_map: FleetMap
    legend: Legend
    coverage: StripChart
    load: StripChart
    clock: Any

    @property
    def moving(self) -> list[Any]:
        """Artists to draw in each frame, in order."""
        parts = (self.fleet_map, self.legend, self.coverage, self.load)
        return [*(artist for part in parts for artist in part.moving), self.clock]


class FleetRenderer:
    """Draws the fleets of a scenario with Agg; no display, no global state of matplotlib.

    What stays (axes, legend) is drawn once an episode; a frame redraws only what moves.

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
        self._scene: _Scene | None = None
        self._window: Window | None = None

    def start(self, scenario: "Scenario") -> None:
        """Begin an episode: forget the charts and the places of the nodes.

        Parameters
        ----------
        scenario : Scenario
            What it plays.
        """
        if scenario is not self._scenario:
            self._scenario, self._palette = scenario, make_palette(scenario)
        self._minutes, self._coverage, self._load = [], [], []
        self._scene = None

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
        if self._scene is None:
            self._scene = self._build(fleet)
        scene = self._scene
        scene.canvas.restore_region(scene.static)
        # The haze lies under all artists: it goes straight into the canvas.
        pixels = np.asarray(scene.canvas.buffer_rgba())
        fleet_map = scene.fleet_map
        pixels[fleet_map.rows, fleet_map.columns, :3] = fleet_map.haze(demand_per_s)
        fleet_map.update(fleet)
        scene.legend.update(demand_per_s)
        scene.coverage.update(self._minutes, self._coverage)
        scene.load.update(self._minutes, self._load)
        elapsed_s = max(self._elapsed_s(fleet), 0.0)
        scene.clock.set_text(f"{int(elapsed_s // 60)} min {int(elapsed_s % 60):02d} s")
        for artist in scene.moving:
            scene.canvas.figure.draw_artist(artist)
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

    def _build(self, fleet: "Fleet") -> _Scene:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        scenario, palette = self._scenario, self._palette
        figure = Figure(figsize=(_WIDTH_PX / _DPI, _HEIGHT_PX / _DPI), dpi=_DPI, facecolor="white")
        canvas = FigureCanvasAgg(figure)
        text: dict[str, Any] = {"color": _INK, "va": "baseline"}
        figure.text(0.603, 0.935, scenario.name, size=15, weight="bold", **text)
        clock = figure.text(0.978, 0.935, "", size=12, ha="right", animated=True, **text)
        map_axes = figure.add_axes((0.012, 0.05, 0.57, 0.94))
        fleet_map = FleetMap(map_axes, scenario=scenario, fleet=fleet, palette=palette)
        legend_axes = figure.add_axes((0.605, 0.50, 0.38, 0.395))
        legend = Legend(legend_axes, scenario=scenario, palette=palette)
        horizon_min = scenario.control.horizon_epochs * scenario.control.epoch_s / 60.0
        coverage = StripChart(
            figure.add_axes((0.65, 0.30, 0.328, 0.14)),
            title=f"first token within {scenario.objective.ttft_target_s:g} s",
            unit="% of requests",
            horizon_min=horizon_min,
            color="#0072B2",
            time_axis=False,
        )
        load = StripChart(
            figure.add_axes((0.65, 0.085, 0.328, 0.14)),
            title="slots busy",
            unit="% of slots",
            horizon_min=horizon_min,
            color="#57606A",
            time_axis=True,
        )
        canvas.draw()
        return _Scene(
            canvas=canvas,
            static=canvas.copy_from_bbox(figure.bbox),
            fleet_map=fleet_map,
            legend=legend,
            coverage=coverage,
            load=load,
            clock=clock,
        )
