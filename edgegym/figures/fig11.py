"""Fig. 11: what adapting the mix to the load is worth."""

from typing import Any

import numpy as np

from edgegym.figures.mixes import best_mixes
from edgegym.figures.scenario import coverage, paper_network, sweep
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, ORANGE, RED
from edgegym.figures.table import Table

_LEAST, _MOST = 0.5, 10.5
_MARKS = (3.0, 7.0, 9.0)


def compute(effort: Effort, report: Report) -> Table:
    """Return coverage by load of the adapted mix, the preset's, and equal shares."""
    loads = sweep(_LEAST, _MOST, (effort.points + 1) // 2, including=_MARKS)
    nets = [paper_network(request_intensity=float(load)) for load in loads]
    size = nets[0].num_profiles
    equal = np.full(size, 1.0 / size)
    found = best_mixes(loads, effort.mix_step, report)
    return Table(
        {
            "request_intensity_per_s_km2": loads,
            "coverage_adapted": [best.coverage for best in found],
            "coverage_fixed": [coverage(net) for net in nets],
            "coverage_equal_shares": [coverage(net.with_mix(equal)) for net in nets],
        }
    )


_LINES = {
    "coverage_adapted": {"color": BLUE, "linestyle": "-", "label": "adapted to the load"},
    "coverage_fixed": {"color": RED, "linestyle": "--", "label": "fixed: the preset's mix"},
    "coverage_equal_shares": {"color": ORANGE, "linestyle": "-.", "label": "fixed: equal shares"},
}


def draw(canvas: Any, table: Table) -> None:
    """Draw a line per mix."""
    axes = canvas.subplots()
    for column, style in _LINES.items():
        axes.plot(table["request_intensity_per_s_km2"], table[column], **style)
    axes.set_xlabel("load, requests/s/km²")
    axes.set_ylabel("coverage (TTFT within 0.8 s)")
    axes.set_ylim(0, None)
    axes.legend(loc="lower left")


def caption(table: Table) -> Caption:
    """Say what the adapted mix gains at a moderate and at a heavy load."""

    def gain(load: float) -> str:
        row = table.where(request_intensity_per_s_km2=load)
        adapted, fixed = row["coverage_adapted"][0], row["coverage_fixed"][0]
        return f"{adapted:.3f} against {fixed:.3f} at {load:g}"

    gains = table["coverage_adapted"] - table["coverage_fixed"]
    most = int(gains.argmax())
    equal = table["coverage_equal_shares"] - table["coverage_adapted"]
    ahead = table["request_intensity_per_s_km2"][equal > 0]
    return Caption(
        paper="An adapted mix avoids the sharp fall of a fixed one near heavy load. No numbers.",
        here=(
            f"The adapted mix of Fig. 10 covers {gain(_MARKS[0])} requests/s/km² with the "
            f"preset's fixed mix, {gain(_MARKS[1])} and {gain(_MARKS[2])}; the most it gains is "
            f"{gains[most]:.3f}, at {table['request_intensity_per_s_km2'][most]:.2f}. "
            + (
                f"Equal shares, a third of the nodes deep, do better up to {ahead.max():.2f}: more "
                "than the cap on the deep share allows the adapted mix."
                if len(ahead)
                else "Equal shares do worse at every load."
            )
        ),
        difference=(
            "The same mechanism. The fixed mix falls where its queues grow long; the adapted one "
            "trades shallow state for slots before that."
        ),
    )


FIGURE = Figure(
    name="fig11",
    title="Fig. 11: adapted and fixed mixes",
    compute=compute,
    draw=draw,
    caption=caption,
)
