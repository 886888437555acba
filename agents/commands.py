"""The commands ``train`` and ``evaluate``."""

from pathlib import Path

from rich.console import Console

from agents.app import DONE, INTERRUPTED
from agents.config import ConfigError, TrainingConfig, parse_setting
from agents.training import (
    CONFIG_FILE,
    TrainingResult,
    check_checkpoint_s,
    check_threads,
    prepare_folder,
    read_run,
    train,
)
from edgegym.evaluation import plan_comparison
from edgegym.sb3.manifest import Manifest
from edgegym.sb3.models import model_file
from edgegym.world.scenario import Scenario


def run_train(
    *,
    config_file: Path | None,
    resume: Path | None,
    settings: list[str],
    seed: int | None,
    folder: Path | None,
    threads: int | None,
    checkpoint_s: float,
    console: Console,
) -> int:
    """Train from a configuration, or go on with a run; return the exit code.

    Raises
    ------
    ConfigError
        If the arguments contradict each other, or the configuration is refused.
    """
    check_threads(threads)
    check_checkpoint_s(checkpoint_s)
    if (config_file is None) == (resume is None):
        raise ConfigError("give either a configuration to start with, or --resume RUN")
    if resume is not None:
        config, folder = _resumed(resume, settings, seed, folder), resume
    else:
        assert config_file is not None
        config = TrainingConfig.from_yaml(config_file)
        seeded = [*settings, *([] if seed is None else [f"seed={seed}"])]
        config = config.with_settings(seeded)
        folder = Path("runs") / config_file.stem if folder is None else folder
        _check_new(folder)
    result = train(config, folder, console, threads=threads, checkpoint_s=checkpoint_s)
    report_training(result, config, console)
    if not result.finished:
        console.print(f"to go on: python -m agents train --resume {folder}", markup=False)
        return INTERRUPTED
    console.print(f"to compare it: python -m agents evaluate {folder}", markup=False)
    return DONE


def check_workers(workers: int | None) -> None:
    """Refuse a number of worker processes below 1.

    Raises
    ------
    ConfigError
        Naming it.
    """
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers {workers}: must be at least 1")


def report_training(result: TrainingResult, config: TrainingConfig, console: Console) -> None:
    """Say what was trained, how fast, and where it is."""
    how = "trained" if result.finished else "interrupted: kept what was trained,"
    speed = f" at {result.steps_per_s:,.0f} steps/s" if result.steps_per_s else ""
    console.print(f"{how} {result.steps:,} of {config.total_steps:,} steps{speed}", markup=False)
    console.print(f"model: {result.model_path}", markup=False)


def run_evaluate(
    *,
    run: Path,
    policies: list[str],
    seed_count: int | None,
    settings: list[str],
    workers: int | None,
    folder: Path | None,
    console: Console,
) -> int:
    """Compare a run's model with other policies; return the exit code.

    Raises
    ------
    ModelError, ScenarioError, ConfigError
        If the model, the scenario or an argument is refused.
    """
    check_workers(workers)
    model = model_file(run)
    manifest = Manifest.read(model)
    scenario = Scenario.from_document(manifest.scenario, source=str(model))
    scenario = scenario.with_overrides(dict(map(parse_setting, settings)))
    seeds = first_seeds(scenario, seed_count)
    try:
        plan = plan_comparison(
            {"learned": model, **{name: name for name in policies}},
            scenario,
            seeds,
            workers=workers,
        )
    except ValueError as error:
        raise ConfigError(str(error)) from None
    folder = run / "evaluation" if folder is None else folder
    prepare_folder(folder)
    result = plan.run()
    result.print()
    result.to_json(folder / "comparison.json")
    result.to_csv(folder / "comparison.csv")
    result.to_html(folder / "comparison.html")
    console.print(f"results: {folder}", markup=False)
    return DONE


def first_seeds(scenario: Scenario, count: int | None) -> tuple[int, ...]:
    """Return the first evaluation seeds of a scenario, all of them without a count.

    Raises
    ------
    ConfigError
        If there are not so many.
    """
    seeds = scenario.evaluation_seeds
    if count is None:
        return seeds
    if not 1 <= count <= len(seeds):
        raise ConfigError(
            f"--seeds {count}: scenario '{scenario.name}' has {len(seeds)} evaluation seeds"
        )
    return seeds[:count]


def _resumed(
    run: Path, settings: list[str], seed: int | None, folder: Path | None
) -> TrainingConfig:
    if seed is not None or folder is not None:
        raise ConfigError("--resume goes on with a run's own seed and folder: leave out --seed, -o")
    for setting in settings:
        path, _ = parse_setting(setting)
        if path != "total_steps":
            raise ConfigError(f"--set {setting}: of a run that resumes only total_steps can change")
    return read_run(run).with_settings(settings)


def _check_new(folder: Path) -> None:
    if (folder / CONFIG_FILE).exists():
        raise ConfigError(
            f"{folder}: there is a run here already; go on with --resume {folder}, or choose "
            "another folder with -o"
        )
