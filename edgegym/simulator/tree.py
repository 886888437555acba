"""Nested tuples of arrays, handled alike whatever their fields."""

from collections.abc import Callable, Iterator
from typing import Any


def map_arrays(function: Callable[..., Any], tree: Any, *others: Any) -> Any:
    """Apply a function to every array of a nested NamedTuple.

    Parameters
    ----------
    function : callable
        Takes one array of each tree.
    tree : NamedTuple, array or None
        Its leaves are arrays; None stays None.
    *others : NamedTuple, array or None
        Trees of the same form.

    Returns
    -------
    NamedTuple, object or None
        The same form.
    """
    if tree is None:
        return None
    if not isinstance(tree, tuple):
        return function(tree, *others)
    parts = zip(tree, *others, strict=True)
    return type(tree)._make(map_arrays(function, *part) for part in parts)  # type: ignore[attr-defined]


def named_arrays(tree: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the array of every leaf.

    Parameters
    ----------
    tree : NamedTuple, array or None
        Its leaves are arrays.
    path : str
        Begins the names.
    """
    if tree is None:
        return
    if not isinstance(tree, tuple):
        yield path, tree
        return
    for name in tree._fields:  # type: ignore[attr-defined]
        yield from named_arrays(getattr(tree, name), f"{path}.{name}" if path else name)
