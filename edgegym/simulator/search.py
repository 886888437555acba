"""The exact search for the node with the least score.

Small fleets are scanned node by node. Larger ones lie in a uniform grid of cells, and a search
visits the rows of cells around the user, in each row only the cells that a disc touches: no node
beyond it, not even one without a wait, could win. The disc is known from the start, from a node
near the user, and shrinks with every better node. Both choose the same node: they compute the same
numbers, and ties go to the lower index.
"""

import math
from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import (
    HOLDS_SHIFT,
    NODE_MASK,
    PLACE,
    SITE_BITS,
    SITE_WAIT_S,
    SITE_X_KM,
    SITE_Y_KM,
)
from edgegym.simulator.compiling import helper, inlined, prefetch
from edgegym.simulator.lane import Area, Requests
from edgegym.simulator.routers.dispatch import least_beyond_radio, score
from edgegym.simulator.state import FleetState, Floats, Ints
from edgegym.world.compiled import World

GRID_MIN_NODES = 80
"""Fleets of at least this many nodes are searched through the grid (measured: where both take the
same time)."""

_NODES_PER_CELL = 2.0

# The disc is computed with other roundings than a node's score: widen it by far more than those.
_SCORE_SLACK = 1.0 + 1e-12
_DISC_SLACK = 1.0 + 1e-9
_CELL_SLACK = 1e-9

FETCHES_AHEAD_NODES = 1000
"""Smaller fleets lie in the nearest cache anyway."""

_FETCHED_ROWS = 1
_SITES_AHEAD = 4

# Stands for the width of a region that does not wrap; finite, so that inf − inf never arises.
_NO_WRAP_KM = 1e300


class Choice(NamedTuple):
    """A routing decision."""

    node: int  # −1 when no node is up
    nearest: int  # nearest up node, −1 when no node is up
    distance_squared_km2: float  # to the chosen node


class Rows(NamedTuple):
    """The rows of the grid as a user sees them."""

    home: int  # the user's own
    below: int  # rows on that side
    above: int
    column: float  # where the user is, in columns
    inset_km: float  # from the lower edge of its row
    columns_per_km: float
    cell_height_km: float


class Span(NamedTuple):
    """Cells of one row that a disc touches."""

    row: int  # its first cell
    first: int  # columns, below 0 or beyond the last where it wraps
    last: int
    runs: int  # 0 where it touches none, 2 in a row that wraps


class _Best(NamedTuple):
    """The best of the nodes seen so far; see :data:`~edgegym.simulator.columns.SITE_BITS`."""

    least: float
    chosen_bits: int
    chosen_distance: float
    closest: float
    nearest_bits: int


@inlined
def radio_beyond_base_s(xi: float, alpha: float, distance_squared_km2: float) -> float:
    """Return xi · r^alpha."""
    if alpha == 2.0:
        return xi * distance_squared_km2
    return xi * distance_squared_km2 ** (0.5 * alpha)


@inlined
def axis_distance_km(a: float, b: float, period_km: float) -> float:
    """Return the distance along one axis, the shorter way round."""
    direct = abs(a - b)
    around = period_km - direct
    return around if around < direct else direct


@helper
def scan_nodes(area: Area, x: float, y: float, request_type: int) -> Choice:
    """Choose among all nodes one by one; without a grid they lie in the order of their index."""
    width = area.width_km if area.periodic else _NO_WRAP_KM
    height = area.height_km if area.periodic else _NO_WRAP_KM
    count = area.num_nodes
    sites, prefill_s = area.sites, area.prefill_s
    distance, scores = area.scan[0], area.scan[1]
    kind = area.router_kind
    # Two loops: the first has no branches and runs on vector registers.
    for node in range(count):
        dx = axis_distance_km(sites[node, SITE_X_KM], x, width)
        dy = axis_distance_km(sites[node, SITE_Y_KM], y, height)
        distance[node] = dx * dx + dy * dy
    for node in range(count):
        scores[node] = score(
            kind,
            radio_beyond_base_s(area.radio_xi, area.radio_alpha, distance[node]),
            prefill_s[
                np.float64(sites[node, SITE_BITS]).view(np.int64) >> HOLDS_SHIFT, request_type
            ],
            sites[node, SITE_WAIT_S],
        )
    least, chosen = np.inf, -1
    closest, nearest = np.inf, -1
    for node in range(count):
        value = scores[node]
        better = value < least
        least = value if better else least
        chosen = node if better else chosen
        value = distance[node]
        better = value < closest
        closest = value if better else closest
        nearest = node if better else nearest
    return Choice(chosen, nearest, distance[chosen] if chosen >= 0 else np.inf)


@inlined
def _node_of(bits: int) -> int:
    return bits & NODE_MASK if bits >= 0 else -1


@inlined
def _disc_squared_km2(area: Area, least: float, closest: float, request_type: int) -> float:
    """Return the squared radius beyond which a node is farther and scores worse than these."""
    beyond = least_beyond_radio(area.router_kind, area.least_prefill_s[request_type])
    radio_s = max(least * _SCORE_SLACK - beyond, 0.0)
    squared = radio_s / area.radio_xi
    if area.radio_alpha != 2.0:
        squared = squared ** (2.0 / area.radio_alpha)
    return max(squared, closest) * _DISC_SLACK


@inlined
def _seek(
    area: Area, best: _Best, begin: int, end: int, x: float, y: float, request_type: int
) -> _Best:
    """Look at the nodes at some places."""
    width = area.width_km if area.periodic else _NO_WRAP_KM
    height = area.height_km if area.periodic else _NO_WRAP_KM
    least, chosen, chosen_distance, closest, nearest = best
    sites = area.sites
    for place in range(begin, end):
        dx = axis_distance_km(sites[place, SITE_X_KM], x, width)
        dy = axis_distance_km(sites[place, SITE_Y_KM], y, height)
        squared = dx * dx + dy * dy
        bits = int(np.float64(sites[place, SITE_BITS]).view(np.int64))
        value = score(
            area.router_kind,
            radio_beyond_base_s(area.radio_xi, area.radio_alpha, squared),
            area.prefill_s[bits >> HOLDS_SHIFT, request_type],
            sites[place, SITE_WAIT_S],
        )
        # Conditional moves: which node is better is no branch that could be foreseen.
        nearer, better = squared < closest, value < least
        tied_distance = squared == closest and bits != nearest
        tied_score = value == least and bits != chosen
        closest = squared if nearer else closest
        nearest = bits if nearer else nearest
        least = value if better else least
        chosen = bits if better else chosen
        chosen_distance = squared if better else chosen_distance
        if tied_distance and bits & NODE_MASK < nearest & NODE_MASK and nearest >= 0:
            nearest = bits
        if tied_score and bits & NODE_MASK < chosen & NODE_MASK and chosen >= 0:
            chosen, chosen_distance = bits, squared
    return _Best(least, chosen, chosen_distance, closest, nearest)


@inlined
def rows_around(area: Area, x: float, y: float) -> Rows:
    """Return the rows of the grid as a user at (x, y) sees them."""
    cells_y = area.cells_y
    columns_per_km, cell_height = area.cells_x / area.width_km, area.height_km / cells_y
    home = min(int(y / cell_height), cells_y - 1)
    # Rows beyond these have been seen the other way round, or lie outside.
    if area.periodic:
        below, above = cells_y // 2, cells_y // 2
    else:
        below, above = home, cells_y - 1 - home
    inset = y - home * cell_height
    return Rows(home, below, above, x * columns_per_km, inset, columns_per_km, cell_height)


@inlined
def seed_place(area: Area, rows: Rows) -> int:
    """Return the place of a node in or near the user's cell.

    An empty cell has the next node of its row or of the rows after it.
    """
    column = min(int(rows.column), area.cells_x - 1)
    return min(area.cell_start[rows.home * area.cells_x + column], area.num_nodes - 1)


@inlined
def span_of(area: Area, rows: Rows, ring: int, side: int, disc_squared_km2: float) -> Span:
    """Return the cells that a disc around the user touches in a row, on the upper or lower side."""
    cells_x, cells_y, cell_height = area.cells_x, area.cells_y, rows.cell_height_km
    offset = ring if side == 0 else -ring
    if offset > rows.above or -offset > rows.below or (ring == 0 and side == 1):
        return Span(0, 0, 0, 0)
    gap = ring * cell_height - rows.inset_km if side == 0 else rows.inset_km
    if side == 1:
        gap += (ring - 1) * cell_height
    gap = max(gap - _CELL_SLACK * cell_height, 0.0) if ring > 0 else 0.0
    chord_squared = disc_squared_km2 - gap * gap
    if chord_squared < 0.0:
        return Span(0, 0, 0, 0)
    row = rows.home + offset
    row += cells_y if row < 0 else (-cells_y if row >= cells_y else 0)
    reach = min(math.sqrt(chord_squared) * rows.columns_per_km + _CELL_SLACK, 2.0 * cells_x)
    first, last = math.floor(rows.column - reach), math.floor(rows.column + reach)
    if not area.periodic:
        first, last = max(first, 0), min(last, cells_x - 1)
    elif last - first >= cells_x:
        first, last = 0, cells_x - 1
    return Span(row * cells_x, first, last, 2 if first < 0 or last >= cells_x else 1)


@inlined
def run_of_span(area: Area, span: Span, run: int) -> tuple[int, int]:
    """Return where a run of a span begins and ends among the sites."""
    cells_x = area.cells_x
    shift = cells_x if span.first < 0 else 0
    left = 0 if run == 1 else span.first + shift
    right = span.last + shift - cells_x if run == 1 else min(span.last + shift, cells_x - 1)
    return area.cell_start[span.row + left], area.cell_start[span.row + right + 1]


@helper
def search_grid(area: Area, x: float, y: float, request_type: int) -> Choice:
    """Choose among all nodes by the rows of grid cells that a shrinking disc touches."""
    rows = rows_around(area, x, y)
    seed = seed_place(area, rows)
    best = _Best(np.inf, -1, np.inf, np.inf, -1)
    best = _seek(area, best, seed, seed + 1, x, y, request_type)
    for ring in range(max(rows.below, rows.above) + 1):
        touched = False
        disc_squared = _disc_squared_km2(area, best.least, best.closest, request_type)
        for side in range(2):
            span = span_of(area, rows, ring, side, disc_squared)
            for run in range(span.runs):
                touched = True
                begin, end = run_of_span(area, span, run)
                best = _seek(area, best, begin, end, x, y, request_type)
        if not touched:
            break
    # No node has the bits −1, and a node that cannot be chosen never replaces them.
    return Choice(_node_of(best.chosen_bits), _node_of(best.nearest_bits), best.chosen_distance)


@inlined
def _nearby_cells(area: Area, x: float, y: float, offset: int) -> tuple[int, int]:
    """Return the cell left of the one some rows above (x, y), and the cell after its right one."""
    column = min(int(x * area.cells_x / area.width_km), area.cells_x - 1)
    row = min(int(y * area.cells_y / area.height_km), area.cells_y - 1) + offset
    first = min(max(row, 0), area.cells_y - 1) * area.cells_x
    return first + max(column - 1, 0), first + min(column + 2, area.cells_x)


@inlined
def _fetch_cells(area: Area, x: float, y: float) -> None:
    """Ask for the memory in which :func:`_fetch_sites` will look."""
    for offset in range(-_FETCHED_ROWS, _FETCHED_ROWS + 1):
        begin, end = _nearby_cells(area, x, y, offset)
        prefetch(area.cell_start, begin, 0)
        prefetch(area.cell_start, end, 0)


@inlined
def _fetch_sites(area: Area, x: float, y: float) -> None:
    """Ask for the memory in which a search from (x, y) will probably look."""
    for offset in range(-_FETCHED_ROWS, _FETCHED_ROWS + 1):
        begin, end = _nearby_cells(area, x, y, offset)
        # Two sites lie in a cache line.
        for place in range(area.cell_start[begin], area.cell_start[end], 2):
            prefetch(area.sites, place, SITE_X_KM)


@inlined
def fetch_for_requests(area: Area, requests: Requests, position: int, loaded: int) -> None:
    """Ask for the memory that the searches for the next requests will need."""
    if area.cells_x == 0:
        return
    soon, later = position + _SITES_AHEAD, position + 2 * _SITES_AHEAD
    if later < loaded:
        _fetch_cells(area, requests.x_km[later], requests.y_km[later])
        _fetch_sites(area, requests.x_km[soon], requests.y_km[soon])


@inlined
def choose_node(area: Area, x: float, y: float, request_type: int) -> Choice:
    """Choose the node of a request made at (x, y)."""
    if area.cells_x == 0:
        return scan_nodes(area, x, y, request_type)
    return search_grid(area, x, y, request_type)


def grid_shape(world: World) -> tuple[int, int]:
    """Return the cells of the search grid in x and y.

    Parameters
    ----------
    world : World
        The compiled scenario.

    Returns
    -------
    tuple of int
        (0, 0) for fleets that are scanned.
    """
    if world.max_nodes < GRID_MIN_NODES:
        return 0, 0
    side_km = math.sqrt(world.width_km * world.height_km * _NODES_PER_CELL / world.max_nodes)
    return max(1, round(world.width_km / side_km)), max(1, round(world.height_km / side_km))


def build_grid(world: World, state: FleetState, b: int, shape: tuple[int, int]) -> None:
    """Lay the nodes of fleet b out for the search: by grid cell, and by index within a cell.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State with node positions, changed in place; advertised waits and holdings of the sites are
        still to be written.
    b : int
        Fleet.
    shape : tuple of int
        Cells in x and y; (0, 0) leaves the nodes in the order of their index.
    """
    state.cells[b] = shape
    cells_x, cells_y = shape
    count = int(state.node_count[b])
    x, y = state.node_x[b, :count], state.node_y[b, :count]
    order = np.arange(count)
    if cells_x > 0:
        column = _cell_index(x, world.width_km / cells_x, cells_x)
        row = _cell_index(y, world.height_km / cells_y, cells_y)
        cell = row * cells_x + column
        order = np.argsort(cell, kind="stable")
        start = np.zeros(cells_x * cells_y + 1, dtype=np.int64)
        np.cumsum(np.bincount(cell, minlength=cells_x * cells_y), out=start[1:])
        state.cell_start[b] = start
    state.node_work[b, order, PLACE] = np.arange(count)
    sites = state.sites[b, :count]
    sites[:, SITE_X_KM] = np.where(state.up[b, order], x[order], np.inf)
    sites[:, SITE_Y_KM] = y[order]
    sites[:, SITE_BITS] = order.view(np.float64)


def _cell_index(position_km: Floats, cell_km: float, cells: int) -> Ints:
    return np.minimum((position_km / cell_km).astype(np.int64), cells - 1)
