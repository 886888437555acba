"""Fig. 11: what adapting the mix to the load is worth."""

from typing import Any

import numpy as np

from edgegym.figures.mixes import best_mixes
from edgegym.figures.scenario import coverage, paper_network, sweep
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, ORANGE, RED, SKY
from edgegym.figures.table import Table
from edgegym.figures.words import percent

_LEAST, _MOST = 0.5, 10.5
# As in Fig. 10, and one that holds equal shares.
_DEEP_CAP, _LARGER_CAP = 0.2, 0.35
_MARKS = (3.0, 7.0, 9.0)


def compute(effort: Effort, report: Report) -> Table:
    """Return coverage by load of the adapted mix, the preset's, and equal shares."""
    loads = sweep(_LEAST, _MOST, (effort.points + 1) // 2, including=_MARKS)
    nets = [paper_network(request_intensity=float(load)) for load in loads]
    size = nets[0].num_profiles
    equal = np.full(size, 1.0 / size)
    found = best_mixes(nets[0], loads, effort.mix_step, _DEEP_CAP, report)
    larger = best_mixes(nets[0], loads, effort.mix_step, _LARGER_CAP, report)
    return Table(
        {
            "request_intensity_per_s_km2": loads,
            "coverage_adapted": [best.coverage for best in found],
            "coverage_adapted_larger_cap": [best.coverage for best in larger],
            "coverage_fixed": [coverage(net) for net in nets],
            "coverage_equal_shares": [coverage(net.with_mix(equal)) for net in nets],
        }
    )


_LINES = {
    "coverage_adapted": {
        "color": BLUE,
        "linestyle": "-",
        "label": f"adapted, at most {percent(_DEEP_CAP)} deep",
    },
    "coverage_fixed": {
        "color": RED,
        "linestyle": "--",
        "label": "fixed: the preset's, 20 % deep",
    },
    "coverage_adapted_larger_cap": {
        "color": SKY,
        "linestyle": "-",
        "label": f"adapted, at most {percent(_LARGER_CAP)} deep",
    },
    "coverage_equal_shares": {
        "color": ORANGE,
        "linestyle": "-.",
        "label": "fixed: equal shares, 33 % deep",
    },
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
    larger = table["coverage_adapted_larger_cap"] - table["coverage_equal_shares"]
    largest = int(larger.argmax())
    return Caption(
        paper="An adapted mix avoids the sharp fall of a fixed one near heavy load. No numbers.",
        here=(
            f"The adapted mix of Fig. 10 covers {gain(_MARKS[0])} requests/s/km² with the "
            f"preset's fixed mix, {gain(_MARKS[1])} and {gain(_MARKS[2])}; the most it gains is "
            f"{gains[most]:.3f}, at {table['request_intensity_per_s_km2'][most]:.2f}. "
            "Equal shares have a third of their nodes deep, which that set of candidates does not "
            f"allow; against a mix adapted with at most {percent(_LARGER_CAP)} deep they lose up "
            f"to {larger[largest]:.3f}, at {table['request_intensity_per_s_km2'][largest]:.2f}."
        ),
        difference=(
            "The same mechanism: a fixed mix falls where its queues grow long, and the adapted one "
            "trades shallow state for slots before that. The choice of the feasible set matters "
            "more than the adaptation at light load; the paper does not say what bounds its own."
        ),
    )


FIGURE = Figure(
    name="fig11",
    title="Fig. 11: adapted and fixed mixes",
    compute=compute,
    draw=draw,
    caption=caption,
)
