"""Writes observations: what a controller of the fleet would know, as float32 in [0, 1]."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegym.interface.layout import (
    DEMAND_EWMA_S,
    Feature,
    ObservationLayout,
    clock_period_s,
)
from edgegym.interface.neighbourhood import (
    Neighbourhood,
    build_neighbourhood,
    neighbourhood_length_km,
)
from edgegym.interface.padding import with_empty_rows
from edgegym.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario

__all__ = ["Feature", "ObservationLayout", "Observer"]

# The largest float32 below 1: a finite count never reads as infinite.
_BELOW_ONE = np.nextafter(np.float32(1.0), np.float32(0.0))
_HALF = np.float32(0.5)
_ABOVE_HALF = np.nextafter(np.float32(0.5), np.float32(1.0))
_ONE = np.float32(1.0)
_SMALLEST = np.finfo(np.float32).tiny


class NodeRows(NamedTuple):
    """The rows of one environment in FleetState that an observation reads."""

    up: "NDArray[np.bool_]"  # (N,)
    profile: "NDArray[np.int64]"  # (N,)
    receiving: "NDArray[np.bool_]"  # (N,)
    transfer_start_s: "NDArray[np.float64]"  # (N,)
    transfer_end_s: "NDArray[np.float64]"  # (N,)
    slots: "NDArray[np.int64]"  # (N, S)
    active: "NDArray[np.int64]"  # (N,)
    queued: "NDArray[np.int64]"  # (N,)
    in_flight: "NDArray[np.int64]"  # (N,)


class Constants(NamedTuple):
    """Numbers of the scenario that an observation needs."""

    move_bytes: "NDArray[np.int64]"  # (S, S)
    burst_bytes: float
    demand_scale: float
    capacity_scale: float
    long_run_per_s: float
    clock_period_s: float


@kernel
def _ratio(value: float, scale: float) -> np.float32:
    """Return ``value / (value + scale)`` as a float32 below one; 0 for nothing over nothing."""
    if value <= 0.0:
        return np.float32(0.0)
    return min(np.float32(value / (value + scale)), _BELOW_ONE)


@kernel
def _price(move_bytes: int, slots: int, level_bytes: float) -> np.float32:
    """Return the price feature: at most one half exactly if the bucket can pay."""
    if slots <= 0:
        return _ONE
    if move_bytes <= 0:
        return np.float32(0.0)
    if level_bytes <= 0.0:
        return _ONE
    squashed = min(np.float32(move_bytes / (move_bytes + level_bytes)), _BELOW_ONE)
    # Rounding to float32 must not make a price just above the level look affordable.
    return max(squashed, _ABOVE_HALF) if move_bytes > level_bytes else min(squashed, _HALF)


@kernel
def _fraction_left(receiving: bool, start_s: float, end_s: float, now_s: float) -> np.float32:
    """Return what is left of a node's transfer: all of it while the node still drains."""
    if not receiving:
        return np.float32(0.0)
    if end_s == np.inf:
        return _ONE
    # Positive as long as the node can't be moved, however near the end.
    return max(np.float32(min((end_s - now_s) / (end_s - start_s), 1.0)), _SMALLEST)


@kernel
def update_demand(
    counts: "NDArray[np.int64]",  # (N, F)
    nodes: int,
    seconds: float,
    around: Neighbourhood,
    demand: "NDArray[np.float64]",  # (N, F)
    near_demand: "NDArray[np.float64]",  # (N, F)
) -> None:
    """Move the estimates towards the rates of a window, then average them over neighbourhoods."""
    gain = -math.expm1(-seconds / DEMAND_EWMA_S)
    for i in range(nodes):
        for f in range(demand.shape[1]):
            demand[i, f] += gain * (counts[i, f] / seconds - demand[i, f])
    average(around, demand, near_demand)


@kernel
def average(
    around: Neighbourhood,
    values: "NDArray[np.float64]",  # (N, F)
    means: "NDArray[np.float64]",  # (N, F)
) -> None:
    """Write the weighted mean of `values` over the nodes around each node."""
    for i in range(len(values)):
        means[i, :] = 0.0
        for e in range(around.row_start[i], around.row_start[i + 1]):
            w = around.weight[e]
            j = around.node[e]
            for f in range(values.shape[1]):
                means[i, f] += w * values[j, f]


@kernel
def _write_nodes(
    node_count: int,
    now_s: float,
    level_bytes: float,
    constants: Constants,
    nodes: NodeRows,
    around: Neighbourhood,
    capacity: "NDArray[np.float64]",  # (N,)
    load: "NDArray[np.float64]",  # (N,)
    demand: "NDArray[np.float64]",  # (N, F)
    near_demand: "NDArray[np.float64]",  # (N, F)
    block: "NDArray[np.float32]",  # (N, K)
) -> None:
    """Write the node block; rows of padding nodes are zero."""
    profiles = nodes.slots.shape[1]
    families = demand.shape[1]
    near_capacity = np.empty(profiles, dtype=np.float64)
    block[node_count:, :] = 0.0
    for i in range(node_count):
        held = nodes.profile[i]
        near_capacity[:] = 0.0
        near_slots = 0.0
        near_load = 0.0
        for e in range(around.row_start[i], around.row_start[i + 1]):
            j = around.node[e]
            w = around.weight[e]
            near_capacity[nodes.profile[j]] += w * capacity[j]
            near_slots += w * capacity[j]
            near_load += w * load[j]
        row = block[i]
        for s in range(profiles):
            row[s] = 1.0 if s == held else 0.0
        at = profiles
        row[at] = _ratio(load[i], nodes.slots[i, held])
        row[at + 1] = _fraction_left(
            nodes.receiving[i], nodes.transfer_start_s[i], nodes.transfer_end_s[i], now_s
        )
        row[at + 2] = 1.0 if nodes.up[i] else 0.0
        at += 3
        for s in range(profiles):
            row[at + s] = _price(constants.move_bytes[held, s], nodes.slots[i, s], level_bytes)
        at += profiles
        for f in range(families):
            row[at + f] = _ratio(demand[i, f], constants.demand_scale)
            row[at + families + f] = _ratio(near_demand[i, f], constants.demand_scale)
        at += 2 * families
        for s in range(profiles):
            row[at + s] = _ratio(near_capacity[s], constants.capacity_scale)
        row[at + profiles] = _ratio(near_load, near_slots)


@kernel
def _write_fleet(
    node_count: int,
    now_s: float,
    level_bytes: float,
    constants: Constants,
    nodes: NodeRows,
    capacity: "NDArray[np.float64]",  # (N,)
    load: "NDArray[np.float64]",  # (N,)
    demand: "NDArray[np.float64]",  # (N, F)
    block: "NDArray[np.float32]",  # (G,)
) -> None:
    """Write the global block."""
    profiles = nodes.slots.shape[1]
    families = demand.shape[1]
    for f in range(families):
        total = 0.0
        for i in range(node_count):
            total += demand[i, f]
        block[f] = _ratio(total / constants.long_run_per_s, 1.0 / families)
    holders = np.zeros(profiles, dtype=np.int64)
    up_nodes = 0
    slots = 0.0
    requests = 0.0
    for i in range(node_count):
        if nodes.up[i]:
            holders[nodes.profile[i]] += 1
            up_nodes += 1
            slots += capacity[i]
            requests += load[i]
    for s in range(profiles):
        block[families + s] = holders[s] / up_nodes if up_nodes else 0.0
    at = families + profiles
    block[at] = min(max(level_bytes / constants.burst_bytes, 0.0), 1.0)
    block[at + 1] = _ratio(requests, slots)
    if at + 2 < len(block):
        turn = 2.0 * math.pi * (now_s / constants.clock_period_s)
        block[at + 2] = min(max(0.5 * (1.0 + math.sin(turn)), 0.0), 1.0)
        block[at + 3] = min(max(0.5 * (1.0 + math.cos(turn)), 0.0), 1.0)


@kernel
def write_observation(
    node_count: int,
    node_features: int,
    now_s: float,
    level_bytes: float,
    constants: Constants,
    nodes: NodeRows,
    around: Neighbourhood,
    demand: "NDArray[np.float64]",  # (N, F)
    near_demand: "NDArray[np.float64]",  # (N, F)
    out: "NDArray[np.float32]",  # (N * K + G,)
) -> None:
    """Write one flat observation, in the order of ObservationLayout."""
    capacity = np.zeros(len(nodes.up), dtype=np.float64)
    load = np.zeros(len(nodes.up), dtype=np.float64)
    for i in range(node_count):
        if nodes.up[i]:
            capacity[i] = nodes.slots[i, nodes.profile[i]]
            load[i] = nodes.active[i] + nodes.queued[i] + nodes.in_flight[i]
    split = len(nodes.up) * node_features
    node_block = out[:split].reshape(len(nodes.up), node_features)
    _write_nodes(
        node_count, now_s, level_bytes, constants, nodes, around,
        capacity, load, demand, near_demand, node_block,
    )  # fmt: skip
    _write_fleet(
        node_count, now_s, level_bytes, constants, nodes, capacity, load, demand, out[split:]
    )


def observation_constants(
    scenario: "Scenario", layout: ObservationLayout, reference: "Scenario | None" = None
) -> Constants:
    """Return the numbers of a scenario that its observations need.

    Parameters
    ----------
    scenario : Scenario
        The world.
    layout : ObservationLayout
        Of the observations.
    reference : Scenario, optional
        The scenario that gives the scale of demand, for as many nodes as the world has; the world
        itself if omitted.
    """
    world = scenario.compile()
    usual = world if reference is None else reference.compile()
    return Constants(
        move_bytes=np.ascontiguousarray(world.move_bytes),
        burst_bytes=float(world.burst_bytes),
        demand_scale=float(layout.feature("demand").scale or 0.0),
        capacity_scale=float(layout.feature("near_capacity").scale or 0.0),
        long_run_per_s=float(usual.mean_rate_per_s * (world.mean_nodes / usual.mean_nodes)),
        clock_period_s=clock_period_s(scenario),
    )


class Observer:
    """Keeps the demand estimates of one episode and writes its observations.

    Parameters
    ----------
    scenario : Scenario
    layout : ObservationLayout
        Of that scenario, or of another with the same profiles and families and at least as many
        nodes.
    reference : Scenario, optional
        The scenario that the layout's scales come from; the same if omitted.

    Raises
    ------
    ValueError
        If the layout has too few nodes.

    Notes
    -----
    Call :meth:`reset` with a new fleet, then :meth:`update` after each ``advance`` and
    :meth:`observe` whenever an observation is wanted.
    """

    def __init__(
        self,
        scenario: "Scenario",
        layout: ObservationLayout,
        reference: "Scenario | None" = None,
    ) -> None:
        world = scenario.compile()
        if world.max_nodes > layout.num_nodes:
            raise ValueError(
                f"layout has {layout.num_nodes} nodes: the scenario may have {world.max_nodes}"
            )
        self._shape = (layout.num_nodes, layout.num_families)
        self._size = layout.size
        self._global_features = layout.global_features
        self._node_features = layout.node_features
        self._node_block = int(world.max_nodes) * layout.node_features
        self._world = world
        self._length_km = neighbourhood_length_km(scenario)
        self._constants = observation_constants(scenario, layout, reference)
        self._around = Neighbourhood(
            np.zeros(layout.num_nodes + 1, np.int64), np.empty(0, np.int64), np.empty(0)
        )
        self._demand = np.zeros(self._shape)
        self._near_demand = np.zeros_like(self._demand)
        self._node_count = 0

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, shape [N, F] (a copy)."""
        return self._demand.copy()

    def reset(self, state: Any, b: int = 0) -> None:
        """Start an episode: weigh the neighbourhoods and forget the estimates.

        Parameters
        ----------
        state : FleetState
        b : int
            Row of its environment axis.
        """
        count = int(state.node_count[b])
        self._node_count = count
        self._around = build_neighbourhood(
            self._world,
            self._length_km,
            state.node_x[b, :count],
            state.node_y[b, :count],
            self._shape[0],
        )
        self._demand = np.zeros(self._shape)
        self._demand[:count] = self._constants.demand_scale
        self._near_demand = np.zeros_like(self._demand)
        average(self._around, self._demand, self._near_demand)

    def update(self, nearest_demand: "NDArray[np.int64]", seconds: float) -> None:
        """Take the requests of a window into the estimates.

        Parameters
        ----------
        nearest_demand : ndarray of int64, shape [N, F]
            Requests by nearest up node and family.
        seconds : float
            Length of the window.
        """
        update_demand(
            nearest_demand,
            self._node_count,
            float(seconds),
            self._around,
            self._demand,
            self._near_demand,
        )

    def observe(self, state: Any, bucket_level_bytes: float, b: int = 0) -> "NDArray[np.float32]":
        """Return a fresh flat observation.

        Parameters
        ----------
        state : FleetState
        bucket_level_bytes : float
            What moves may cost now.
        b : int
            Row of the state's environment axis.

        Returns
        -------
        ndarray of float32, shape [N·K + G]
            Finite and within [0, 1].
        """
        nodes = NodeRows(
            state.up[b],
            state.profile[b],
            state.receiving[b],
            state.transfer_start_s[b],
            state.transfer_end_s[b],
            state.slots[b],
            state.active[b],
            state.queued[b],
            state.in_flight[b],
        )
        out = np.empty(self._node_block + self._global_features, dtype=np.float32)
        write_observation(
            self._node_count,
            self._node_features,
            float(state.now[b]),
            float(bucket_level_bytes),
            self._constants,
            nodes,
            self._around,
            self._demand,
            self._near_demand,
            out,
        )
        return with_empty_rows(out, self._node_block, self._size)

    def get_state(self) -> dict[str, Any]:
        """Return the estimates and neighbourhoods as plain arrays (copies)."""
        return {
            "node_count": self._node_count,
            "around": tuple(array.copy() for array in self._around),
            "demand": self._demand.copy(),
            "near_demand": self._near_demand.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what :meth:`get_state` returned (of the same scenario)."""
        self._node_count = state["node_count"]
        self._around = Neighbourhood(*(array.copy() for array in state["around"]))
        self._demand = state["demand"].copy()
        self._near_demand = state["near_demand"].copy()
