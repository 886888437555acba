"""Arguments that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from edgegym.cli.errors import BadInput

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario

ScenarioArgument = Annotated[
    str, tyro.conf.arg(metavar="SCENARIO", help="A preset's name, or a YAML or JSON file.")
]

SetArgument = Annotated[
    tyro.conf.UseAppendAction[tuple[tuple[str, ...], ...]],
    tyro.conf.arg(
        name="set",
        metavar="KEY=VALUE",
        help="Change a value of the scenario by dotted path, as demand.rate_per_node=4.",
    ),
]


def chosen_scenario(scenario: str, settings: tuple[tuple[str, ...], ...]) -> "Scenario":
    """Return the scenario of ``--scenario`` with the changes of ``--set``.

    Raises
    ------
    ScenarioError
        If there is no such scenario or the changes don't fit.
    BadInput
        If a change is not of the form KEY=VALUE.
    """
    from edgegym.world.resolve import resolve_scenario

    return resolve_scenario(scenario, parsed_settings(settings))


def parsed_settings(settings: tuple[tuple[str, ...], ...]) -> dict[str, Any]:
    """Return ``KEY=VALUE`` texts as overrides; values are read as YAML."""
    import yaml

    overrides: dict[str, Any] = {}
    for text in (text for group in settings for text in group):
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise BadInput(f"--set {text}: must be KEY=VALUE, as demand.rate_per_node=4")
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            raise BadInput(f"--set {text}: the value is not valid YAML") from None
    return overrides


def output_folder(path: Path) -> None:
    """Make a folder for results, so that it can't fail after the work is done.

    Raises
    ------
    OSError
        If it can't be made, or is a file.
    """
    path.mkdir(parents=True, exist_ok=True)


def output_file(path: Path, suffix: str) -> None:
    """Check the name of a result and make its folder.

    Raises
    ------
    BadInput
        If the name has another suffix or is that of a folder.
    OSError
        If the folder can't be made.
    """
    if path.suffix.lower() != suffix:
        raise BadInput(f"--output {path}: the name must end in {suffix}")
    if path.is_dir():
        raise BadInput(f"--output {path}: is a folder")
    path.parent.mkdir(parents=True, exist_ok=True)
