"""``edgegym scenarios``: list the built-in worlds, print one, or check one."""

import sys
from typing import Annotated

import tyro

from edgegym.cli.arguments import SetArgument, chosen_scenario
from edgegym.cli.errors import BadInput, checked_input


def list_() -> None:
    """List the built-in scenarios: size, and why each exists."""
    from rich import box
    from rich.table import Table

    from edgegym.evaluation.terminal import output_console
    from edgegym.world import preset, presets

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("scenario", no_wrap=True, style="bold")
    for name in ("nodes", "families", "profiles"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why it exists", ratio=1)
    for name in presets():
        scenario = preset(name)
        nodes = f"{scenario.mean_nodes:g}"
        if scenario.nodes.fixed_count(scenario.region.area_km2) is None:
            nodes = f"about {nodes}"
        table.add_row(
            name,
            nodes,
            str(len(scenario.family_names)),
            str(len(scenario.profiles)),
            scenario.description,
        )
    console = output_console()
    console.print(table)


NameArgument = Annotated[
    str,
    tyro.conf.Positional,
    tyro.conf.arg(metavar="NAME", help="A preset's name, or a YAML or JSON file."),
]


def show(
    name: NameArgument,
    *,
    settings: SetArgument = (),
) -> None:
    """Print a scenario as YAML, every value included: the start of a scenario of your own.

    Example: edgegym scenarios show toy > mine.yaml
    """
    import yaml

    with checked_input():
        scenario = chosen_scenario(name, settings)
    yaml.safe_dump(scenario.document(), sys.stdout, sort_keys=False, allow_unicode=True)


def check(
    name: NameArgument,
    *,
    seeds: Annotated[int, tyro.conf.arg(metavar="NUMBER")] = 2,
    epochs: Annotated[int, tyro.conf.arg(metavar="NUMBER")] = 24,
    settings: SetArgument = (),
) -> None:
    """Check that a scenario makes a sensible task: feasible, stable, with room for a policy.

    Plays static, analytic_local and clairvoyant. Exit code 2 if a rule is broken. Example:

    edgegym scenarios check mine.yaml --seeds 4

    Parameters
    ----------
    seeds
        Episodes of each policy.
    epochs
        Length of an episode.
    """
    from edgegym.testing import CheckFailed, check_scenario

    with checked_input():
        scenario = chosen_scenario(name, settings)
        if seeds < 1:
            raise BadInput(f"--seeds {seeds}: must be at least 1")
        if epochs < 1:
            raise BadInput(f"--epochs {epochs}: must be at least 1")
    try:
        report = check_scenario(scenario, range(seeds), epochs, workers=None, progress=True)
    except CheckFailed as error:
        raise BadInput(str(error)) from error
    print(report)
