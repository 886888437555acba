"""A study: the best share of fallback nodes under bursts, late telemetry, uncertain popularity."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from edgegym.analytic import (
    STUDY_TRAFFIC,
    association_law,
    fallback_study,
    solve_equilibrium,
    two_family_network,
)
from edgegym.figures.scenario import paper_network, profile_names, target_s
from edgegym.figures.spec import Caption, Effort, Figure, Report
from edgegym.figures.style import BLUE, ORANGE
from edgegym.figures.table import Table
from edgegym.figures.words import percent
from edgegym.world.network import TieredNetwork

_LOAD = 5.0
_DEEP_CAP = 0.2
_FAMILIES_TARGET_S = 1.2
# Mixes in which the fallback's slots are looked at.
_MIXES = {"nested": (0.2, 0.6, 0.2), "families": (0.2, 0.4, 0.4)}
_SWEEPS = {
    "burst_scv": (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4),
    "telemetry_delay_s": (0.0, 2.0, 5.0, 10.0, 20.0, 40.0, 120.0),
    "concentration": (math.inf, 100.0, 30.0, 15.0, 8.0, 4.0, 2.0),
}
_LEAST_CHANGE = 0.015


@dataclass(frozen=True)
class _Axis:
    """A sweep as it is drawn."""

    parameter: str
    column: str
    label: str
    words: str


_AXES = (
    _Axis(
        "burst_scv",
        "burst_scv",
        "burstiness (squared coefficient\nof variation of the load)",
        "burstiness",
    ),
    _Axis(
        "telemetry_delay_s",
        "telemetry_delay_s",
        "age of the router's waits, s",
        "the age of the waits",
    ),
    _Axis(
        "concentration",
        "popularity_variance",
        "popularity: variance of a share p,\nas a part of p (1 − p)",
        "the uncertainty of popularity",
    ),
)
_STYLES: dict[str, dict[str, Any]] = {
    "nested": {"color": BLUE, "marker": "o", "label": "nested profiles (paper)"},
    "families": {"color": ORANGE, "marker": "s", "linestyle": "--", "label": "two families"},
}


def compute(effort: Effort, report: Report) -> Table:
    """Return the best mix along each sweep, for both networks."""
    count = max(3, min(7, effort.points // 8))
    base = replace(STUDY_TRAFFIC, samples=min(STUDY_TRAFFIC.samples, effort.points // 4))
    chosen = np.linspace(0, 6, count).round().astype(int)
    sweeps: Any = {name: [values[k] for k in chosen] for name, values in _SWEEPS.items()}
    cap = [_DEEP_CAP if name == "deep" else 1.0 for name in profile_names()]
    tasks = {
        "nested": (paper_network(request_intensity=_LOAD), target_s(), cap),
        "families": (two_family_network(), _FAMILIES_TARGET_S, None),
    }
    rows: list[dict[str, Any]] = []
    for name, (net, target, maximum) in tasks.items():
        known, late = _slots_in_use(net, _MIXES[name])
        slowest = float(net.prefill_s[0].max())
        study = fallback_study(
            net,
            base,
            ttft_target_s=target,
            maximum=maximum,
            report=lambda words, name=name: report(f"{name} network: {words}"),
            **sweeps,
        )
        for row in study:
            traffic = replace(base, **{row.parameter: row.value})
            rows.append(
                {
                    "network": name,
                    "swept": row.parameter,
                    "burst_scv": traffic.burst_scv,
                    "telemetry_delay_s": traffic.telemetry_delay_s,
                    "popularity_variance": 1.0 / (1.0 + traffic.concentration),
                    "fallback_share": row.fallback_share,
                    "second_share": row.probabilities[1],
                    "third_share": row.probabilities[2],
                    "coverage": row.coverage,
                    "coverage_of_stationary_mix": row.nominal_coverage,
                    "fallback_slots_used_if_burst_is_known": known,
                    "fallback_slots_used_if_not": late,
                    "slowest_fallback_prefill_s": slowest,
                    "target_s": target,
                }
            )
    return Table({name: [row[name] for row in rows] for name in rows[0]})


def _slots_in_use(net: TieredNetwork, mix: tuple[float, ...]) -> tuple[float, float]:
    """Return the offered load over the slots of fallback nodes in a burst.

    First where the router knows of the burst, then where it still acts on the quiet state's waits.
    """
    net = net.with_mix(np.array(mix))
    quiet, busy = (
        replace(net, request_intensity=net.request_intensity * level)
        for level in STUDY_TRAFFIC.intensities()
    )
    per_node = busy.request_intensity / busy.tier_density[0]
    used = []
    for state in (busy, quiet):
        share = association_law(busy, solve_equilibrium(state).assumed_wait_s).probability[0]
        load = per_node * float(share * busy.type_probabilities @ busy.occupancy_s[0])
        used.append(load / int(busy.concurrency[0]))
    return used[0], used[1]


def draw(canvas: Any, table: Table) -> None:
    """Draw the best share along each sweep, and what it gains over the stationary mix."""
    axes = canvas.subplots(2, 3, sharex="col", sharey="row")
    for column, axis in enumerate(_AXES):
        share, gain = axes[:, column]
        for name, style in _STYLES.items():
            rows = table.where(network=name, swept=axis.parameter)
            gained = rows["coverage"] - rows["coverage_of_stationary_mix"]
            share.plot(rows[axis.column], rows["fallback_share"], **style)
            gain.plot(rows[axis.column], gained, **style)
        if axis.column == "telemetry_delay_s":
            gain.set_xscale("symlog", linthresh=2.0)
            gain.set_xticks([0, 2, 10, 40, 120], ["0", "2", "10", "40", "120"])
            gain.minorticks_off()
        gain.set_xlabel(axis.label)
    axes[0, 0].set_ylabel("fallback share\nin the best mix")
    axes[0, 0].set_ylim(-0.03, 0.85)
    axes[1, 0].set_ylabel("coverage gained over the\nbest mix of steady traffic")
    axes[1, 0].set_ylim(bottom=-0.002)
    canvas.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)


def course(shares: np.ndarray) -> str:
    """Return in words how a share moves along a sweep."""
    first, last = shares[0], shares[-1]
    for extreme, turn in ((shares.max(), ("rises", "falls")), (shares.min(), ("falls", "rises"))):
        if min(abs(extreme - first), abs(extreme - last)) > _LEAST_CHANGE:
            return f"{turn[0]} from {first:.2f} to {extreme:.2f} and {turn[1]} to {last:.2f}"
    if abs(last - first) <= _LEAST_CHANGE:
        return f"stays near {first:.2f}"
    return f"{'rises' if last > first else 'falls'} from {first:.2f} to {last:.2f}"


def caption(table: Table) -> Caption:
    """Say where the paper's expectation holds, where not, and why."""

    def shares(name: str, axis: _Axis) -> np.ndarray:
        return table.where(network=name, swept=axis.parameter)["fallback_share"]

    nested, families = (table.where(network=name) for name in _STYLES)
    gain = table["coverage"] - table["coverage_of_stationary_mix"]
    late = table.where(swept="telemetry_delay_s")
    late_gain = late["coverage"] - late["coverage_of_stationary_mix"]
    agreeing = [
        axis.words
        for axis in _AXES
        if all(shares(name, axis)[-1] > shares(name, axis)[0] + _LEAST_CHANGE for name in _STYLES)
    ]
    courses = "; ".join(
        f"with {axis.words} it {course(shares('nested', axis))} with nested profiles and "
        f"{course(shares('families', axis))} with families"
        for axis in _AXES
    )
    return Caption(
        paper=(
            "The paper says that the share of fallback nodes (nothing cached, most slots) should "
            "grow with burstiness, with the age of telemetry and with uncertainty about prefix "
            "popularity. Does the best mix do so? Two networks: the paper's nested profiles at "
            f"{_LOAD:g} requests/s/km² with at most {percent(_DEEP_CAP)} deep nodes, and an "
            "invented one whose profiles each hold the prefix of one of two families."
        ),
        here=(
            f"In both networks the best share grows with {', '.join(agreeing) or 'none of them'} "
            f"and nothing else: {courses}. The optimum is flat: against the best mix of steady "
            f"traffic it gains {np.median(gain):.3f} of coverage at the median point and "
            f"{gain.max():.3f} at most, along the sweep of the waits' age {late_gain.max():.3f} "
            "at most."
        ),
        difference=(
            "A router that acts on the waits of the state before does not know of a burst and "
            "leaves fallback nodes idle just when they are needed: "
            f"{percent(nested['fallback_slots_used_if_not'][0])} of their slots in use instead of "
            f"{percent(nested['fallback_slots_used_if_burst_is_known'][0])} (nested, a fifth of "
            f"the nodes), {percent(families['fallback_slots_used_if_not'][0])} instead of "
            f"{percent(families['fallback_slots_used_if_burst_is_known'][0])} (families). "
            "Popularity: with nested profiles a draw with more long requests is a higher load. "
            "With families the whole prompt takes a fallback node "
            f"{families['slowest_fallback_prefill_s'][0]:.2f} s, more than the target of "
            f"{families['target_s'][0]:g} s: in a draw that favours one family, it misses more "
            "requests in time than its slots save. All this is the model's router, which knows "
            "mean waits of tiers. In simulated fleets with such a router bursts raise and late "
            "waits lower the advantage of fallback nodes as here, but uneven cells shift which "
            "mix is ahead, and uncertain popularity lowers it: there they contradict the model. "
            "With late reports of each node's own backlog instead, requests flock to the same "
            "nodes until the next report, and then fallback nodes gain, as the paper says "
            "(`tests/analytic/test_fallback_simulated.py`)."
        ),
    )


FIGURE = Figure(
    name="fallback",
    title="Study: how many fallback nodes pay",
    compute=compute,
    draw=draw,
    caption=caption,
    size_in=(9.2, 5.4),
    study=True,
)
