"""A study: simulated fleets against the mean-field prediction and the corrected one."""

from typing import Any

import numpy as np

from edgegym.analytic import solve_equilibrium
from edgegym.figures.fleet_runs import MODES, Runs, fleet_scenario, gap_ratio, predict, simulate
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, PROFILES, RED
from edgegym.figures.table import Table
from edgegym.world.presets import preset

_LOADS = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0)
_REQUESTS_PER_TOPOLOGY = 500_000
_COLORS = {"tier": RED, "backlog": BLUE}
_WORDS = {"tier": "tier waits", "backlog": "live backlog"}


def compute(effort: Effort, report: Report) -> Table:
    """Return simulated and predicted coverage, and how unequally the nodes are loaded.

    A topology for each half a million requests of the effort, at least two.
    """
    runs = Runs(topologies=max(2, effort.requests // _REQUESTS_PER_TOPOLOGY))
    target_s = preset("paper").objective.ttft_target_s
    rows: list[dict[str, Any]] = []
    for mode in MODES:
        for load in _LOADS:
            report(f"{_WORDS[mode]}, {load:g} requests/s/km²")
            scenario = fleet_scenario(load, mode, runs.side_km)
            net = scenario.tiered_network()
            equilibrium = solve_equilibrium(net)
            measured = simulate(scenario, equilibrium, runs)
            predicted = predict(net, equilibrium, mode, target_s)
            row: dict[str, Any] = {
                "advertised_wait": mode,
                "request_intensity_per_s_km2": load,
                "coverage_simulated": measured.coverage,
                "coverage_error": measured.coverage_error,
                "coverage_mean_field": predicted.mean_field,
                "coverage_corrected": predicted.corrected,
            }
            for s, name in enumerate(scenario.profile_names):
                row[f"busy_{name}"] = measured.busy_mean[s]
                row[f"busy_{name}_mean_field"] = equilibrium.utilization[s]
                row[f"busy_{name}_corrected"] = predicted.busy_mean[s]
                row[f"deviation_{name}"] = measured.busy_deviation[s]
                row[f"deviation_{name}_corrected"] = predicted.busy_deviation[s]
                row[f"prefill_load_{name}"] = measured.prefill_load[s]
            rows.append(row)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    return Table(columns | {"topologies": np.full(len(rows), runs.topologies)})


def draw(canvas: Any, table: Table) -> None:
    """Draw coverage by load, and the spread of utilization between nodes of a tier."""
    left, right = canvas.subplots(1, 2)
    for mode in MODES:
        part = table.where(advertised_wait=mode)
        loads = part["request_intensity_per_s_km2"]
        left.errorbar(
            loads,
            part["coverage_simulated"],
            yerr=2.0 * part["coverage_error"],
            fmt="o",
            markersize=4.5,
            color=_COLORS[mode],
            label=f"simulated, {_WORDS[mode]}",
        )
        left.plot(
            loads,
            part["coverage_corrected"],
            color=_COLORS[mode],
            label=f"corrected, {_WORDS[mode]}",
        )
    part = table.where(advertised_wait=MODES[0])
    loads = part["request_intensity_per_s_km2"]
    left.plot(loads, part["coverage_mean_field"], "k--", linewidth=1.2, label="mean field")
    left.set_xlabel("load, requests/s/km²")
    left.set_ylabel("coverage (TTFT within 0.8 s)")
    left.set_ylim(0.2, 0.82)
    left.legend(loc="lower left", fontsize=8)
    for mode, marker in zip(MODES, ("o", "s"), strict=True):
        part = table.where(advertised_wait=mode)
        loads = part["request_intensity_per_s_km2"]
        for name, style in PROFILES.items():
            color = style["color"]
            filled = color if mode == "tier" else "white"
            right.plot(
                loads,
                part[f"deviation_{name}"],
                marker,
                markersize=4.5,
                color=color,
                markerfacecolor=filled,
                label=f"{style['label']}, {_WORDS[mode]}",
            )
            right.plot(
                loads,
                part[f"deviation_{name}_corrected"],
                color=color,
                linewidth=1.3,
                linestyle="-" if mode == "tier" else ":",
            )
    right.set_xlabel("load, requests/s/km²")
    right.set_ylabel("deviation of utilization between nodes")
    right.set_ylim(0.0, 0.42)
    right.legend(loc="upper left", fontsize=7.5, ncols=2)
    right.set_title("marks: simulated; lines: corrected", fontsize=9)


def caption(table: Table) -> Caption:
    """Say how far both predictions are from the simulation."""
    words = []
    for mode in MODES:
        part = table.where(advertised_wait=mode)
        truth, plain = part["coverage_simulated"], part["coverage_mean_field"]
        corrected = part["coverage_corrected"]
        words.append(
            f"with {_WORDS[mode]} the mean field is off by {np.abs(plain - truth).mean():.3f} in "
            f"the mean and {np.abs(plain - truth).max():.3f} at most, the corrected prediction by "
            f"{np.abs(corrected - truth).mean():.3f} and {np.abs(corrected - truth).max():.3f} "
            f"({gap_ratio(truth, plain, corrected):.2f} of the gap)"
        )
    tier = table.where(advertised_wait="tier", request_intensity_per_s_km2=3.0)
    return Caption(
        paper=(
            "How close is the mean-field prediction, which gives every node of a tier the same "
            "load, to a finite fleet; and how close one that knows that cells differ in size?"
        ),
        here=(
            f"Over loads 1 to 8, {words[0]}; {words[1]}. At load 3 the deep nodes of a fleet with "
            f"tier waits are in use {tier['busy_deep'][0]:.2f} ± {tier['deviation_deep'][0]:.2f} "
            f"of the time (predicted {tier['busy_deep_corrected'][0]:.2f} ± "
            f"{tier['deviation_deep_corrected'][0]:.2f}, of a load of "
            f"{tier['busy_deep_mean_field'][0]:.2f} in the mean field)."
        ),
        difference=(
            f"Tori of 400 nodes, {table['topologies'][0]:.0f} of them, 150 s after 150 s of "
            "warm-up; bars are two standard errors between topologies, which all loads share. With "
            "tier waits about a fifth of the deep nodes get more than they can serve at load 3: "
            "they never settle, and a longer run covers slightly less. Exponential service, slots "
            "that prefill at full speed (up to "
            f"{max(table[f'prefill_load_{name}'].max() for name in PROFILES):.1f} GPU-seconds of "
            "prefill per second at a node). docs/fleet-and-theory.md has the derivation."
        ),
    )


FIGURE = Figure(
    name="fleet",
    title="Study: a fleet against the theory",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(10.0, 4.4),
    study=True,
)
