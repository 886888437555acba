"""Simulated fleets of the ``paper`` preset beside what the theory says about them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import (
    Equilibrium,
    evaluate,
    evaluate_dispersed,
    solve_live_equilibrium,
)
from edgegym.simulator import Fleet
from edgegym.world.network import TieredNetwork
from edgegym.world.presets import preset
from edgegym.world.scenario import Scenario

FloatArray = NDArray[np.float64]
Mode = Literal["backlog", "tier"]

MODES: tuple[Mode, ...] = ("tier", "backlog")
"""What the nodes advertise: the tier's analytic wait, or each its own backlog, live."""


@dataclass(frozen=True)
class Runs:
    """How the fleets are simulated."""

    side_km: int = 20
    """Side of the torus; one node per km²."""
    topologies: int = 20
    """Fleets that are placed anew."""
    warm_up_s: float = 150.0
    """Traffic that is not counted."""
    counted_s: float = 150.0
    """Traffic that is."""


@dataclass(frozen=True, eq=False)
class Measured:
    """What simulated fleets do; means over the topologies.

    Attributes
    ----------
    coverage, coverage_error : float
        Mean and its standard error.
    busy_mean, busy_deviation : float64 [S]
        Mean and standard deviation between a fleet's nodes of the share of slots in use.
    prefill_load : float64 [S]
        GPU-seconds of prefill per second at a node.
    """

    coverage: float
    coverage_error: float
    busy_mean: FloatArray
    busy_deviation: FloatArray
    prefill_load: FloatArray


@dataclass(frozen=True, eq=False)
class Predicted:
    """What the theory says.

    Attributes
    ----------
    mean_field : float
        Coverage if every node of a tier had the tier's mean load.
    corrected : float
        Coverage with nodes that differ and, for live backlog, routing that sees them.
    busy_mean, busy_deviation : float64 [S]
        Of the corrected prediction.
    """

    mean_field: float
    corrected: float
    busy_mean: FloatArray
    busy_deviation: FloatArray


def fleet_scenario(intensity: float, mode: Mode, side_km: int) -> Scenario:
    """Return the ``paper`` preset on a torus with one node per km²."""
    return preset("paper").with_overrides(
        {
            "region": {"width_km": float(side_km), "height_km": float(side_km)},
            "nodes": {"count": side_km**2},
            "demand.request_intensity": intensity,
            "routing.advertised_wait": mode,
        }
    )


def simulate(scenario: Scenario, equilibrium: Equilibrium, runs: Runs) -> Measured:
    """Return what fleets of a scenario do, one for each seed from 0.

    Parameters
    ----------
    scenario : Scenario
    equilibrium : Equilibrium
        Its waits are advertised where the scenario says ``tier``.
    runs : Runs
    """
    wait = equilibrium.assumed_wait_s if _advertises_tier(scenario) else None
    rows = [_one_fleet(scenario, seed, wait, runs) for seed in range(runs.topologies)]
    coverage = np.array([row[0] for row in rows])
    return Measured(
        coverage=float(coverage.mean()),
        coverage_error=float(coverage.std(ddof=1)) / math.sqrt(len(rows)),
        busy_mean=np.mean([row[1] for row in rows], axis=0),
        busy_deviation=np.mean([row[2] for row in rows], axis=0),
        prefill_load=np.mean([row[3] for row in rows], axis=0),
    )


def _advertises_tier(scenario: Scenario) -> bool:
    return scenario.routing.kind == "load_aware" and scenario.routing.advertised_wait == "tier"


def _one_fleet(
    scenario: Scenario, seed: int, tier_wait_s: FloatArray | None, runs: Runs
) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    fleet = Fleet(scenario, seed, tier_wait_s=tier_wait_s)
    fleet.advance(runs.warm_up_s)
    window = fleet.advance(runs.counted_s)
    profile = fleet.state.profile[0]
    mine = [profile == s for s in range(fleet.world.num_profiles)]
    busy, prefill = window.utilization, window.prefill_utilization
    return (
        window.coverage,
        np.array([busy[nodes].mean() for nodes in mine]),
        np.array([busy[nodes].std() for nodes in mine]),
        np.array([prefill[nodes].mean() for nodes in mine]),
    )


def predict(net: TieredNetwork, equilibrium: Equilibrium, mode: Mode, target_s: float) -> Predicted:
    """Return the plain and the corrected prediction for a fleet."""
    plain = evaluate(net, equilibrium, target_s).coverage
    if mode == "tier":
        dispersed = evaluate_dispersed(net, equilibrium, target_s)
        return Predicted(plain, dispersed.coverage, dispersed.busy_mean, dispersed.busy_deviation)
    live = solve_live_equilibrium(net)
    return Predicted(
        plain, live.coverage(target_s), live.utilization_mean, live.utilization_deviation
    )


def gap_ratio(
    simulated: Sequence[float] | FloatArray,
    plain: Sequence[float] | FloatArray,
    corrected: Sequence[float] | FloatArray,
) -> float:
    """Return the mean distance of a corrected prediction from simulation over that of the plain."""
    truth = np.asarray(simulated)
    return float(
        np.abs(np.asarray(corrected) - truth).mean() / np.abs(np.asarray(plain) - truth).mean()
    )
