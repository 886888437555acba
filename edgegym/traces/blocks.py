"""The blocks of a scenario document, from what was chosen for a trace."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles import CandidateProfile
from edgegym.traces.grouping import TypeGroups
from edgegym.traces.selection import KeptForest

REST = "rest"
"""Family of the requests that begin with no chosen prefix."""


def vertex_names(forest: KeptForest) -> list[str]:
    """Return the vertices' names: a running number and the depth in tokens."""
    return [f"v{v + 1}_{depth}" for v, depth in enumerate(forest.depth_tokens.tolist())]


def forest_block(forest: KeptForest) -> list[dict[str, Any]]:
    """Return the ``forest`` block."""
    names = vertex_names(forest)
    return [
        {"name": name, "parent": names[above] if above >= 0 else None, "depth_tokens": depth}
        for name, above, depth in zip(
            names, forest.parent.tolist(), forest.depth_tokens.tolist(), strict=True
        )
    ]


def type_names(forest: KeptForest, types: TypeGroups) -> list[str]:
    """Return the types' names: that of the vertex, and a running number."""
    names = vertex_names(forest)
    seen: Counter[int] = Counter()
    found = []
    for vertex in types.vertex.tolist():
        seen[vertex] += 1
        found.append(f"{REST if vertex < 0 else names[vertex]}_{seen[vertex]}")
    return found


def type_blocks(
    forest: KeptForest, types: TypeGroups, family: NDArray[np.int64]
) -> list[dict[str, Any]]:
    """Return the ``request_types`` block; ``family`` is that of each vertex, ``[V]``."""
    vertices, names = vertex_names(forest), type_names(forest, types)
    order = []
    for q, vertex in enumerate(types.vertex.tolist()):
        rest = vertex < 0
        number = family.max() + 1 if rest else family[vertex]
        block = {
            "name": names[q],
            "path": None if rest else vertices[vertex],
            "input_tokens": int(types.input_tokens[q]),
            "output_tokens": int(types.output_tokens[q]),
            "family": REST if rest else f"family_{number + 1}",
            "share": float(types.share[q]),
        }
        order.append((int(number), q, block))
    # A scenario's families are numbered as they appear: the most requested first, the rest last.
    return [block for _, _, block in sorted(order, key=lambda item: item[:2])]


def migration_block(
    profiles: Sequence[CandidateProfile], seconds_per_move: float
) -> dict[str, Any]:
    """Return the ``migration`` block: a mean profile each ``seconds_per_move``, two saved up."""
    sizes = [profile.bytes for profile in profiles if profile.bytes > 0]
    return {
        "budget_bytes_per_s": sum(sizes) / len(sizes) / seconds_per_move,
        "burst_bytes": 2 * max(sizes),
    }


def service_block(service: str, output_scv: float) -> dict[str, Any]:
    """Return the ``service`` block: decode times scatter as generated lengths do within types.

    Parameters
    ----------
    service : str
        ``slots`` or ``engine``, as in :class:`~edgegym.traces.BuildOptions`.
    output_scv : float
        Squared coefficient of variation of the output lengths within types.
    """
    if service == "engine":
        # Its two laws of the length have the squared coefficients 0 and nearly 1.
        return {"kind": "engine", "output": "geometric" if output_scv > 0.5 else "fixed"}
    if output_scv == 0.0:
        return {"kind": "deterministic"}
    # A lognormal of mean 1 has the squared coefficient of variation exp(sigma^2) - 1.
    return {"kind": "lognormal", "sigma": math.log1p(output_scv) ** 0.5}
