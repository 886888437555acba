"""``compare``: several policies on the same requests."""

import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from edgegym.evaluation.card import experiment_card
from edgegym.evaluation.comparison import Comparison
from edgegym.evaluation.contestants import Contestant, contestant, world_of_contestant
from edgegym.evaluation.episode import Episode
from edgegym.evaluation.progress import progress_of
from edgegym.evaluation.results import ResultTable, summarise
from edgegym.evaluation.workers import Job, Stage, can_spawn, play_in_workers, travels
from edgegym.world.resolve import resolve_scenario

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

    AnyScenario = str | os.PathLike[str] | Scenario


@dataclass(frozen=True)
class ComparisonPlan:
    """A checked comparison, ready to run: see :func:`plan_comparison`."""

    scenario: "Scenario"
    """The world."""
    seeds: tuple[int, ...]
    """Seeds of the episodes."""
    contestants: dict[str, Contestant]
    """The policies, by label."""
    reference: str | None
    """Label of the reference; None for the best analytic policy."""
    workers: int | None
    """Worker processes; None for one per core."""
    observe_clock: bool
    """Whether the environments observe the clock."""

    def run(self, progress: bool = True) -> Comparison:
        """Play all episodes.

        Parameters
        ----------
        progress : bool
            Whether to show on standard error how far it is.

        Returns
        -------
        Comparison
            The results.

        Raises
        ------
        Exception
            Whatever a policy raises; one that came from a worker has its traceback as a note.
        """
        begin = time.monotonic()
        jobs = [Job(label, seed) for label in self.contestants for seed in self.seeds]
        workers, payloads, remarks = self._allot(len(jobs))
        played: dict[Job, Episode] = {}
        with progress_of("compare", len(jobs), progress) as advance:

            def note(job: Job, episode: Episode) -> None:
                played[job] = episode
                advance(f"{job.label}, seed {job.seed}")

            away = [job for job in jobs if job.label in payloads]
            if away:
                for job, episode in play_in_workers(
                    away, payloads, self.scenario, self.observe_clock, min(workers, len(away))
                ):
                    note(job, episode)
            stage = Stage(self.scenario, self.observe_clock) if len(away) < len(jobs) else None
            for job in jobs:
                if job.label not in payloads and stage is not None:
                    note(job, stage.play(job, self.contestants[job.label]))
        episodes = {
            label: tuple(played[Job(label, seed)] for seed in self.seeds)
            for label in self.contestants
        }
        sources = {label: item.source for label, item in self.contestants.items()}
        table, per_seed = summarise(episodes, sources, self.reference)
        return Comparison(
            scenario=self.scenario,
            seeds=self.seeds,
            table=table,
            per_seed=per_seed,
            card=experiment_card(self.scenario, workers if away else 0, time.monotonic() - begin),
            remarks=(*remarks, *self._other_worlds(), *_remarks(table)),
        )

    def _other_worlds(self) -> list[str]:
        """Return what is to be said of policies that play in a changed world."""
        remarks = []
        for label, item in self.contestants.items():
            world = world_of_contestant(item, self.scenario)
            if world != self.scenario:
                cache = " ".join(str(value) for value in world.cache.model_dump().values())
                remarks.append(
                    f"'{label}' plays in the same world with other caches ({cache} bytes a node) "
                    f"and another router ({world.routing.kind})"
                )
        return remarks

    def _allot(self, jobs: int) -> tuple[int, dict[str, bytes], list[str]]:
        """Return the number of workers, who plays there, and what is to be said about it."""
        workers = min(_cores() if self.workers is None else self.workers, jobs)
        if workers <= 1:
            return 0, {}, []
        if not can_spawn():
            remark = "everything was played in one process: this one may not start others"
            return 0, {}, [remark]
        payloads, remarks = {}, []
        for label, item in self.contestants.items():
            payload = travels(item)
            if payload is None:
                remarks.append(
                    f"'{label}' was played in this process: {item.source} can't be sent to workers "
                    "(what a script or notebook itself defines does not travel; an importable "
                    "module's content does)"
                )
            else:
                payloads[label] = payload
        return workers, payloads, remarks


def plan_comparison(
    policies: Mapping[str, Any],
    scenario: "AnyScenario" = "moving-hotspot",
    seeds: Iterable[int] | None = None,
    reference: str | None = None,
    workers: int | None = None,
    overrides: dict[str, Any] | None = None,
    observe_clock: bool = False,
) -> ComparisonPlan:
    """Check the arguments of a comparison without playing anything.

    Parameters and errors are those of :func:`compare`; models are loaded once, to see whether they
    fit.

    Returns
    -------
    ComparisonPlan
        To be run.
    """
    world = resolve_scenario(scenario, overrides)
    checked_seeds = _checked_seeds(world.evaluation_seeds if seeds is None else seeds)
    if not isinstance(policies, Mapping) or not policies:
        raise ValueError(f"policies = {policies!r}: must be a mapping of at least one policy")
    for label in policies:
        if not isinstance(label, str) or not label.strip():
            raise ValueError(f"policies: label {label!r} must be text")
    if reference is not None and reference not in policies:
        raise ValueError(
            f"reference = '{reference}': must be one of the compared policies "
            f"({', '.join(policies)})"
        )
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, int)):
        raise ValueError(f"workers = {workers!r}: must be a whole number")
    if workers is not None and workers < 1:
        raise ValueError(f"workers = {workers}: must be at least 1")
    contestants = {label: contestant(label, value) for label, value in policies.items()}
    plan = ComparisonPlan(world, checked_seeds, contestants, reference, workers, observe_clock)
    _check_models(plan)
    return plan


def compare(
    policies: Mapping[str, Any],
    scenario: "AnyScenario" = "moving-hotspot",
    seeds: Iterable[int] | None = None,
    reference: str | None = None,
    workers: int | None = None,
    progress: bool = True,
    overrides: dict[str, Any] | None = None,
    observe_clock: bool = False,
) -> Comparison:
    """Let policies serve the same requests, and compare them.

    Every policy plays one episode of ``EdgeGym/Placement-v0`` per seed; an episode's requests
    depend on the seed alone. Masks are passed where a policy takes them, and actions are
    deterministic. Works in notebooks and without ``if __name__ == "__main__":``.

    Parameters
    ----------
    policies : mapping
        Label to policy: a name of ``edgegym.policies.policies()``, a Stable-Baselines3 model, the
        path of a saved one (or of a folder with a ``model.zip``), a function
        ``f(observation, info) -> action``, or an object with ``predict``. One that has
        ``bind(env)`` is shown the environment first.
    scenario : str, path-like or Scenario
        The world.
    seeds : iterable of int, optional
        Seeds of the episodes; by default the scenario's evaluation seeds.
    reference : str, optional
        Label of the policy that differences are to; by default the best analytic policy compared,
        or the first policy if there is none.
    workers : int, optional
        Worker processes, by default one per core; 1 plays everything in this process. A policy that
        can't be sent to workers is played here, which ``Comparison.remarks`` says.
    progress : bool
        Whether to show on standard error how far it is.
    overrides : dict, optional
        Changes of the scenario by dotted path, as ``{"demand.rate_per_node": 4.0}``.
    observe_clock : bool
        Whether the environments observe the clock, for models that were trained so.

    Returns
    -------
    Comparison
        ``.table``, ``.per_seed``, ``.print()``, ``.to_json(path)``, ``.to_csv(path)``,
        ``.to_png(path)``, ``.to_html(path)``.

    Raises
    ------
    ValueError
        If an argument is wrong, or a model does not fit the scenario; nothing has been played then.
    """
    plan = plan_comparison(policies, scenario, seeds, reference, workers, overrides, observe_clock)
    return plan.run(progress)


def _checked_seeds(seeds: Iterable[int]) -> tuple[int, ...]:
    checked = tuple(seeds)
    if not checked:
        raise ValueError("seeds is empty: at least one seed is needed")
    for seed in checked:
        if isinstance(seed, bool) or not hasattr(seed, "__index__") or seed < 0:
            raise ValueError(f"seeds: {seed!r} is not a whole number of at least 0")
    if len(set(checked)) < len(checked):
        raise ValueError(f"seeds = {list(checked)}: must be distinct")
    return tuple(int(seed) for seed in checked)


def _check_models(plan: ComparisonPlan) -> None:
    """Make each policy once, so that one that does not fit is refused before anything is played."""
    from edgegym.envs.placement import PlacementEnv
    from edgegym.evaluation.contestants import ModelObject, SavedModel

    env = PlacementEnv(plan.scenario, observe_clock=plan.observe_clock)
    for item in plan.contestants.values():
        world_of_contestant(item, plan.scenario)
        if isinstance(item, ModelObject | SavedModel):
            item.decider(env)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _remarks(table: ResultTable) -> list[str]:
    remarks = []
    reasons = {
        row.difference_interval.method for row in table if row.difference_interval.low is None
    }
    for reason in sorted(reasons):
        remarks.append(f"no intervals: {reason}")
    constant = [
        row.policy
        for row in table
        if row.policy != table.reference and row.difference_interval.method == "constant"
    ]
    if constant:
        remarks.append(
            f"the difference of {', '.join(constant)} to {table.reference} is the same whatever "
            "the seed, so its interval is a point"
        )
    illegal = [row.policy for row in table if row.illegal_actions]
    if illegal:
        remarks.append(f"took illegal actions, which count as no move: {', '.join(illegal)}")
    highest = max(row.max_prefill_utilization for row in table)
    if highest > 1.0:
        remarks.append(
            f"prefill utilisation reaches {highest:.2f} GPU-seconds per second on the busiest "
            "node; above 1 one real GPU could not keep up"
        )
    return remarks
