"""The fluid model of the fleet that a policy plays with: cells, tables, and the value of moves."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgegym.analytic.fluid import FluidCells, FluidNodes, FluidWorld, write_move_gains
from edgegym.world.hardware import prefill_s

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.simulator import FleetState
    from edgegym.world.scenario import Scenario

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_CELLS_PER_NODE, _LEAST_CELLS, _MOST_CELLS = 16, 144, 40_000
# Nodes that a cell's requests may go to.
_NEAREST = 12


class MoveGains(NamedTuple):
    """What moves would change: requests/s within target, less those by which backlogs grow."""

    now: float  # requests/s within target as things are
    moved: "Floats"  # [N, S] with the profile held; 0 where a node can't have it
    moving: "Floats"  # [N, S] while its bytes are on their way


class FluidModel:
    """Values moves on the actual places of the nodes.

    Parameters
    ----------
    scenario : Scenario
        The world.
    horizon_s : float
        Time in which the backlog of an overloaded node grows.
    """

    def __init__(self, scenario: "Scenario", horizon_s: float) -> None:
        world = scenario.compile()
        self._compiled = world
        prefill, occupancy = row_tables(scenario)
        self._world = FluidWorld(
            prefill_s=prefill,
            occupancy_s=occupancy,
            target_s=world.type_target_s,
            radio_factor=world.type_xi_factor,
            radio_base_s=float(world.radio_base_s),
            weighs_prefill=scenario.routing.kind != "nearest",
            weighs_wait=scenario.routing.kind not in ("nearest", "prefix_aware"),
            wait_scale=0.5 * (1.0 + float(scenario.tiered_network().service_scv)),
            horizon_s=float(horizon_s),
        )
        self._num_holdings = int(world.classes.num_holdings)
        self._cells: tuple[bytes, FluidCells, Floats] | None = None

    def gains(self, state: "FleetState", demand_per_s: "Floats") -> MoveGains:
        """Return what each move would change.

        Parameters
        ----------
        state : FleetState
            The fleet, B = 1. A move that is under way counts as done.
        demand_per_s : ndarray, shape [N, F]
            Requests/s of each family whose nearest node it is; spread evenly over its cells.
        """
        num_nodes, num_profiles = demand_per_s.shape[0], int(self._compiled.num_profiles)
        none = np.zeros((num_nodes, num_profiles))
        if not state.up[0].any():
            return MoveGains(0.0, none, none.copy())
        cells, spread = self._cells_of(state)
        rate = spread @ demand_per_s
        rate = rate[:, self._compiled.type_family] * self._compiled.type_share_in_family
        first_row = self._first_row(state)
        held, slots = state.profile[0], state.slots[0]
        everyone = np.arange(num_nodes)
        nodes = FluidNodes(
            first_row + held,
            np.maximum(slots[everyone, held], 1),
            state.queued[0].astype(np.float64),
        )
        other = np.arange(num_profiles)[None, :] != held[:, None]
        node, profile = np.nonzero(other & (slots > 0) & state.up[0][:, None])
        kept = self._compiled.meet[held[node], profile]
        move_slots = slots[node, profile]
        gain = np.zeros(2 * len(node))
        now = write_move_gains(
            self._world,
            cells,
            nodes,
            rate,
            np.concatenate((node, node)),
            np.concatenate((first_row[node] + profile, first_row[node] + kept)),
            np.concatenate((move_slots, move_slots)),
            gain,
        )
        moved, moving = none, none.copy()
        moved[node, profile], moving[node, profile] = gain[: len(node)], gain[len(node) :]
        return MoveGains(float(now), moved, moving)

    def _first_row(self, state: "FleetState") -> "Ints":
        """Return the first row of each node's class, ``[N]``."""
        count = state.up.shape[1]
        if state.full is None:
            return np.zeros(count, dtype=np.int64)
        return state.full.node_class[0, :count] * self._num_holdings

    def _cells_of(self, state: "FleetState") -> tuple[FluidCells, "Floats"]:
        """Return the cells, and how demand spreads over them ``[C, N]``; kept while they last."""
        up = state.up[0]
        key = b"".join(array[0].tobytes() for array in (state.node_x, state.node_y, state.up))
        if self._cells is None or self._cells[0] != key:
            x, y = self._centres(int(up.sum()))
            away_km = self._distances(x, y, state.node_x[0], state.node_y[0])
            away_km[:, ~up] = np.inf
            self._cells = (key, self._near(away_km, up), _spread(away_km, up))
        return self._cells[1:]

    def _centres(self, nodes: int) -> tuple["Floats", "Floats"]:
        """Return the centres of the cells in km, ``[C]`` each."""
        world = self._compiled
        wanted = min(max(_CELLS_PER_NODE * nodes, _LEAST_CELLS), _MOST_CELLS)
        edge_km = math.sqrt(world.width_km * world.height_km / wanted)
        columns = max(1, round(world.width_km / edge_km))
        rows = max(1, round(world.height_km / edge_km))
        x = (np.arange(columns) + 0.5) * world.width_km / columns
        y = (np.arange(rows) + 0.5) * world.height_km / rows
        return np.tile(x, rows), np.repeat(y, columns)

    def _distances(self, x: "Floats", y: "Floats", node_x: "Floats", node_y: "Floats") -> "Floats":
        """Return the distance of each cell to each node in km, ``[C, N]``."""
        world = self._compiled
        dx, dy = np.abs(x[:, None] - node_x), np.abs(y[:, None] - node_y)
        if world.periodic:
            dx, dy = np.minimum(dx, world.width_km - dx), np.minimum(dy, world.height_km - dy)
        return np.hypot(dx, dy)

    def _near(self, away_km: "Floats", up: "NDArray[np.bool_]") -> FluidCells:
        count = min(_NEAREST, int(up.sum()))
        near = np.argsort(away_km, axis=1, kind="stable")[:, :count]
        nearest_km = np.take_along_axis(away_km, near, axis=1)
        world = self._compiled
        cell, place = np.divmod(np.argsort(near, axis=None, kind="stable"), count)
        entries = np.bincount(near.ravel(), minlength=len(up))
        return FluidCells(
            near=np.ascontiguousarray(near),
            radio_s=world.radio_xi * nearest_km**world.radio_alpha,
            start=np.concatenate(([0], np.cumsum(entries))),
            cell=cell,
            place=place,
        )


def _spread(away_km: "Floats", up: "NDArray[np.bool_]") -> "Floats":
    """Return which part of each node's demand comes from each cell, ``[C, N]``."""
    spread = np.zeros(away_km.shape)
    spread[np.arange(len(spread)), away_km.argmin(axis=1)] = 1.0
    # A node between all centres has the cell around it.
    without = np.flatnonzero(up & (spread.sum(axis=0) == 0.0))
    spread[away_km[:, without].argmin(axis=0), without] = 1.0
    return spread / np.maximum(spread.sum(axis=0), 1.0)


def row_tables(scenario: "Scenario") -> tuple["Floats", "Floats"]:
    """Return prefill and occupancy of each class and holding in seconds, ``[R, Q]`` each.

    A row is a class and a holding; where it can't serve a type, the prefill is infinite.
    """
    world = scenario.compile()
    tables = world.classes
    prefill = np.full(tables.hit_tokens.shape, np.inf)
    for index, item in enumerate(scenario.node_classes):
        if item.hardware is not None:
            rows = tables.row_class == index
            hits = tables.hit_tokens[rows]
            seconds = prefill_s(item.hardware.prefill, world.input_tokens, np.maximum(hits, 0.0))
            prefill[rows] = np.where(hits >= 0.0, seconds, np.inf)
    occupancy = np.where(np.isfinite(prefill), prefill, 0.0) + tables.occupancy_s[tables.row_class]
    return prefill, occupancy
