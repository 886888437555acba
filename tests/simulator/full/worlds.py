"""Small fleets of the full loop with nodes and requests set by hand."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator import Fleet
from edgegym.simulator.catalogue import advertise_holding
from edgegym.simulator.columns import HOLDS, NEXT_REQUEST, NUM_REQUESTS
from edgegym.simulator.compiling import lend
from edgegym.simulator.full.admission import note_load
from edgegym.simulator.full.build import full_lane_of
from edgegym.simulator.full.params import full_params
from edgegym.simulator.full.stations import refresh_node
from edgegym.simulator.records import ArraySink, RecordTable
from edgegym.simulator.search import build_grid
from tests.simulator.fleets import scenario

CHAT, CODE = 0, 1
NONE, SMALL, BIG, OTHER = range(4)


@kernel
def _refresh(lane: Any) -> None:
    fleet = lend(lane)
    for node in range(fleet.area.num_nodes):
        refresh_node(fleet, node)
        advertise_holding(fleet.core.nodes, node)
        note_load(fleet.routing, node, 0.0)


class HandMade:
    """A fleet with nodes at given places with given profiles, and given requests."""

    def __init__(
        self,
        places_km: Sequence[tuple[float, float]],
        profiles: Sequence[int],
        requests: Sequence[tuple[float, float, float, int]],
        /,
        tier_wait_s: Sequence[float] | None = None,
        **overrides: Any,
    ) -> None:
        """Build it; requests are (time, x, y, type), overrides change the world of ``scenario``."""
        world = scenario(**{"nodes": {"count": len(places_km)}} | overrides)
        self.sink = ArraySink()
        self.fleet = Fleet(world, tier_wait_s=tier_wait_s, records=self.sink)
        self._place(places_km, profiles)
        self._feed(requests)

    def _place(self, places_km: Any, profiles: Any) -> None:
        fleet, state = self.fleet, self.fleet.state
        assert state.full is not None
        count = len(places_km)
        state.node_x[0, :count], state.node_y[0, :count] = np.transpose(places_km)
        state.profile[0, :count] = state.node_work[0, :count, HOLDS] = profiles
        state.full.holders[0] = np.bincount(profiles, minlength=state.full.holders.shape[1])
        build_grid(fleet.world, state, 0, tuple(state.cells[0]))
        params = full_params(fleet.scenario, fleet.world)
        _refresh(full_lane_of(fleet.world, params, state, 0))

    def _feed(self, requests: Any) -> None:
        state, count, world = self.fleet.state, len(requests), self.fleet.world
        assert state.full is not None
        times, xs, ys, types = np.transpose(requests)
        types = types.astype(np.int64)
        state.request_time_s[0, :count] = times
        state.request_x_km[0, :count], state.request_y_km[0, :count] = xs, ys
        state.request_type[0, :count] = types
        state.request_mark[0, :count] = 1.0
        state.full.lengths.input_tokens[0, :count] = world.input_tokens[types]
        state.full.lengths.output_tokens[0, :count] = world.output_tokens[types]
        state.scalars[0, NEXT_REQUEST], state.scalars[0, NUM_REQUESTS] = 0, count
        state.stream_end_s[0] = np.inf

    def after(self, seconds: float) -> RecordTable:
        """Let it live and return the records by request."""
        self.fleet.advance(seconds)
        return self.sink.table().by_request()
