"""A study: what the router expects of the path taken and of the one not taken, and what comes."""

from typing import Any

import numpy as np

from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, ORANGE
from edgegym.figures.table import Table
from edgegym.figures.words import percent
from edgegym.simulator.calibration import Calibration, calibration_of, sample_rejected_paths
from edgegym.world.presets import preset
from edgegym.world.scenario import Scenario

_SIDE_KM = 10
_INTENSITY = 4.0
_WARM_UP_S, _SPAN_S, _HORIZON_S = 60.0, 60.0, 40.0
_SEED = 0
_REQUESTS_PER_SAMPLE = 50_000
_FEWEST, _MOST = 16, 200

_CASES: dict[str, dict[str, Any]] = {
    "live": {"telemetry.period_s": 0.0},
    "every 5 s": {"telemetry.period_s": 5.0},
    "every 5 s, with predict-on-route": {
        "telemetry.period_s": 5.0,
        "telemetry.predict_on_route": True,
    },
}
_STYLES: dict[str, dict[str, Any]] = {
    "taken": {"color": BLUE, "marker": "o"},
    "not taken": {"color": ORANGE, "marker": "s"},
}


def _scenario(changes: dict[str, Any]) -> Scenario:
    return preset("paper").with_overrides(
        {
            "region": {"width_km": float(_SIDE_KM), "height_km": float(_SIDE_KM)},
            "nodes": {"count": _SIDE_KM**2},
            "demand.request_intensity": _INTENSITY,
            **changes,
        }
    )


def compute(effort: Effort, report: Report) -> Table:
    """Return predicted and realised TTFT of sampled requests on both paths, case by case."""
    samples = min(max(effort.requests // _REQUESTS_PER_SAMPLE, _FEWEST), _MOST)
    rows: list[dict[str, Any]] = []
    for case, changes in _CASES.items():
        report(f"telemetry {case}")
        paths = sample_rejected_paths(
            _scenario(changes),
            _SEED,
            samples=samples,
            warmup_s=_WARM_UP_S,
            seconds=_SPAN_S,
            horizon_s=_HORIZON_S,
        )
        for path, predicted, realised in (
            ("taken", paths.chosen_predicted_s, paths.chosen_realised_s),
            ("not taken", paths.rejected_predicted_s, paths.rejected_realised_s),
        ):
            rows += [
                {
                    "telemetry": case,
                    "path": path,
                    "request": request,
                    "predicted_s": expected,
                    "realised_s": came,
                    "others_s": others if path == "not taken" else 0.0,
                }
                for request, expected, came, others in zip(
                    paths.request, predicted, realised, paths.others_s, strict=True
                )
            ]
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def calibration(table: Table, case: str, path: str) -> Calibration:
    """Return bias, scatter and correlation of one case and path."""
    rows = table.where(telemetry=case, path=path)
    return calibration_of(path, rows["predicted_s"], rows["realised_s"])


def draw(canvas: Any, table: Table) -> None:
    """Draw realised over predicted TTFT, a point for each sampled request and path."""
    axes = canvas.subplots(1, len(_CASES), sharex=True, sharey=True)
    most = 1.05 * float(np.nanmax([table["predicted_s"], table["realised_s"]]))
    for axis, case in zip(axes, _CASES, strict=True):
        axis.plot([0.0, most], [0.0, most], color="0.6", linewidth=1.0)
        for path, style in _STYLES.items():
            rows = table.where(telemetry=case, path=path)
            found = calibration(table, case, path)
            label = f"{path}: bias {found.bias_s:+.2f} s, scatter {found.scatter_s:.2f} s"
            axis.scatter(
                rows["predicted_s"],
                rows["realised_s"],
                s=14,
                alpha=0.6,
                linewidths=0.0,
                label=label,
                **style,
            )
        axis.set_title(f"reports {case}", fontsize=9)
        axis.set_xlabel("TTFT that the router expected, s")
        axis.legend(loc="upper left", fontsize=7.5)
    axes[0].set_xlim(0.0, most)
    axes[0].set_ylim(0.0, most * 1.25)
    axes[0].set_ylabel("TTFT that came, s")


def _off(found: Calibration) -> str:
    """Return bias and scatter in words."""
    when = "later" if found.bias_s > 0.0 else "earlier"
    return f"{abs(found.bias_s):.2f} ± {found.scatter_s:.2f} s {when} than expected"


def caption(table: Table) -> Caption:
    """Say how far the predictions are off, and how often the other path would have been faster."""
    parts, regrets = [], []
    for case in _CASES:
        taken, other = (calibration(table, case, path) for path in _STYLES)
        parts.append(
            f"with reports {case} the first token comes {_off(taken)} on the path taken, "
            f"{_off(other)} on the other"
        )
        rows = [table.where(telemetry=case, path=path) for path in _STYLES]
        regrets.append(float(np.mean(rows[1]["realised_s"] < rows[0]["realised_s"])))
    others = [
        float(table.where(telemetry=case, path="not taken")["others_s"].mean()) for case in _CASES
    ]
    return Caption(
        paper=(
            "A router compares what it expects of each path. How much of that comes true, for the "
            "path that it takes and for the best one that it does not? The second is found by "
            "playing the same world again with that one request sent the other way."
        ),
        here=(
            f"{len(table.where(telemetry='live', path='taken'))} requests of each case, mean and "
            "standard deviation: "
            f"{'; '.join(parts)}. The other path would have been faster for the request itself in "
            f"{', '.join(percent(share) for share in regrets)} of the samples."
        ),
        difference=(
            f"The `paper` preset on a torus of {_SIDE_KM**2} nodes at {_INTENSITY:g} "
            "requests/s/km², load-aware routing by backlog, exponential service. Two paths of "
            "nearly equal expectation differ by luck, so some regret is left even with live "
            "reports. What the other path would have cost everybody else is not in these points: "
            f"{', '.join(f'{cost:+.3f}' for cost in others)} s of TTFT in all, on average."
        ),
    )


FIGURE = Figure(
    name="calibration",
    title="Study: what the router expects, and what comes",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(10.0, 4.0),
    study=True,
)
