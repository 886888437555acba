"""The exact search for the node with the least score.

Small fleets are scanned node by node. Larger ones lie in a uniform grid of cells, searched in
square rings around the user; the search stops when even a node without a wait in the next ring
could not win. Both choose the same node: they compute the same numbers, and ties go to the lower
index.
"""

import math
from typing import NamedTuple

import numpy as np

from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.lane import Area, Nodes
from edgegym.simulator.routers.dispatch import least_score, score
from edgegym.simulator.state import FleetState, Floats, Ints
from edgegym.world.compiled import World

GRID_MIN_NODES = 200
"""Fleets of at least this many nodes are searched through the grid (measured: where both take the
same time)."""

_NODES_PER_CELL = 2.0

# A ring's distance is computed with other roundings than a node's: give way by far more than those.
_BOUND_SLACK = 1.0 - 1e-12

# Stands for the width of a region that does not wrap; finite, so that inf − inf never arises.
_NO_WRAP_KM = 1e300


class Choice(NamedTuple):
    """A routing decision."""

    node: int  # −1 when no node is up
    nearest: int  # nearest up node, −1 when no node is up
    distance_squared_km2: float  # to the chosen node


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
def scan_nodes(area: Area, nodes: Nodes, x: float, y: float, request_type: int) -> Choice:
    """Choose among all nodes one by one."""
    width = area.width_km if area.periodic else _NO_WRAP_KM
    height = area.height_km if area.periodic else _NO_WRAP_KM
    count = area.num_nodes
    node_x, node_y = area.x_km, area.y_km
    prefill, wait = nodes.prefill_s[request_type], nodes.advertised_wait_s
    distance, scores = area.scan[0], area.scan[1]
    kind = area.router_kind
    # Two loops: the first has no branches and runs on vector registers.
    for node in range(count):
        dx = axis_distance_km(node_x[node], x, width)
        dy = axis_distance_km(node_y[node], y, height)
        distance[node] = dx * dx + dy * dy
    for node in range(count):
        scores[node] = score(
            kind,
            radio_beyond_base_s(area.radio_xi, area.radio_alpha, distance[node]),
            prefill[node],
            wait[node],
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


@helper
def search_grid(area: Area, nodes: Nodes, x: float, y: float, request_type: int) -> Choice:
    """Choose among all nodes by rings of grid cells around the user."""
    width = area.width_km if area.periodic else _NO_WRAP_KM
    height = area.height_km if area.periodic else _NO_WRAP_KM
    kind = area.router_kind
    cells_x, cells_y = area.cells_x, area.cells_y
    cell_width, cell_height = area.width_km / cells_x, area.height_km / cells_y
    home_x = min(int(x / cell_width), cells_x - 1)
    home_y = min(int(y / cell_height), cells_y - 1)
    inset_x = min(x - home_x * cell_width, (home_x + 1) * cell_width - x)
    inset_y = min(y - home_y * cell_height, (home_y + 1) * cell_height - y)
    # Offsets beyond these reach cells already seen the other way round, or outside.
    if area.periodic:
        low_x, high_x, low_y, high_y = -(cells_x // 2), cells_x // 2, -(cells_y // 2), cells_y // 2
    else:
        low_x, high_x = -home_x, cells_x - 1 - home_x
        low_y, high_y = -home_y, cells_y - 1 - home_y
    last_ring = max(max(-low_x, high_x), max(-low_y, high_y))
    prefill, wait = nodes.prefill_s[request_type], nodes.advertised_wait_s

    least, chosen, chosen_distance = np.inf, -1, np.inf
    closest, nearest = np.inf, -1
    for ring in range(last_ring + 1):
        if ring > 0:
            reach = min(inset_x + (ring - 1) * cell_width, inset_y + (ring - 1) * cell_height)
            reach = max(reach, 0.0) * _BOUND_SLACK
            bound = least_score(
                kind,
                radio_beyond_base_s(area.radio_xi, area.radio_alpha, reach * reach),
                area.least_prefill_s[request_type],
            )
            if bound * _BOUND_SLACK > least and reach * reach > closest:
                break
        for offset_y in range(max(-ring, low_y), min(ring, high_y) + 1):
            edge = offset_y == -ring or offset_y == ring
            step = 1 if edge or ring == 0 else 2 * ring
            cell_y = (home_y + offset_y) % cells_y
            for offset_x in range(-ring, ring + 1, step):
                if offset_x < low_x or offset_x > high_x:
                    continue
                cell = cell_y * cells_x + (home_x + offset_x) % cells_x
                for position in range(area.cell_start[cell], area.cell_start[cell + 1]):
                    node = area.cell_nodes[position]
                    dx = axis_distance_km(area.x_km[node], x, width)
                    dy = axis_distance_km(area.y_km[node], y, height)
                    squared = dx * dx + dy * dy
                    if squared < closest or (squared == closest and node < nearest):
                        closest, nearest = squared, node
                    value = score(
                        kind,
                        radio_beyond_base_s(area.radio_xi, area.radio_alpha, squared),
                        prefill[node],
                        wait[node],
                    )
                    if value < least or (value == least and node < chosen):
                        least, chosen, chosen_distance = value, node, squared
    return Choice(chosen, nearest, chosen_distance)


@inlined
def choose_node(area: Area, nodes: Nodes, x: float, y: float, request_type: int) -> Choice:
    """Choose the node of a request made at (x, y)."""
    if area.cells_x == 0:
        return scan_nodes(area, nodes, x, y, request_type)
    return search_grid(area, nodes, x, y, request_type)


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
    """Sort the nodes of fleet b into grid cells.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State with node positions, changed in place.
    b : int
        Fleet.
    shape : tuple of int
        Cells in x and y; (0, 0) leaves the fleet without a grid.
    """
    state.cells[b] = shape
    cells_x, cells_y = shape
    if cells_x == 0:
        return
    count = state.node_count[b]
    column = _cell_index(state.node_x[b, :count], world.width_km / cells_x, cells_x)
    row = _cell_index(state.node_y[b, :count], world.height_km / cells_y, cells_y)
    cell = row * cells_x + column
    state.cell_nodes[b, :count] = np.argsort(cell, kind="stable")
    per_cell = np.bincount(cell, minlength=cells_x * cells_y)
    state.cell_start[b, 1:] = np.cumsum(per_cell)


def _cell_index(position_km: Floats, cell_km: float, cells: int) -> Ints:
    return np.minimum((position_km / cell_km).astype(np.int64), cells - 1)
