"""Observations and masks of many environments, written by one compiled loop."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegym.interface.actions import write_action_mask
from edgegym.interface.layout import ObservationLayout
from edgegym.interface.neighbourhood import (
    Neighbourhood,
    build_neighbourhood,
    neighbourhood_length_km,
)
from edgegym.interface.observation import (
    Constants,
    NodeRows,
    average,
    observation_constants,
    update_demand,
    write_observation,
)
from edgegym.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.threads import Crew
    from edgegym.world.scenario import Scenario

_ROWS_AT_ONCE = 8


class _Estimates(NamedTuple):
    """What observations keep from one epoch to the next."""

    node_count: "NDArray[np.int64]"  # (B,)
    row_start: "NDArray[np.int64]"  # (B, N + 1) as in Neighbourhood, E entries at most
    node: "NDArray[np.int64]"  # (B, E)
    weight: "NDArray[np.float64]"  # (B, E)
    demand: "NDArray[np.float64]"  # (B, N, F)
    near_demand: "NDArray[np.float64]"  # (B, N, F)


@kernel
def _update_rows(
    rows: "NDArray[np.int64]",  # (R,)
    counts: "NDArray[np.int64]",  # (B, N, F)
    seconds: "NDArray[np.float64]",  # (R,)
    kept: _Estimates,
) -> None:
    """Take the windows of some environments into their estimates."""
    for r in range(len(rows)):
        b = rows[r]
        around = Neighbourhood(kept.row_start[b], kept.node[b], kept.weight[b])
        update_demand(
            counts[b], kept.node_count[b], seconds[r], around, kept.demand[b], kept.near_demand[b]
        )


@kernel
def _write_rows(
    rows: "NDArray[np.int64]",  # (R,)
    node_features: int,
    now_s: "NDArray[np.float64]",  # (B,)
    level_bytes: "NDArray[np.float64]",  # (B,)
    constants: Constants,
    nodes: NodeRows,  # (B, ...) each
    kept: _Estimates,
    observations: "NDArray[np.float32]",  # (B, N * K + G)
    masks: "NDArray[np.bool_]",  # (B, N * S + 1)
) -> None:
    """Write the observations and masks of some environments."""
    for r in range(len(rows)):
        b = rows[r]
        one = NodeRows(
            nodes.up[b], nodes.profile[b], nodes.receiving[b], nodes.transfer_start_s[b],
            nodes.transfer_end_s[b], nodes.slots[b], nodes.active[b], nodes.queued[b],
            nodes.in_flight[b],
        )  # fmt: skip
        around = Neighbourhood(kept.row_start[b], kept.node[b], kept.weight[b])
        write_observation(
            kept.node_count[b], node_features, now_s[b], level_bytes[b], constants, one, around,
            kept.demand[b], kept.near_demand[b], observations[b],
        )  # fmt: skip
        write_action_mask(
            one.up, one.receiving, one.profile, one.slots, constants.move_bytes, level_bytes[b],
            masks[b],
        )  # fmt: skip


class BatchObserver:
    """Does for B environments of a scenario what Observer does for one, to the same bits.

    Parameters
    ----------
    scenario : Scenario
    layout : ObservationLayout
        Of that scenario.
    batch : int
        B, the number of environments.
    crew : Crew
        Threads that write.
    reference : Scenario, optional
        The scenario that the layout's scales come from; the same if omitted.
    """

    def __init__(
        self,
        scenario: "Scenario",
        layout: ObservationLayout,
        batch: int,
        crew: "Crew",
        reference: "Scenario | None" = None,
    ) -> None:
        self._world = scenario.compile()
        self._length_km = neighbourhood_length_km(scenario)
        self._constants = observation_constants(scenario, layout, reference)
        self._layout = layout
        self._crew = crew
        shape = (batch, layout.num_nodes, layout.num_families)
        self._kept = _Estimates(
            node_count=np.zeros(batch, dtype=np.int64),
            row_start=np.zeros((batch, layout.num_nodes + 1), dtype=np.int64),
            node=np.zeros((batch, 0), dtype=np.int64),
            weight=np.zeros((batch, 0)),
            demand=np.zeros(shape),
            near_demand=np.zeros(shape),
        )

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, shape [B, N, F] (a copy)."""
        return self._kept.demand.copy()

    def reset(self, state: Any, rows: "NDArray[np.int64]") -> None:
        """Start episodes: weigh the neighbourhoods and forget the estimates.

        Parameters
        ----------
        state : FleetState
        rows : ndarray of int
            Which environments.
        """
        for b in rows.tolist():
            count = int(state.node_count[b])
            around = build_neighbourhood(
                self._world,
                self._length_km,
                state.node_x[b, :count],
                state.node_y[b, :count],
                self._layout.num_nodes,
            )
            self._make_room(len(around.node))
            kept = self._kept
            kept.node_count[b] = count
            kept.row_start[b] = around.row_start
            kept.node[b, : len(around.node)] = around.node
            kept.weight[b, : len(around.node)] = around.weight
            kept.demand[b] = 0.0
            kept.demand[b, :count] = self._constants.demand_scale
            average(around, kept.demand[b], kept.near_demand[b])

    def _make_room(self, entries: int) -> None:
        extra = entries - self._kept.node.shape[1]
        if extra > 0:
            # Some more than needed, so that other episodes will fit as well.
            wider = ((0, 0), (0, extra + entries // 4))
            self._kept = self._kept._replace(
                node=np.pad(self._kept.node, wider), weight=np.pad(self._kept.weight, wider)
            )

    def update(
        self,
        rows: "NDArray[np.int64]",
        nearest_demand: "NDArray[np.int64]",
        seconds: "NDArray[np.float64]",
    ) -> None:
        """Take the requests of windows into the estimates.

        Parameters
        ----------
        rows : ndarray of int, shape [R]
            Which environments.
        nearest_demand : ndarray of int64, shape [B, N, F]
            Requests by nearest up node and family, of all environments.
        seconds : ndarray, shape [R]
            Lengths of the windows.
        """
        _update_rows(rows, nearest_demand, seconds, self._kept)

    def write(
        self,
        rows: "NDArray[np.int64]",
        state: Any,
        level_bytes: "NDArray[np.float64]",
        observations: "NDArray[np.float32]",
        masks: "NDArray[np.bool_]",
    ) -> None:
        """Write observations and masks.

        Parameters
        ----------
        rows : ndarray of int, shape [R]
            Which environments.
        state : FleetState
        level_bytes : ndarray, shape [B]
            What moves may cost now.
        observations : ndarray of float32, shape [B, N·K + G]
            Those of `rows` are written.
        masks : ndarray of bool, shape [B, N·S + 1]
            Likewise.
        """
        nodes = NodeRows(
            state.up,
            state.profile,
            state.receiving,
            state.transfer_start_s,
            state.transfer_end_s,
            state.slots,
            state.active,
            state.queued,
            state.in_flight,
        )

        def work(some: "NDArray[np.int64]") -> None:
            _write_rows(
                some,
                self._layout.node_features,
                state.now,
                level_bytes,
                self._constants,
                nodes,
                self._kept,
                observations,
                masks,
            )

        parts = range(0, len(rows), _ROWS_AT_ONCE)
        self._crew.each(work, [rows[first : first + _ROWS_AT_ONCE] for first in parts])
