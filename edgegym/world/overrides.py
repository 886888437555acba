"""Dotted overrides of a scenario document."""

import copy
from collections.abc import Collection, Mapping
from typing import Any

from edgegym.world.errors import ScenarioError

_COORDINATES = ("coordinates_file", "coordinates_km", "origin_km")
# Giving one of these says that its alternative no longer holds.
_ALTERNATIVES = {
    ("nodes", "count"): ("density_per_km2", "max_count", *_COORDINATES),
    ("nodes", "density_per_km2"): ("count", *_COORDINATES),
    ("nodes", "coordinates_file"): ("count", "density_per_km2", "max_count", *_COORDINATES),
    ("nodes", "coordinates_km"): ("count", "density_per_km2", "max_count", *_COORDINATES),
    ("demand", "rate_per_node"): ("request_intensity",),
    ("demand", "request_intensity"): ("rate_per_node",),
}


def _begins_anew(above: list[str], last: str) -> bool:
    """Return whether a field says what its whole block is, so that the others no longer hold."""
    return (last == "kind" and above != ["objective"]) or (
        last == "preset" and above[-1:] == ["hardware"]
    )


def undoes(path: str, other: str) -> bool:
    """Return whether a value at one path undoes what was set at another one before.

    It does if it stands there too or above, if only one of both fields may be given, or if it
    starts the block of the other one anew.
    """
    *above, last = path.split(".")
    alternatives = _ALTERNATIVES.get((".".join(above), last), ())
    below = f"{'.'.join(above)}." if above and _begins_anew(above, last) else f"{path}."
    return (
        other == path
        or other.startswith(below)
        or other in {".".join((*above, name)) for name in alternatives}
    )


def _descend(here: Any, key: str, path: str) -> Any:
    if isinstance(here, Mapping):
        if key in here:
            return here[key]
        known = ", ".join(map(str, here))
    elif isinstance(here, list):
        for position, item in enumerate(here):
            name = item.get("name", item.get("kind")) if isinstance(item, Mapping) else None
            if key in (name, str(position)):
                return item
        names = [item.get("name", item.get("kind")) for item in here if isinstance(item, Mapping)]
        known = ", ".join(map(str, names))
    else:
        known = "nothing, it is a plain value"
    raise ScenarioError(f"override '{path}': there is no '{key}' here (known: {known})")


def apply_overrides(
    document: dict[str, Any], overrides: Mapping[str, Any], absent: Collection[str] = ()
) -> dict[str, Any]:
    """Return a copy of a scenario document with the values at some dotted paths replaced.

    Parameters
    ----------
    document : dict
        As :meth:`Scenario.document` gives it.
    overrides : mapping
        Dotted path to new value. List items are addressed by ``name``, modulations by ``kind``.
        Setting one of two exclusive fields (such as ``nodes.count`` and ``nodes.density_per_km2``)
        removes the other; setting a ``kind`` or a hardware ``preset`` starts its whole block anew.
    absent : collection of str
        Blocks that the document may have but lacks, for a message that says so.

    Raises
    ------
    ScenarioError
        If the path up to its last part does not exist. Whether the last part is a known field is
        checked when the scenario is built.
    """
    if not isinstance(overrides, Mapping):
        raise ScenarioError(
            f"overrides = {overrides!r}: must be a mapping of dotted paths to values, got "
            f"{type(overrides).__name__}"
        )
    changed = copy.deepcopy(document)
    for path, value in overrides.items():
        if not isinstance(path, str):
            raise ScenarioError(f"overrides: path {path!r} is not text, such as 'nodes.count'")
        *above, last = path.split(".")
        here: Any = changed
        if above and above[0] in absent and above[0] not in changed:
            raise ScenarioError(
                f"override '{path}': the scenario has no '{above[0]}' yet; first give the block as "
                f"a whole, {above[0]} = {{...}} with all that it requires"
            )
        for key in above:
            here = _descend(here, key, path)
        if isinstance(here, list):
            here[here.index(_descend(here, last, path))] = value
        elif isinstance(here, dict):
            if _begins_anew(above, last):
                here.clear()
            for other in _ALTERNATIVES.get((".".join(above), last), ()):
                here.pop(other, None)
            here[last] = value
        else:
            _descend(here, last, path)
    return changed
