"""Arguments that several commands share."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from edgegym.cli.errors import BadInput
from edgegym.files import make_folder, refuse_folder

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

    from edgegym.world.yaml import load_yaml

    overrides: dict[str, Any] = {}
    for text in (text for group in settings for text in group):
        key, equals, value = text.partition("=")
        if not (key and equals):
            raise BadInput(f"--set {text}: must be KEY=VALUE, as demand.rate_per_node=4")
        try:
            overrides[key] = load_yaml(value)
        except yaml.YAMLError:
            raise BadInput(f"--set {text}: the value is not valid YAML") from None
    return overrides


def checked_policy(name: str) -> str:
    """Return the name of a built-in policy.

    Raises
    ------
    BadInput
        If no policy has that name.
    """
    from edgegym.policies import policies

    if name not in policies():
        raise BadInput(f"--policy {name}: must be one of {', '.join(policies())}")
    return name


def output_folder(path: Path, files: Sequence[str]) -> None:
    """Make a folder for results, so that it can't fail after the work is done.

    Parameters
    ----------
    path : pathlib.Path
        The folder.
    files : sequence of str
        What will be written to it.

    Raises
    ------
    BadInput
        If it can't be made or written to, is a file, or a folder has the name of a result.
    """
    with _errors_name_output(path):
        make_folder(path)
        for name in files:
            refuse_folder(path / name)


def output_file(path: Path, suffix: str, option: str = "--output") -> None:
    """Check the name of a result.

    Raises
    ------
    BadInput
        If the name has another suffix or is that of a folder.
    """
    if path.suffix.lower() != suffix:
        raise BadInput(f"{option} {path}: the name must end in {suffix}")
    with _errors_name_output(path, option):
        refuse_folder(path)


def make_folder_of(path: Path, option: str = "--output") -> None:
    """Make the folder of a result, once all else is known to be right.

    Raises
    ------
    BadInput
        If it can't be made or written to.
    """
    with _errors_name_output(path, option):
        make_folder(path.parent)


@contextmanager
def _errors_name_output(path: Path, option: str = "--output") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        where = "" if error.filename in (None, str(path)) else f"{error.filename}: "
        raise BadInput(f"{option} {path}: {where}{reason}") from error
