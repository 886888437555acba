"""The published tables: trains, plays and writes what docs/results holds, piece by piece."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from agents.app import DONE, INTERRUPTED
from agents.commands import check_workers, first_seeds, report_training
from agents.config import ConfigError, TrainingConfig
from agents.training import CONFIG_FILE, check_threads, prepare_folder, read_run, train
from edgegym.evaluation import Comparison, plan_comparison
from edgegym.files import atomic_path
from edgegym.world import presets
from edgegym.world.resolve import resolve_scenario
from edgegym.world.scenario import Scenario

CLAIRVOYANT = presets()
"""Presets with a table that has the clairvoyant policy, of few and short episodes."""

LEARNED = presets()
"""Presets with a table that has a trained agent."""

LARGER = ("moving-hotspot",)
"""Presets whose trained agent plays on larger fleets."""

LARGER_NODES = (25, 100, 400)
"""The sizes of those."""

KINDS = ("clairvoyant", "learned", "larger")
"""Kinds of tables, in the order in which they are made."""

TRAINING_STEPS = 300_000
"""Environment steps of each agent."""

_NAMED = ("static", "uniform", "lru", "analytic", "analytic_local", "analytic_mpc")
_LABEL = "learned"
_CONFIGS = Path(__file__).parent.parent / "configs"


@dataclass(frozen=True, kw_only=True)
class Table:
    """One published table."""

    path: Path
    """Where it lies, below the folder of results."""
    scenario: Scenario
    """The world."""
    policies: tuple[str, ...]
    """What plays besides a trained agent."""
    seeds: int
    """The first so many evaluation seeds."""
    agent: str | None = None
    """The configuration of the agent that plays too."""
    reference: str | None = None
    """What differences are to; the best analytic policy for None."""


def tables(only: tuple[str, ...] | None, kinds: tuple[str, ...]) -> Iterator[Table]:
    """Yield the published tables of some kinds, of all presets or of some."""

    def of(kind: str, published: tuple[str, ...]) -> Iterator[str]:
        if kind in kinds:
            yield from (name for name in published if only is None or name in only)

    for name in of("clairvoyant", CLAIRVOYANT):
        epochs = 20 if name == "toy" else 60
        yield Table(
            path=Path(f"{name}.json"),
            scenario=resolve_scenario(name, {"control.horizon_epochs": epochs}),
            policies=(*_NAMED, "greedy_lookahead", "clairvoyant"),
            seeds=3,
        )
    for name in of("learned", LEARNED):
        yield Table(
            path=Path("learned") / f"{name}.json",
            scenario=resolve_scenario(name),
            policies=(*_NAMED, "greedy_lookahead"),
            seeds=10,
            agent=name,
        )
    for name in of("larger", LARGER):
        for nodes in LARGER_NODES:
            yield Table(
                path=Path("larger") / f"{name}-{nodes}.json",
                scenario=larger(resolve_scenario(name), nodes),
                policies=("static", "analytic_local", "analytic_mpc"),
                seeds=5,
                agent=name,
                reference="analytic_local",
            )


def larger(scenario: Scenario, nodes: int) -> Scenario:
    """Return a scenario drawn larger: as many requests a node and a square kilometre everywhere.

    Region and lengths of the demand (``…_km`` of its modulations) grow with the square root of the
    number of nodes, budget and moves per epoch with the number itself.
    """
    factor = nodes / scenario.mean_nodes
    side = math.sqrt(factor)
    modulations = [
        {key: side * value if key.endswith("_km") else value for key, value in modulation.items()}
        for modulation in scenario.document()["demand"]["modulations"]
    ]
    return scenario.with_overrides(
        {
            "nodes.count": nodes,
            "region.width_km": side * scenario.region.width_km,
            "region.height_km": side * scenario.region.height_km,
            "demand.modulations": modulations,
            "migration.budget_bytes_per_s": factor * scenario.migration.budget_bytes_per_s,
            "migration.burst_bytes": round(factor * scenario.migration.burst_bytes),
            "control.moves_per_epoch": round(factor * scenario.control.moves_per_epoch),
        }
    )


def run_tables(
    *,
    only: list[str] | None,
    kinds: list[str],
    folder: Path,
    runs: Path,
    threads: int | None,
    workers: int | None,
    console: Console,
) -> int:
    """Make the published tables that are missing or of another definition; return the exit code.

    An interrupted call goes on where it was: with the next table, and with training from its last
    checkpoint.

    Raises
    ------
    ConfigError
        If an argument is refused.
    """
    check_threads(threads)
    check_workers(workers)
    known = dict.fromkeys((*CLAIRVOYANT, *LEARNED, *LARGER))
    for name in only or ():
        if name not in known:
            raise ConfigError(f"--only {name}: has no published table; {', '.join(known)} have")
    models: dict[str, Path] = {}
    wanted = list(tables(tuple(only) if only else None, tuple(kinds)))
    for turn, table in enumerate(wanted, start=1):
        path = folder / table.path
        title = f"table {turn} of {len(wanted)}, {path}"
        remarks = () if table.agent is None else (_training_remark(table.agent),)
        if stands(path, table, remarks):
            console.print(f"{title}: stands", markup=False)
            continue
        if table.agent is not None and table.agent not in models:
            model = _trained(table.agent, runs, threads, console)
            if model is None:
                console.print("to go on, run the same command again", markup=False)
                return INTERRUPTED
            models[table.agent] = model
        console.print(f"{title}: playing", markup=False)
        prepare_folder(path.parent)
        model = None if table.agent is None else models[table.agent]
        play(table, model, workers, remarks).to_json(path)
    documents = [folder / table.path for table in tables(None, ("larger",))]
    if documents and all(path.is_file() for path in documents):
        from agents.larger_figure import larger_png

        with atomic_path(folder / "larger.png") as temporary:
            temporary.write_bytes(larger_png([_read(path) for path in documents]))
    return DONE


def play(
    table: Table, model: Path | None, workers: int | None, remarks: tuple[str, ...]
) -> Comparison:
    """Play a table."""
    policies: dict[str, Any] = {name: name for name in table.policies}
    if model is not None:
        policies[_LABEL] = model
    seeds = first_seeds(table.scenario, table.seeds)
    result = plan_comparison(
        policies, table.scenario, seeds, reference=table.reference, workers=workers
    ).run()
    return replace(result, remarks=(*result.remarks, *remarks))


def stands(path: Path, table: Table, remarks: tuple[str, ...]) -> bool:
    """Return whether a file holds a table as it is defined now."""
    if not path.is_file():
        return False
    document = _read(path)
    labels = [*table.policies, *([] if table.agent is None else [_LABEL])]
    return (
        document["scenario"] == json.loads(json.dumps(table.scenario.document()))
        and document["seeds"] == list(table.scenario.evaluation_seeds[: table.seeds])
        and sorted(row["policy"] for row in document["policies"]) == sorted(labels)
        and set(remarks) <= set(document["remarks"])
    )


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _config(name: str) -> TrainingConfig:
    config = TrainingConfig.from_yaml(_CONFIGS / f"{name}.yaml")
    return config.with_settings([f"total_steps={TRAINING_STEPS}"])


def _training_remark(name: str) -> str:
    config = _config(name)
    return (
        f"'{_LABEL}' is {config.algorithm} with the node scorer, trained on {config.scenario} with "
        f"{config.resolve().max_nodes} nodes for {config.total_steps:,} steps, seed {config.seed}, "
        f"by configs/{name}.yaml"
    )


def _trained(name: str, runs: Path, threads: int | None, console: Console) -> Path | None:
    """Return the trained agent's model, trained now if it is missing; None after Ctrl-C."""
    config, folder = _config(name), runs / name
    if (folder / CONFIG_FILE).is_file() and read_run(folder) != config:
        raise ConfigError(f"{folder}: holds a run of another configuration; remove it first")
    console.print(f"agent for {name}: {config.total_steps:,} steps", markup=False)
    result = train(config, folder, console, threads=threads)
    report_training(result, config, console)
    return result.model_path if result.finished else None
