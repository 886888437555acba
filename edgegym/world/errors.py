"""Errors about a scenario, in words that name the field, the value and the rule."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError


class ScenarioError(ValueError):
    """A scenario was refused: the message names the dotted path, the value and the rule."""


def _walk(document: Any, location: Sequence[int | str]) -> str:
    """Return a dotted path in which list items appear by name where they have one."""
    parts: list[str] = []
    here = document
    for key in location:
        if isinstance(here, Mapping):
            if key not in here:
                # A union's tag or a missing key: only the latter is something the user can write.
                if key == location[-1] and key != here.get("kind"):
                    parts.append(str(key))
                continue
            here = here[key]
            parts.append(str(key))
        elif isinstance(here, Sequence) and not isinstance(here, str) and isinstance(key, int):
            here = here[key] if key < len(here) else None
            name = here.get("name") if isinstance(here, Mapping) else None
            parts.append(str(name) if name is not None else str(key))
        elif isinstance(key, int) or key == location[-1]:
            parts.append(str(key))
    return ".".join(parts)


def shown(value: Any) -> str:
    """Return a value as it is shown in a message: no longer than a line."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _context(item: Any) -> dict[str, Any]:
    """Return the numbers and names in a message of pydantic."""
    return item["ctx"]


def _tag_of(item: Any) -> str:
    """Return the name of the field that says which member of a union is meant."""
    return _context(item)["discriminator"].strip("'")


def scenario_error(error: ValidationError, document: Any) -> ScenarioError:
    """Turn pydantic's report into one message of ours.

    Parameters
    ----------
    error : pydantic.ValidationError
        What the models refused.
    document : Any
        The mapping that was validated, to name list items by their names.

    Returns
    -------
    ScenarioError
        One line for each refused field: ``path = value: rule``.
    """
    lines = []
    for item in error.errors(include_url=False):
        path = _walk(document, item["loc"])
        kind = item["type"]
        rule = item["msg"].removeprefix("Value error, ")
        if kind == "extra_forbidden":
            lines.append(f"{path}: unknown key; remove it or correct its spelling")
        elif kind == "missing":
            lines.append(f"{path}: missing, but required")
        elif kind == "union_tag_not_found" and isinstance(item["input"], Mapping):
            lines.append(f"{path}.{_tag_of(item)}: missing, but required")
        elif kind == "union_tag_invalid":
            known, tag = _context(item)["expected_tags"], _context(item)["tag"]
            lines.append(f"{path}.{_tag_of(item)} = {tag!r}: must be one of {known}")
        elif kind == "value_error" and isinstance(item["input"], Mapping | list | tuple):
            # A rule between several fields names them itself, perhaps with the path.
            named = not path or rule.startswith((f"{path}.", f"{path} "))
            lines.append(rule if named else f"{path}: {rule}")
        else:
            lines.append(f"{path} = {shown(item['input'])}: {rule}")
    unique = list(dict.fromkeys(lines))
    return ScenarioError("\n".join(unique))
