"""``edgegym compare``: let policies serve the same requests."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import tyro

from edgegym.cli.arguments import (
    ScenarioArgument,
    SetArgument,
    checked_policy,
    chosen_scenario,
    output_folder,
)
from edgegym.cli.errors import BadInput, checked_input

if TYPE_CHECKING:
    from edgegym.evaluation import Comparison, ComparisonPlan

_DEFAULT_POLICIES = ("static", "uniform", "analytic", "analytic_local")
_FILES = tuple(f"comparison.{kind}" for kind in ("json", "csv", "png", "html"))

_Value = TypeVar("_Value")

Policies = Annotated[
    tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]],
    tyro.conf.arg(
        metavar="NAME ...",
        help=f"Built-in policies; without any: {', '.join(_DEFAULT_POLICIES)}.",
    ),
]
Models = Annotated[
    tyro.conf.UseAppendAction[tuple[tuple[Path, ...], ...]],
    tyro.conf.arg(
        metavar="PATH ...", help="Saved models (.zip), or folders that have a model.zip."
    ),
]


def compare(
    *,
    scenario: ScenarioArgument = "moving-hotspot",
    policy: Policies = (),
    model: Models = (),
    seeds: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    reference: Annotated[str | None, tyro.conf.arg(metavar="LABEL")] = None,
    settings: SetArgument = (),
    output: Annotated[Path | None, tyro.conf.arg(aliases=["-o"], metavar="DIR")] = None,
    workers: Annotated[int | None, tyro.conf.arg(metavar="N")] = None,
    observe_clock: bool = False,
    progress: bool = True,
) -> None:
    """Let policies serve the same requests, and compare them.

    Prints coverage, time to first token (TTFT), bytes moved, and the paired difference to the
    reference with a 95 % bootstrap interval. Example:

    edgegym compare --scenario moving-hotspot --policy static analytic --model runs/demo -o out

    Parameters
    ----------
    seeds
        How many of the scenario's evaluation seeds to use, from the first; all without it.
    reference
        Policy that differences are to; without it the best analytic one compared.
    output
        Folder for comparison.json, .csv, .png and .html.
    workers
        Worker processes; one per core without it.
    observe_clock
        Whether the environment observes the clock, for models that were trained so.
    progress
        Whether to show how far it is, on standard error.
    """
    with checked_input():
        plan = _plan(scenario, policy, model, seeds, reference, settings, workers, observe_clock)
        if output is not None:
            output_folder(output, _FILES)
    comparison = plan.run(progress)
    comparison.print()
    if output is not None:
        with checked_input():
            _write(comparison, output)
        print(f"Wrote comparison.json, .csv, .png and .html to {output}")


def _plan(
    scenario: str,
    policy: tuple[tuple[str, ...], ...],
    model: tuple[tuple[Path, ...], ...],
    seeds: int | None,
    reference: str | None,
    settings: tuple[tuple[str, ...], ...],
    workers: int | None,
    observe_clock: bool,
) -> "ComparisonPlan":
    from edgegym.evaluation import plan_comparison

    world = chosen_scenario(scenario, settings)
    contestants = named_policies(policy) | labelled_models(model)
    chosen = world.evaluation_seeds
    if seeds is not None:
        if not 1 <= seeds <= len(chosen):
            raise BadInput(
                f"--seeds {seeds}: must lie in 1..{len(chosen)}, the number of evaluation seeds of "
                f"scenario '{world.name}' (evaluation_seeds)"
            )
        chosen = chosen[:seeds]
    return plan_comparison(
        contestants,
        world,
        seeds=chosen,
        reference=reference,
        workers=workers,
        observe_clock=observe_clock,
    )


def named_policies(groups: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Return the policies of ``--policy`` by label; the usual ones if there is none.

    Raises
    ------
    BadInput
        If a name is not that of a built-in policy or stands twice, or the option has none.
    """
    names = _listed("--policy", groups) or list(_DEFAULT_POLICIES)
    return {name: checked_policy(name) for name in names}


def labelled_models(groups: tuple[tuple[Path, ...], ...]) -> dict[str, Any]:
    """Return the models of ``--model`` by label: the folder of a ``model.zip``, or the file's name.

    Models that would have the same label, or a policy's, are labelled by their whole path.

    Raises
    ------
    BadInput
        If a path stands twice, or the option has none.
    """
    from edgegym.policies import policies

    paths = _listed("--model", groups)
    labels = [_short_label(path) for path in paths]
    return {
        str(path) if labels.count(label) > 1 or label in policies() else label: path
        for label, path in zip(labels, paths, strict=True)
    }


def _listed(option: str, groups: tuple[tuple[_Value, ...], ...]) -> list[_Value]:
    """Return the values of an option that may be repeated and takes several values each time."""
    if not all(groups):
        raise BadInput(f"{option}: must have at least one value")
    values = [value for group in groups for value in group]
    for value in values:
        if values.count(value) > 1:
            raise BadInput(f"{option} {value}: given twice; each is compared once")
    return values


def _short_label(path: Path) -> str:
    if path.name == "model.zip" and path.parent.name:
        return path.parent.name
    return path.stem if path.suffix == ".zip" else path.name or str(path)


def _write(comparison: "Comparison", folder: Path) -> None:
    comparison.to_json(folder / "comparison.json")
    comparison.to_csv(folder / "comparison.csv")
    comparison.to_png(folder / "comparison.png")
    comparison.to_html(folder / "comparison.html")
