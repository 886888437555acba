"""Paths of the files that a scenario names: coordinates of nodes, recorded requests."""

from pathlib import Path
from typing import Any


def with_absolute_paths(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a scenario document whose files are found from anywhere.

    Parameters
    ----------
    document : dict
        Anything that was read from a scenario file, valid or not.
    folder : pathlib.Path
        The folder of that file.
    """

    def absolute(path: str) -> str:
        return str(folder.absolute() / path) if path else path

    return _with_paths(document, absolute)


def with_relative_paths(document: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return a scenario document for a file: files below its folder are named from there.

    Parameters
    ----------
    document : dict
        Of a valid scenario.
    folder : pathlib.Path
        The folder of the file to be written.
    """
    here = folder.absolute()

    def relative(path: str) -> str:
        below = Path(path).is_relative_to(here)
        return Path(path).relative_to(here).as_posix() if below else path

    return _with_paths(document, relative)


def _with_paths(document: dict[str, Any], change: Any) -> dict[str, Any]:
    demand = document.get("demand")
    if isinstance(demand, dict) and isinstance(demand.get("modulations"), list | tuple):
        items = [
            _changed(item, "path", change) if _is_trace(item) else item
            for item in demand["modulations"]
        ]
        document = document | {"demand": demand | {"modulations": items}}
    if isinstance(document.get("nodes"), dict):
        nodes = _changed(document["nodes"], "coordinates_file", change)
        document = document | {"nodes": nodes}
    return document


def _is_trace(item: Any) -> bool:
    return isinstance(item, dict) and item.get("kind") == "trace"


def _changed(block: dict[str, Any], key: str, change: Any) -> dict[str, Any]:
    written = block.get(key)
    return block | {key: change(written)} if isinstance(written, str) else block
