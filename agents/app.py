"""The command line of the training harness: ``train``, ``evaluate``, ``demo``, ``tables``."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

DONE, BAD_INPUT, INTERRUPTED = 0, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process if omitted.

    Returns
    -------
    int
        0 when done, 2 for bad input (the message is on standard error), 130 after Ctrl-C.
    """
    parsed = _parser().parse_args(arguments)
    # Progress goes to standard error, results to standard output.
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    from agents.config import ConfigError
    from edgegym.sb3 import ModelError
    from edgegym.world.errors import ScenarioError

    try:
        return parsed.run(parsed, console)
    except (ConfigError, ModelError, ScenarioError) as error:
        console.print(f"error: {error}", markup=False)
        return BAD_INPUT
    except OSError as error:
        console.print(f"error: {error.filename or 'input/output'}: {error.strerror}", markup=False)
        return BAD_INPUT
    except KeyboardInterrupt:
        console.print("interrupted; what was complete is kept")
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agents", description="Train and evaluate agents for edgegym."
    )
    commands = parser.add_subparsers(required=True, metavar="command")
    _add_train(commands)
    _add_evaluate(commands)
    _add_demo(commands)
    _add_tables(commands)
    return parser


def _add_train(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    train = commands.add_parser(
        "train", help="train an agent", description="Train an agent, or go on training one."
    )
    train.add_argument("config", nargs="?", type=Path, help="a YAML file such as those in configs/")
    train.add_argument("--resume", type=Path, metavar="RUN", help="folder of a run to go on with")
    train.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change the configuration, such as total_steps=50000; repeatable",
    )
    train.add_argument("--seed", type=int, help="seed of model and environments")
    train.add_argument(
        "-o", dest="folder", type=Path, metavar="DIR", help="folder of the new run [runs/<config>]"
    )
    train.add_argument(
        "--checkpoint-s",
        type=float,
        default=20.0,
        metavar="SECONDS",
        help="time between checkpoints [20]",
    )
    _add_threads(train)
    train.set_defaults(run=_train)


def _add_evaluate(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    evaluate = commands.add_parser(
        "evaluate",
        help="compare a trained agent with other policies",
        description="Compare a trained agent with other policies on the evaluation seeds.",
    )
    evaluate.add_argument("run_folder", type=Path, metavar="RUN", help="folder of a training run")
    evaluate.add_argument(
        "--policy",
        dest="policies",
        nargs="+",
        default=["static", "analytic_local", "analytic_mpc"],
        metavar="NAME",
        help="what to compare with [static analytic_local analytic_mpc]",
    )
    evaluate.add_argument(
        "--seeds", type=int, metavar="N", help="only the first N evaluation seeds"
    )
    evaluate.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change the scenario, such as demand.rate_per_node=4; repeatable",
    )
    _add_workers(evaluate)
    evaluate.add_argument(
        "-o", dest="folder", type=Path, metavar="DIR", help="for the results [RUN/evaluation]"
    )
    evaluate.set_defaults(run=_evaluate)


def _add_demo(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    demo = commands.add_parser(
        "demo",
        help="train, compare and report, in minutes",
        description=(
            "Train an agent on moving hotspots, compare it with the analytic baseline, report. A "
            "demo that was interrupted goes on; one that is complete starts over."
        ),
    )
    demo.add_argument(
        "-o", dest="folder", type=Path, default=Path("runs/demo"), help="folder [runs/demo]"
    )
    demo.add_argument(
        "--config",
        type=Path,
        default=Path(__file__).parent.parent / "configs" / "demo.yaml",
        help="what to train [configs/demo.yaml]",
    )
    demo.add_argument("--seeds", type=int, default=10, help="evaluation seeds to use [10]")
    _add_workers(demo)
    _add_threads(demo)
    demo.set_defaults(run=_demo)


def _add_tables(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    tables = commands.add_parser(
        "tables",
        help="make the tables of docs/results: train, play, write",
        description=(
            "Make the published tables that are missing or of another definition. Interrupted, the "
            "same command goes on; to make a table anew, remove its file."
        ),
    )
    tables.add_argument(
        "--only", nargs="+", metavar="PRESET", help="only those of these presets [all]"
    )
    tables.add_argument(
        "--kind",
        dest="kinds",
        nargs="+",
        choices=("clairvoyant", "learned", "larger"),
        default=["clairvoyant", "learned", "larger"],
        help="with the clairvoyant policy, with a trained agent, with it on larger fleets [all]",
    )
    tables.add_argument(
        "-o",
        dest="folder",
        type=Path,
        default=Path("docs/results"),
        metavar="DIR",
        help="where the tables are [docs/results]",
    )
    tables.add_argument(
        "--runs",
        type=Path,
        default=Path("runs/tables"),
        metavar="DIR",
        help="where the trained agents are [runs/tables]",
    )
    _add_workers(tables)
    _add_threads(tables)
    tables.set_defaults(run=_tables)


def _add_threads(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--threads", type=int, help="threads for environments and learning [cores, at most 4]"
    )


def _add_workers(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers", type=int, help="processes that play the comparison [one per core]"
    )


def _train(parsed: argparse.Namespace, console: Console) -> int:
    from agents.commands import run_train

    return run_train(
        config_file=parsed.config,
        resume=parsed.resume,
        settings=parsed.settings,
        seed=parsed.seed,
        folder=parsed.folder,
        threads=parsed.threads,
        checkpoint_s=parsed.checkpoint_s,
        console=console,
    )


def _evaluate(parsed: argparse.Namespace, console: Console) -> int:
    from agents.commands import run_evaluate

    return run_evaluate(
        run=parsed.run_folder,
        policies=parsed.policies,
        seed_count=parsed.seeds,
        settings=parsed.settings,
        workers=parsed.workers,
        folder=parsed.folder,
        console=console,
    )


def _demo(parsed: argparse.Namespace, console: Console) -> int:
    from agents.demo import run_demo

    return run_demo(
        folder=parsed.folder,
        config_file=parsed.config,
        seed_count=parsed.seeds,
        threads=parsed.threads,
        workers=parsed.workers,
        console=console,
    )


def _tables(parsed: argparse.Namespace, console: Console) -> int:
    from agents.tables import run_tables

    return run_tables(
        only=parsed.only,
        kinds=parsed.kinds,
        folder=parsed.folder,
        runs=parsed.runs,
        threads=parsed.threads,
        workers=parsed.workers,
        console=console,
    )
