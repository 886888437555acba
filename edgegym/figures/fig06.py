"""Fig. 6: the damped iteration of the advertised waits [33], where it settles and where not."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import damping_limit, solve_equilibrium
from edgegym.figures.scenario import paper_network, profile_names
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import PROFILES
from edgegym.figures.table import Table

_LOADS = (3.0, 4.0)
_DAMPING = 0.5
_STEPS = 40
_SETTLED = 0.01


def compute(effort: Effort, report: Report) -> Table:
    """Return the waits after each step of the iteration, and those of the equilibrium."""
    del effort, report
    columns: dict[str, list[Any]] = {
        "request_intensity_per_s_km2": [],
        "iteration": [],
        "damping_limit": [],
    }
    for name in profile_names():
        columns |= {f"wait_{name}_s": [], f"equilibrium_wait_{name}_s": []}
    for load in _LOADS:
        net = paper_network(request_intensity=load)
        solved = solve_equilibrium(net)
        damped = solve_equilibrium(
            net, method="damped", damping=_DAMPING, max_iterations=_STEPS, history=True
        )
        assert damped.history is not None
        path = _prolonged(damped.history)
        columns["request_intensity_per_s_km2"] += [load] * len(path)
        columns["iteration"] += range(len(path))
        for tier, name in enumerate(profile_names()):
            columns[f"wait_{name}_s"] += path[:, tier].tolist()
            columns[f"equilibrium_wait_{name}_s"] += [solved.mean_wait_s[tier]] * len(path)
        columns["damping_limit"] += [damping_limit(net, solved)] * len(path)
    columns["damping"] = [_DAMPING] * len(columns["iteration"])
    return Table(columns)


def _prolonged(history: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the waits after 0, 1, … steps; once the iteration has ended they stay."""
    missing = _STEPS + 1 - len(history)
    return np.concatenate([history, np.repeat(history[-1:], missing, axis=0)])


def draw(canvas: Any, table: Table) -> None:
    """Draw a panel per load, a line per profile, the equilibrium as thin lines."""
    panels = canvas.subplots(1, 2)
    for axes, load in zip(panels, table.distinct("request_intensity_per_s_km2"), strict=True):
        rows = table.where(request_intensity_per_s_km2=load)
        for name in profile_names():
            style = PROFILES[name]
            axes.plot(rows["iteration"], rows[f"wait_{name}_s"], marker=".", **style)
            axes.axhline(rows[f"equilibrium_wait_{name}_s"][0], color=style["color"], linewidth=0.8)
        axes.set_title(f"{load:g} requests/s/km², η = {rows['damping'][0]:g}")
        axes.set_xlabel("iteration")
        axes.set_ylabel("advertised wait, s")
        highest = 1.8 * rows["equilibrium_wait_deep_s"][0]
        axes.set_ylim(-0.03 * highest, highest)
        peak = rows["wait_deep_s"].max()
        if peak > highest:
            axes.annotate(
                f"deep, first step: {peak:,.0f} s",
                (0.5, 0.9),
                xycoords="axes fraction",
                fontsize=8.5,
                color=PROFILES["deep"]["color"],
            )
    panels[0].legend(loc="upper right", title="thin lines: equilibrium", title_fontsize=9)


def settled_after(rows: Table) -> int | None:
    """Return from which iteration on all waits are within 1 % of the largest equilibrium wait.

    None if they are not by the end.
    """
    names = profile_names()
    waits = np.array([rows[f"wait_{name}_s"] for name in names])
    goal = np.array([rows[f"equilibrium_wait_{name}_s"] for name in names])
    far = (np.abs(waits - goal) > _SETTLED * goal.max()).any(axis=0)
    if far[-1]:
        return None
    return int(np.flatnonzero(far)[-1]) + 1 if far.any() else 0


def caption(table: Table) -> Caption:
    """Say where the iteration settles, and how widely it swings where it doesn't."""
    calm, wild = (
        table.where(request_intensity_per_s_km2=load)
        for load in table.distinct("request_intensity_per_s_km2")
    )
    last = wild["wait_deep_s"][-2:]
    steps = settled_after(calm)
    return Caption(
        paper=(
            "The waits of all profiles settle after a few iterations. The deep tier draws most "
            "long requests at first and gets the longest wait, which then sends part of them "
            "elsewhere."
        ),
        here=(
            f"At {calm['request_intensity_per_s_km2'][0]:g} requests/s/km² the same: the deep "
            f"tier's wait jumps to {calm['wait_deep_s'].max():.2f} s and settles at "
            f"{calm['equilibrium_wait_deep_s'][0]:.2f} s; all waits are within 1 % of that of the "
            f"equilibrium "
            + (f"from iteration {steps} on." if steps is not None else "at no iteration shown.")
            + f" At {wild['request_intensity_per_s_km2'][0]:g} it never settles with the same "
            f"damping: the deep wait ends up swinging between {last.min():.2f} and "
            f"{last.max():.2f} s around an equilibrium of {wild['equilibrium_wait_deep_s'][0]:.2f} "
            "s."
        ),
        difference=(
            "The paper shows its baseline load only. At the higher one the first step sends the "
            "deep tier more than it can serve; where the wait would be infinite, the library goes "
            "on with a finite, steep continuation. The heavier the load, the more the iteration "
            "must be damped: close to the equilibrium it settles for η below "
            f"{calm['damping_limit'][0]:.2f} at the first load and {wild['damping_limit'][0]:.3f} "
            "at the second. The library's default solver finds the same equilibrium (the thin "
            "lines) without damping, and says so when there is none."
        ),
    )


FIGURE = Figure(
    name="fig06",
    title="Fig. 6: the damped iteration of the waits",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(8.6, 3.8),
)
