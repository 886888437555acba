"""The whole job once: train, compare with the analytic baseline, report."""

import shutil
import time
from pathlib import Path

from rich.console import Console

from agents.app import DONE, INTERRUPTED
from agents.commands import check_workers, first_seeds, report_training
from agents.config import ConfigError, TrainingConfig
from agents.training import CONFIG_FILE, check_threads, prepare_folder, read_run, train
from edgegym.evaluation import Comparison, animate, compare

_BASELINES = ("static", "uniform", "analytic", "analytic_local", "analytic_mpc")
_LEARNED = "learned"
_ANIMATED_EPOCHS = 60  # five minutes: half an orbit of the crowds, and half the bytes
_REPORT = "comparison.json"
_OURS = (
    CONFIG_FILE,
    _REPORT,
    "comparison.csv",
    "comparison.png",
    "agent.gif",
    "model.zip",
    "model.json",
    "tensorboard",
)


def run_demo(
    *,
    folder: Path,
    config_file: Path,
    seed_count: int,
    threads: int | None,
    workers: int | None,
    console: Console,
) -> int:
    """Train, compare and report; return the exit code.

    A demo that was interrupted goes on where it was; a complete one, or one of another
    configuration, is replaced.

    Raises
    ------
    ConfigError
        If the folder holds something else, or an argument is refused.
    """
    began_s = time.perf_counter()
    check_threads(threads)
    check_workers(workers)
    config = TrainingConfig.from_yaml(config_file)
    scenario = config.resolve()
    seeds = first_seeds(scenario, seed_count)
    prepare_folder(folder)
    _prepare(folder, config, console)
    console.print(
        f"Training an agent on '{scenario.name}' for {config.total_steps:,} steps of "
        f"{scenario.control.epoch_s:g} s each",
        markup=False,
    )
    result = train(config, folder, console, threads=threads)
    report_training(result, config, console)
    if not result.finished:
        console.print(f"to go on, run the same command again ({folder} is kept)", markup=False)
        return INTERRUPTED
    console.print(f"Comparing it with {', '.join(_BASELINES)} on {len(seeds)} evaluation seeds")
    comparison = compare(
        {_LEARNED: result.model_path, **{name: name for name in _BASELINES}},
        scenario=scenario,
        seeds=seeds,
        workers=workers,
    )
    console.print("Drawing")
    epochs = min(_ANIMATED_EPOCHS, scenario.control.horizon_epochs)
    animate(result.model_path, scenario, seeds[0], folder / "agent.gif", epochs=epochs)
    comparison.to_csv(folder / "comparison.csv")
    comparison.to_png(folder / "comparison.png")
    # Last of all: it marks the demo as complete.
    comparison.to_json(folder / _REPORT)
    comparison.print()
    _conclude(comparison, folder, time.perf_counter() - began_s)
    return DONE


def _prepare(folder: Path, config: TrainingConfig, console: Console) -> None:
    """Make the folder ready: as it is to go on, empty to start over."""
    if not any(folder.iterdir()):
        return
    if not (folder / CONFIG_FILE).is_file():
        raise ConfigError(f"{folder}: not empty and not of a demo; choose another folder with -o")
    if (folder / _REPORT).exists():
        console.print(f"{folder} holds a complete demo: starting over", markup=False)
    elif read_run(folder) != config:
        console.print(f"{folder} holds a demo of another configuration: starting over")
    else:
        return
    for path in [*(folder / name for name in _OURS), *folder.glob("*checkpoint-*")]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _conclude(comparison: Comparison, folder: Path, seconds: float) -> None:
    row = comparison.table[_LEARNED]
    low, high = row.difference_interval.low, row.difference_interval.high
    if row.difference is not None and low is not None and high is not None:
        verdict = "beats" if low > 0 else "does not clearly beat"
        print(
            f"The trained agent {verdict} the best analytic policy, {comparison.reference}: "
            f"coverage {row.difference:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}."
        )
    minutes, rest = divmod(round(seconds), 60)
    print(f"Everything is in {folder} after {minutes} min {rest:02d} s:")
    for name, text in (
        ("model.zip", "the model, with its manifest model.json"),
        ("tensorboard", f"events: tensorboard --logdir {folder / 'tensorboard'}"),
        ("comparison.json", "the table, also as comparison.csv"),
        ("comparison.png", "the figure"),
        ("agent.gif", "the trained agent at work"),
    ):
        print(f"  {name:16} {text}")
