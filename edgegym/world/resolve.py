"""From what a user writes (a name, a path, a scenario) to a scenario."""

import os
from pathlib import Path
from typing import Any

from edgegym.world.errors import ScenarioError, shown
from edgegym.world.presets import preset, presets
from edgegym.world.scenario import Scenario


def resolve_scenario(
    scenario: "str | os.PathLike[str] | Scenario", overrides: dict[str, Any] | None = None
) -> Scenario:
    """Return the scenario that a preset's name, a file or a scenario stands for.

    Parameters
    ----------
    scenario : str, path-like or Scenario
        A preset's name, the path of a YAML or JSON file, or a scenario.
    overrides : dict, optional
        Dotted path to value, see :meth:`Scenario.with_overrides`.

    Raises
    ------
    ScenarioError
        If there is no such preset or file, or the result is not valid.
    """
    if isinstance(scenario, Scenario):
        found = scenario
    elif isinstance(scenario, str) and scenario in presets():
        found = preset(scenario)
    elif isinstance(scenario, str | os.PathLike):
        found = _from_file(scenario)
    else:
        raise ScenarioError(
            f"scenario = {shown(scenario)}: must be a preset's name, a path or a Scenario, "
            f"got {type(scenario).__name__}"
        )
    return found.with_overrides({} if overrides is None else overrides)


def _from_file(written: str | os.PathLike[str]) -> Scenario:
    path = Path(written)
    suffix = path.suffix.lower()
    if suffix == ".json":
        return Scenario.from_json(path)
    if suffix in {".yaml", ".yml"}:
        return Scenario.from_yaml(path)
    raise ScenarioError(
        f"scenario = '{written}': neither a preset (known: {', '.join(presets())}) nor a .yaml, "
        ".yml or .json file"
    )
