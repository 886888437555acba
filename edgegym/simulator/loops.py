"""The two event loops behind one face: what fleets need of them."""

from collections.abc import Callable
from typing import Any, Protocol

from edgegym.simulator.columns import NUM_REQUESTS
from edgegym.simulator.compiling import Binder, entry_point
from edgegym.simulator.full.allocate import allocate_full, extra_events, num_stations
from edgegym.simulator.full.build import begin_full, full_lane_of
from edgegym.simulator.full.columns import FIRST_REQUEST
from edgegym.simulator.full.link import with_more_flows
from edgegym.simulator.full.log import allocate_log
from edgegym.simulator.full.loop import (
    ADVANCE,
    ANSWER,
    BEGIN,
    BEGIN_ASKING,
    CHANGE_PROFILE,
    CLOSE_WINDOW,
    NEEDS_FLOWS,
    NEEDS_LEAVES,
    serve,
)
from edgegym.simulator.full.lru_data import with_more_leaves
from edgegym.simulator.full.params import FullParams, full_params
from edgegym.simulator.full.user_router import UserRouter
from edgegym.simulator.lane import lane_of
from edgegym.simulator.moves import change_profile
from edgegym.simulator.room import with_more_records
from edgegym.simulator.search import grid_shape
from edgegym.simulator.state import FleetState, allocate
from edgegym.simulator.step import NEEDS_RECORDS, advance_one
from edgegym.simulator.stream import USUAL_BLOCK_CAPACITY, RequestStream
from edgegym.simulator.topology import place_nodes
from edgegym.world.compiled import World
from edgegym.world.scenario import Scenario


class EventLoop(Protocol):
    """A compiled event loop for the fleets of one scenario."""

    @property
    def advance(self) -> Callable[[Any, float], int]:
        """``(lane, until)``: see :func:`~edgegym.simulator.step.advance_one`."""
        ...

    @property
    def change_profile(self) -> Callable[[Any, int, int, int, int], None]:
        """``(lane, node, profile, kept, missing_bytes)``: the move is legal."""
        ...

    def allocate(self, batch: int) -> FleetState:
        """Return empty fleets."""
        ...

    def begin(self, state: FleetState, b: int, seed: int) -> None:
        """Give an empty fleet its nodes."""
        ...

    def lane_of(self, state: FleetState, b: int) -> Any:
        """Return the views of one fleet."""
        ...

    def resolve(self, lane: Any) -> None:
        """Resolve the kernels for the types of this scenario's lanes, which never change."""
        ...

    def fill(self, stream: RequestStream, state: FleetState, b: int) -> FleetState:
        """Load the next stream block."""
        ...

    def with_more_room(self, state: FleetState, code: int) -> FleetState:
        """Return the state with more of what an advance said that it needs."""
        ...

    def with_own_log(self, state: FleetState) -> FleetState:
        """Return a state of another fleet with a log if these fleets have one, else without."""
        ...


class FastLoop:
    """The loop for plain worlds: few features, and nothing spent on the others.

    Parameters
    ----------
    world : World
        The compiled scenario.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self.advance: Callable[[Any, float], int] = advance_one
        self.change_profile: Callable[[Any, int, int, int, int], None] = change_profile

    def allocate(self, batch: int) -> FleetState:
        """Return empty fleets."""
        cells_x, cells_y = grid_shape(self._world)
        return allocate(self._world, USUAL_BLOCK_CAPACITY, cells_x * cells_y, batch)

    def begin(self, state: FleetState, b: int, seed: int) -> None:
        """Give an empty fleet its nodes."""
        place_nodes(self._world, state, b, seed)

    def lane_of(self, state: FleetState, b: int) -> Any:
        """Return the views of one fleet."""
        return lane_of(self._world, state, b)

    def resolve(self, lane: Any) -> None:
        """Resolve the kernels for the types of this scenario's lanes, which never change."""
        self.advance = entry_point(advance_one, lane, 0.0)
        self.change_profile = entry_point(change_profile, lane, 0, 0, 0, 0)

    def fill(self, stream: RequestStream, state: FleetState, b: int) -> FleetState:
        """Load the next stream block."""
        return stream.fill(state, b)

    def with_more_room(self, state: FleetState, code: int) -> FleetState:
        """Return the state with room for more requests: nothing else runs out."""
        return with_more_records(state)

    def with_own_log(self, state: FleetState) -> FleetState:
        """Return the state itself: there are no logs."""
        return state


class FullLoop:
    """The loop with everything.

    Parameters
    ----------
    world : World
        The compiled scenario.
    params : FullParams
        Of the same scenario.
    logs : bool
        Whether requests are logged.
    """

    def __init__(self, world: World, params: FullParams, logs: bool) -> None:
        self._world = world
        self._params = params
        self._logs = logs
        self._bind = Binder()
        self._serve: Callable[..., int] = serve

    def allocate(self, batch: int) -> FleetState:
        """Return empty fleets."""
        world, params = self._world, self._params
        cells_x, cells_y = grid_shape(world)
        state = allocate(
            world,
            USUAL_BLOCK_CAPACITY,
            cells_x * cells_y,
            batch,
            num_stations(world, params),
            extra_events(params, world),
        )
        records = state.record_time.shape[1]
        full = allocate_full(world, params, records, USUAL_BLOCK_CAPACITY, self._logs, batch)
        return state._replace(full=full)

    def begin(self, state: FleetState, b: int, seed: int) -> None:
        """Give an empty fleet its nodes."""
        begin_full(self._world, self._params, state, b, seed)
        self._serve(self.lane_of(state, b), BEGIN, 0.0, 0, 0, 0, 0)

    def lane_of(self, state: FleetState, b: int) -> Any:
        """Return the views of one fleet."""
        return self._bind(full_lane_of(self._world, self._params, state, b))

    def resolve(self, lane: Any) -> None:
        """Resolve the kernels for the types of this scenario's lanes, which never change."""
        self._serve = entry_point(serve, lane, ADVANCE, 0.0, 0, 0, 0, 0)

    def advance(self, lane: Any, until: float) -> int:
        """Let a fleet live until a time, or until it needs something: see :func:`.serve`."""
        return self._serve(lane, ADVANCE, until, 0, 0, 0, 0)

    def answer(self, lane: Any, until: float, station: int, order: int) -> int:
        """Send the request at which a fleet has stopped to ask, and go on as :meth:`advance`."""
        return self._serve(lane, ANSWER, until, station, order, 0, 0)

    def begin_asking(self, lane: Any) -> None:
        """Let a fleet stop at each new request from now on."""
        self._serve(lane, BEGIN_ASKING, 0.0, 0, 0, 0, 0)

    def close_window(self, lane: Any, now: float) -> None:
        """Complete the counters of a fleet that has stopped to ask."""
        self._serve(lane, CLOSE_WINDOW, now, 0, 0, 0, 0)

    def change_profile(
        self, lane: Any, node: int, profile: int, kept: int, missing_bytes: int
    ) -> None:
        """Give a node another profile: the move is legal."""
        self._serve(lane, CHANGE_PROFILE, 0.0, node, profile, kept, missing_bytes)

    def fill(self, stream: RequestStream, state: FleetState, b: int) -> FleetState:
        """Load the next stream block, and the lengths of its requests."""
        loaded = int(state.scalars[b, NUM_REQUESTS])
        state, lengths = stream.fill_with_lengths(state, b)
        assert state.full is not None
        count = len(lengths.input_tokens)
        state.full.scalars[b, FIRST_REQUEST] += loaded
        state.full.lengths.input_tokens[b, :count] = lengths.input_tokens
        state.full.lengths.output_tokens[b, :count] = lengths.output_tokens
        return state

    def with_more_room(self, state: FleetState, code: int) -> FleetState:
        """Return the state with more of what an advance said that it needs."""
        if code == NEEDS_RECORDS:
            return with_more_records(state)
        full = state.full
        assert full is not None
        if code == NEEDS_FLOWS:
            return state._replace(full=full._replace(link=with_more_flows(full.link)))
        assert code == NEEDS_LEAVES
        return state._replace(full=full._replace(lru=with_more_leaves(full.lru)))

    def with_own_log(self, state: FleetState) -> FleetState:
        """Return a state of another fleet with a log if these fleets have one, else without.

        Logs are empty between advances, so nothing is lost.
        """
        assert state.full is not None
        records = state.record_time.shape[1] if self._logs else 0
        return state._replace(full=state.full._replace(log=allocate_log(records)))


def event_loop(
    scenario: Scenario, router: UserRouter | None = None, logs: bool = False, full: bool = False
) -> EventLoop:
    """Return the loop for a scenario: the fast one wherever that can do it.

    Parameters
    ----------
    scenario : Scenario
        The world.
    router : UserRouter, optional
        Takes the place of the scenario's routing rule; needs the full loop.
    logs : bool
        Whether requests are logged; needs the full loop.
    full : bool
        Whether the full loop is wanted anyway, for what only it counts.
    """
    world = scenario.compile()
    if scenario.needs_full or router is not None or logs or full:
        return FullLoop(world, full_params(scenario, world, router), logs)
    return FastLoop(world)
