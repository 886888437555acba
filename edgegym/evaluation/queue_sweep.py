"""Waits of one simulated node at several utilizations, to fit a queue module to."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from edgegym.analytic import QueueSweep
from edgegym.simulator import Fleet
from edgegym.world.network import checked_choice, checked_numbers, checked_whole
from edgegym.world.scenario import Scenario

_BATCHES = 20
_SAMPLES_PER_BATCH = 200
_WARM_UP = 0.1
_UTILIZATIONS = (0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)


def sweep_queue(
    scenario: Scenario,
    profile: str | None = None,
    *,
    utilizations: ArrayLike = _UTILIZATIONS,
    requests: int = 200_000,
    seed: int = 0,
    report: Callable[[str], None] = lambda _: None,
) -> QueueSweep:
    """Measure how long requests wait at one node of a scenario.

    The node serves the scenario's request types in their long-run shares, with its service law and
    hardware, alone and steadily: no moves, no modulation of the demand.

    Parameters
    ----------
    scenario : Scenario
    profile : str, optional
        Name of the profile that the node holds; the first without it.
    utilizations : array_like [U]
        Rising, between 0 and 1.
    requests : int
        Requests per utilization, from 1,000 to 1e9.
    seed : int
        Same seed, same result; every utilization has its own stream.
    report : callable
        Called with a few words before each utilization.

    Returns
    -------
    QueueSweep
        Standard errors are those of the means of twenty batches. The probability of waiting is the
        share of 4,000 evenly spaced moments at which all slots are taken, which Poisson arrivals
        see.

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    TypeError
        If the scenario is none or `report` no function.
    """
    if not isinstance(scenario, Scenario):
        raise TypeError(f"scenario is {scenario!r}: must be a Scenario, as preset() returns")
    if not callable(report):
        raise TypeError(f"report is {report!r}: must be a function of a few words")
    rho = checked_numbers("utilizations", utilizations, "[U]")
    rises = rho.ndim == 1 and rho.size > 0 and (np.diff(rho) > 0).all()
    if not (rises and rho[0] > 0 and rho[-1] < 1):
        raise ValueError(
            f"utilizations is {utilizations!r}: must be at least one, rising, above 0 and below 1"
        )
    requests = checked_whole("requests", requests, 1_000, 10**9)
    seed = checked_whole("seed", seed, 0, 2**63)
    node = _one_node(scenario, profile)
    network = node.tiered_network()
    occupancy_s = float(network.occupancy_s[0] @ network.type_probabilities)
    slots = int(network.concurrency[0])
    measured = np.empty((len(rho), 4))
    for k, value in enumerate(rho):
        report(f"utilization {value:g}")
        rate = float(value) * slots / occupancy_s
        loaded = node.with_overrides({"demand": {"request_intensity": rate}})
        measured[k] = _measure(Fleet(loaded, seed=seed + k), slots, requests / rate)
    return QueueSweep(
        slots=slots,
        mean_occupancy_s=occupancy_s,
        utilization=rho,
        mean_wait_s=measured[:, 0],
        waiting_probability=measured[:, 1],
        mean_wait_error_s=measured[:, 2],
        waiting_probability_error=measured[:, 3],
    )


def _one_node(scenario: Scenario, profile: str | None) -> Scenario:
    names = scenario.profile_names
    if profile is not None:
        checked_choice("profile", profile, names)
    chosen = names[0] if profile is None else profile
    document = scenario.document()
    held = [item for item in document["profiles"] if item["name"] == chosen]
    return Scenario(
        **document
        | {
            "name": "one-node",
            "region": {"width_km": 1.0, "height_km": 1.0},
            "nodes": {"count": 1},
            "profiles": held,
            "initial": {"mix": {chosen: 1.0}},
            "routing": {"kind": "nearest"},
            "demand": {"request_intensity": 1.0},
        }
    )


def _measure(fleet: Fleet, slots: int, seconds: float) -> tuple[float, float, float, float]:
    """Return mean wait and probability of waiting, then their standard errors."""
    fleet.advance(_WARM_UP * seconds)
    step_s = seconds / (_BATCHES * _SAMPLES_PER_BATCH)
    wait, full = np.empty(_BATCHES), np.empty(_BATCHES)
    for batch in range(_BATCHES):
        total_s, served, taken = 0.0, 0, 0
        for _ in range(_SAMPLES_PER_BATCH):
            window = fleet.advance(step_s)
            total_s += window.wait_sum_s
            served += window.first_tokens
            taken += int(fleet.state.active[0, 0] >= slots)
        wait[batch] = total_s / max(served, 1)
        full[batch] = taken / _SAMPLES_PER_BATCH
    wait_error, full_error = (values.std(ddof=1) / _BATCHES**0.5 for values in (wait, full))
    return float(wait.mean()), float(full.mean()), float(wait_error), float(full_error)
