"""Whether a scenario can be served, is stable, and leaves a policy room."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from edgegym.evaluation.check_report import CheckReport, Findings
from edgegym.evaluation.runner import compare
from edgegym.world.resolve import resolve_scenario
from edgegym.world.serving import LruCache

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from edgegym.evaluation.results import ResultTable
    from edgegym.world.scenario import Scenario

_PLAYED = ("static", "analytic_local", "clairvoyant")
_NEAR_CRITICAL = 0.9
_NEARLY_ALL = 0.9


def check_scenario(
    scenario: "str | os.PathLike[str] | Scenario",
    seeds: Iterable[int] = (0, 1),
    epochs: int = 24,
    least_room: float = 0.02,
    workers: int | None = 1,
    progress: bool = False,
) -> CheckReport:
    """Check that a scenario makes a sensible task, by its tables and by short episodes.

    Parameters
    ----------
    scenario : str, path-like or Scenario
        The world.
    seeds : iterable of int
        Seeds of the episodes of ``static``, ``analytic_local`` and ``clairvoyant``.
    epochs : int
        Length of the episodes.
    least_room : float
        Coverage by which the best of them must beat ``static``.
    workers : int, optional
        Worker processes; None for one per core.
    progress : bool
        Whether to show on standard error how far it is.

    Returns
    -------
    CheckReport
        Rules ``feasible``, ``moves``, ``stable``, ``room``, ``prefill``. No rule is broken;
        ``advice`` may still be worth reading.

    Raises
    ------
    CheckFailed
        If a rule is broken: an AssertionError whose message is the report, and says what to do.
        Nothing is played if one of the first three is.
    ScenarioError
        If it is no valid scenario.
    ValueError
        If an argument is wrong.
    """
    world = resolve_scenario(scenario)
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise ValueError(f"epochs = {epochs!r}: must be a whole number, at least 1")
    if not 0.0 <= least_room <= 1.0:
        raise ValueError(f"least_room = {least_room!r}: must be a coverage from 0 to 1")
    found = Findings()
    subject = f"scenario '{world.name}'"
    _check_feasible(found, world)
    _check_moves(found, world)
    found.report(subject).checked()
    _check_stable(found, world)
    found.report(subject).checked()
    short = world.with_overrides({"control.horizon_epochs": epochs})
    played = compare(
        {name: name for name in _PLAYED}, short, tuple(seeds), workers=workers, progress=progress
    )
    _check_room(found, played.table, least_room)
    _check_prefill(found, played.table)
    return found.report(subject).checked()


def _check_feasible(found: Findings, scenario: "Scenario") -> None:
    """Each type must have a node that serves it, and meet its target next to an idle one."""
    world = scenario.compile()
    best_s, cold_s = _least_ttft_s(scenario)
    late = np.flatnonzero(best_s > world.type_target_s)
    wrong = None
    if len(late):
        q = int(late[np.argmax((best_s - world.type_target_s)[late])])
        name, target = scenario.type_names[q], world.type_target_s[q]
        wrong = (
            f"request type '{name}' can be served nowhere: give a class of nodes a GPU, room for a "
            "sequence and the tags that the type requires"
            if np.isinf(best_s[q])
            else f"request type '{name}' needs {best_s[q]:.3g} s next to an idle node that holds "
            f"its prefix, its target is {target:g} s: raise the target, hold more of its prompt, "
            "or take faster hardware"
        )
    found.add("feasible", wrong, f"each of {len(best_s)} request types can meet its target")
    if wrong is None and (cold_s <= world.type_target_s).all():
        found.add(
            "prefixes matter",
            "every request can meet its target without any cached prefix, so placement matters by "
            "queueing alone: longer prompts or a tighter target make it matter more",
            "",
            "advice",
        )


def _least_ttft_s(
    scenario: "Scenario",
) -> "tuple[NDArray[np.float64], NDArray[np.float64]]":
    """Return the least TTFT of each type with the best profile and without any, ``[Q]`` each."""
    from edgegym.policies.fluid import row_tables

    world = scenario.compile()
    tables = world.classes
    prefill_s, _ = row_tables(scenario)
    profiles = len(scenario.profiles)
    best = np.full(prefill_s.shape[1], np.inf)
    cold = best.copy()
    for index in np.flatnonzero((tables.share > 0.0) & (tables.slots > 0).any(axis=1)):
        first = index * tables.num_holdings
        rows = first + np.flatnonzero(tables.slots[index, :profiles] > 0)
        best = np.minimum(best, prefill_s[rows].min(axis=0))
        cold = np.minimum(cold, prefill_s[tables.empty_row[index]])
    if scenario.origin is not None:
        best = np.where(np.isinf(best), world.radio_base_s, best)
    return world.radio_base_s + best, world.radio_base_s + cold


def _check_moves(found: Findings, scenario: "Scenario") -> None:
    if isinstance(scenario.cache, LruCache):
        found.add(
            "moves",
            "with cache.kind = 'lru' nothing can be moved: a placement policy can only watch",
            "",
        )
        return
    world = scenario.compile()
    fits = (world.classes.slots > 0).any(axis=0)
    price = world.move_bytes[np.ix_(fits, fits)]
    payable = price[~np.eye(len(price), dtype=np.bool_)]
    wrong = None
    if not len(payable):
        wrong = "there is one profile that fits a node: give the nodes a choice"
    elif payable.min() > world.burst_bytes:
        wrong = (
            f"the cheapest move costs {payable.min()} bytes, the bucket holds at most "
            f"{world.burst_bytes}: raise migration.burst_bytes"
        )
    elif payable.max() > world.burst_bytes:
        found.add(
            "moves",
            f"the dearest move costs {payable.max()} bytes, the bucket holds at most "
            f"{world.burst_bytes}: it can never be made",
            "",
            "advice",
        )
        return
    found.add("moves", wrong, f"the bucket of {world.burst_bytes} bytes can pay every move")


def _check_stable(found: Findings, scenario: "Scenario") -> None:
    """Compare the long-run load with what some mix of profiles can serve."""
    from edgegym.analytic import critical_intensity

    network = scenario.tiered_network()
    load = float(network.request_intensity)
    initial = load / critical_intensity(network)
    # The mixes of one profile, and the initial one: some other may carry more.
    fits = np.flatnonzero(np.asarray(scenario.concurrency) > 0)
    mixes = np.eye(len(scenario.profiles))[fits]
    limits = [critical_intensity(replace(network, profile_probabilities=mix)) for mix in mixes]
    best = min([initial, *(load / limit for limit in limits if np.isfinite(limit))])
    wrong = None
    if best >= 1.0:
        wrong = (
            f"the long-run load is {best:.2f} times what the fleet can serve: lower the demand "
            f"below {load / best:.3g} requests/s/km2, or add nodes"
        )
    level = "broken" if scenario.origin is None else "advice"  # an origin takes what is too much
    found.add(
        "stable",
        wrong,
        f"load is {best:.2f} of the critical one, {initial:.2f} at the start",
        level,
    )
    if best < 1.0 <= initial:
        found.add(
            "stable at the start",
            f"with initial.mix the load is {initial:.2f} times what the fleet can serve: a policy "
            "that does nothing drowns; meant so?",
            "",
            "advice",
        )
    elif _NEAR_CRITICAL < best < 1.0:
        found.add(
            "distance to the critical load",
            f"the load is {best:.2f} of the critical one: queues are long whatever a policy does",
            "",
            "advice",
        )


def _check_room(found: Findings, table: "ResultTable", least_room: float) -> None:
    coverage = {row.policy: row.coverage or 0.0 for row in table}
    shown = ", ".join(f"{name} {value:.3f}" for name, value in coverage.items())
    room = max(coverage.values()) - coverage["static"]
    wrong = None
    if room < least_room:
        wrong = f"only {room:.3f} of coverage between doing nothing and the best ({shown}): " + (
            "nearly all is served in time anyway; raise the load or tighten the target"
            if coverage["static"] > _NEARLY_ALL
            else "nothing helps; lower the load, loosen the target, or raise the budget"
        )
    found.add("room", wrong, f"{room:.3f} of coverage ({shown})")
    if coverage["clairvoyant"] < coverage["analytic_local"]:
        found.add(
            "clairvoyant ahead",
            "the clairvoyant reference is behind analytic_local: moves pay later than it looks; a "
            "longer ClairvoyantSettings.horizon_epochs sees them",
            "",
            "advice",
        )


def _check_prefill(found: Findings, table: "ResultTable") -> None:
    highest = max(row.max_prefill_utilization for row in table)
    found.add(
        "prefill",
        f"the busiest node does {highest:.2f} GPU-seconds of prefill in a second, more than one "
        "real GPU can: slots that prefill at full speed are the model's abstraction; for real "
        "GPUs take service.kind = 'tokens' or 'engine', faster hardware, or less load"
        if highest > 1.0
        else None,
        f"the busiest node does {highest:.2f} GPU-seconds of prefill in a second",
        "advice",
    )
