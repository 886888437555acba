"""The cells of the search grid, ring by ring around a user.

Ring 0 is the user's own cell, ring k the cells whose row or column is k away and the other no
farther. In a region that wraps the rings go round it and end where they would meet themselves; in
one that does not they end at its edges. Without a grid there is one ring: all nodes.
"""

import math
from typing import NamedTuple

from edgegym.simulator.compiling import inlined
from edgegym.simulator.lane import Area

# Nodes are put into cells with other roundings than users.
_SLACK = 1e-9

WIDER = 1.0 - 1e-9
"""A bound is computed with other roundings than what it bounds: times this it surely holds."""


class Rings(NamedTuple):
    """The rings around one user."""

    column: int  # of the user's cell
    row: int
    margin_km: float  # from the user to the nearest edge of its cell
    step_km: float  # at least this much more lies within each further ring
    left: int  # columns on that side, without those that come from the other one
    right: int
    below: int
    above: int
    last: int  # number of the outermost ring


@inlined
def rings_around(area: Area, x: float, y: float) -> Rings:
    """Return the rings around a place."""
    cells_x, cells_y = area.cells_x, area.cells_y
    if cells_x == 0:
        return Rings(0, 0, math.inf, math.inf, 0, 0, 0, 0, 0)
    width_km, height_km = area.width_km / cells_x, area.height_km / cells_y
    column = min(int(x / width_km), cells_x - 1)
    row = min(int(y / height_km), cells_y - 1)
    left, right, below, above = column, cells_x - 1 - column, row, cells_y - 1 - row
    if area.periodic:
        left, below = (cells_x - 1) // 2, (cells_y - 1) // 2
        right, above = cells_x // 2, cells_y // 2
    inset_x, inset_y = x - column * width_km, y - row * height_km
    margin_km = min(min(inset_x, width_km - inset_x), min(inset_y, height_km - inset_y))
    step_km = min(width_km, height_km)
    last = max(max(left, right), max(below, above))
    return Rings(
        column, row, margin_km - _SLACK * step_km, step_km, left, right, below, above, last
    )


@inlined
def seen_squared_km2(rings: Rings, ring: int) -> float:
    """Return a squared distance: all nearer nodes lie in this ring and those within it."""
    if ring >= rings.last:
        return math.inf
    seen_km = max(rings.margin_km + ring * rings.step_km, 0.0)
    return seen_km * seen_km


@inlined
def run_of(area: Area, rings: Rings, ring: int, offset: int, part: int) -> tuple[int, int]:
    """Return where one part of a ring's row begins and ends among the sites.

    Rows have two parts, 0 and 1: the outer rows of a ring may wrap, the others have a cell at each
    end. An empty part has begin = end.
    """
    if area.cells_x == 0:
        return 0, area.num_nodes if part == 0 else 0
    if offset > rings.above or -offset > rings.below:
        return 0, 0
    row = rings.row + offset
    row += area.cells_y if row < 0 else (-area.cells_y if row >= area.cells_y else 0)
    row *= area.cells_x
    first, last = max(-ring, -rings.left), min(ring, rings.right)
    if abs(offset) < ring:
        end = -ring if part == 0 else ring
        if end < first or end > last:
            return 0, 0
        first = last = end
    first += rings.column
    last += rings.column
    cells_x = area.cells_x
    if abs(offset) < ring:
        first += cells_x if first < 0 else (-cells_x if first >= cells_x else 0)
        last = first
    elif first < 0:
        if part == 0:
            first, last = first + cells_x, cells_x - 1
        else:
            first = 0
    elif last >= cells_x:
        if part == 0:
            last = cells_x - 1
        else:
            first, last = 0, last - cells_x
    elif part == 1:
        return 0, 0
    return area.cell_start[row + first], area.cell_start[row + last + 1]
