"""The event loop: advance one fleet."""

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots, settle, ticks
from edgegym.simulator.events import (
    NODE_ARRIVAL,
    SLOT_END,
    TELEMETRY,
    kind_of,
    pop_event,
    push_event,
    replace_event,
)
from edgegym.simulator.moves import complete_move
from edgegym.simulator.nodes import end_slot, join_node
from edgegym.simulator.search import choose_node, radio_beyond_base_s
from edgegym.simulator.state import (
    ARRIVAL_S,
    ARRIVALS,
    BYTES_MOVED,
    COUNTED,
    DECIDED,
    FAMILY_ARRIVALS,
    FAMILY_DECIDED,
    FREE_RECORD,
    IN_FLIGHT,
    MARK,
    MOVES_STARTED,
    NEXT,
    NEXT_REQUEST,
    NODE,
    NUM_EVENTS,
    NUM_REQUESTS,
    PENDING_BYTES,
    PENDING_MOVES,
    REJECTED,
    STATUS,
    TYPE,
    USED_RECORDS,
    WINDOW_OPEN,
    FleetState,
    Lane,
    lane_of,
)
from edgegym.simulator.telemetry import note_routed, publish
from edgegym.world.compiled import World

DONE = 0
NEEDS_BLOCK = 1
NEEDS_RECORDS = 2


@kernel
def _open_window(lane: Lane) -> None:
    """Set the window's counters to zero, but for the moves started before it."""
    lane.counters[:] = 0
    lane.family_counters[:] = 0
    lane.histogram[:] = 0
    lane.busy_ticks[:] = 0
    lane.capacity_ticks[:] = 0
    lane.prefill_ticks[:] = 0
    lane.window_nearest_demand[:] = 0
    lane.counters[MOVES_STARTED] = lane.scalars[PENDING_MOVES]
    lane.counters[BYTES_MOVED] = lane.scalars[PENDING_BYTES]
    lane.scalars[PENDING_MOVES] = 0
    lane.scalars[PENDING_BYTES] = 0
    lane.scalars[WINDOW_OPEN] = 1


@kernel
def _close_window(world: World, lane: Lane, until: float) -> None:
    settle(world, lane, until)
    for node in range(lane.node_count[0]):
        accrue_slots(lane, node, ticks(until))
    lane.now[0] = until
    lane.scalars[WINDOW_OPEN] = 0


@kernel(forceinline=True)
def _has_room(lane: Lane) -> bool:
    return lane.scalars[FREE_RECORD] >= 0 or lane.scalars[USED_RECORDS] < len(lane.record_index)


@kernel(forceinline=True)
def _new_record(lane: Lane) -> int:
    record = lane.scalars[FREE_RECORD]
    if record >= 0:
        lane.scalars[FREE_RECORD] = lane.record_index[record, NEXT]
        return record
    record = lane.scalars[USED_RECORDS]
    lane.scalars[USED_RECORDS] = record + 1
    return record


@kernel(forceinline=True)
def _route(
    world: World, lane: Lane, time: float, x: float, y: float, request_type: int, mark: float
) -> None:
    """Send a request to a node."""
    family = world.type_family[request_type]
    lane.counters[ARRIVALS] += 1
    lane.family_counters[FAMILY_ARRIVALS, family] += 1
    choice = choose_node(world, lane, x, y, request_type)
    node = choice.node
    if node < 0:
        lane.counters[REJECTED] += 1
        lane.counters[DECIDED] += 1
        lane.family_counters[FAMILY_DECIDED, family] += 1
        return
    lane.window_nearest_demand[choice.nearest, family] += 1
    note_routed(world, lane, node)
    record = _new_record(lane)
    times, indices = lane.record_time[record], lane.record_index[record]
    times[ARRIVAL_S] = time
    times[MARK] = mark
    indices[STATUS] = IN_FLIGHT
    indices[TYPE] = request_type
    indices[NODE] = node
    indices[COUNTED] = 0
    lane.in_flight[node] += 1
    join = time + (
        world.radio_base_s + radio_beyond_base_s(world, choice.distance_squared_km2)
    )
    if join > time:
        push_event(lane, join, NODE_ARRIVAL, record)
    else:  # it would be the next event anyway
        end = join_node(world, lane, node, record, time)
        if end >= 0.0:
            push_event(lane, end, SLOT_END, record)


@kernel(forceinline=True)
def _happen(world: World, lane: Lane, until: float) -> None:
    """Let the first event of the heap happen."""
    now = lane.event_time[0]
    kind = kind_of(lane.event_order[0])
    item = lane.event_item[0]
    if kind == NODE_ARRIVAL:
        end = join_node(world, lane, lane.record_index[item, NODE], item, now)
        if end < 0.0:
            pop_event(lane)
        else:
            replace_event(lane, end, SLOT_END, item)
    elif kind == SLOT_END:
        node = lane.record_index[item, NODE]
        end, following = end_slot(world, lane, node, item, now, until)
        if following < 0:
            pop_event(lane)
        else:
            replace_event(lane, end, SLOT_END, following)
    elif kind == TELEMETRY:
        publish(world, lane, now)
        replace_event(lane, (item + 1) * world.telemetry_period_s, TELEMETRY, item + 1)
    else:
        pop_event(lane)
        complete_move(world, lane, item)


@kernel
def advance_one(world: World, state: FleetState, b: int, until: float) -> int:
    """Let one fleet live until a time, or until it needs something that kernels cannot give.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets; only fleet b is changed.
    b : int
        Which fleet.
    until : float
        Time in seconds, not before the fleet's clock; events at this very time happen.

    Returns
    -------
    int
        DONE: the clock stands at ``until`` and the window's counters are complete. NEEDS_BLOCK: load
        the next stream block and call again. NEEDS_RECORDS: make room for more requests and call
        again.
    """
    lane = lane_of(state, b)
    request_time, request_type = state.request_time_s[b], state.request_type[b]
    request_x, request_y, request_mark = (
        state.request_x_km[b],
        state.request_y_km[b],
        state.request_mark[b],
    )
    stream_end = state.stream_end_s[b]
    scalars = lane.scalars
    if scalars[WINDOW_OPEN] == 0:
        _open_window(lane)
    position, loaded = scalars[NEXT_REQUEST], scalars[NUM_REQUESTS]
    while True:
        if position == loaded and stream_end <= until:
            scalars[NEXT_REQUEST] = position
            return NEEDS_BLOCK
        next_request = request_time[position] if position < loaded else float("inf")
        next_event = lane.event_time[0] if scalars[NUM_EVENTS] > 0 else float("inf")
        if next_event <= next_request:
            if next_event > until:
                break
            _happen(world, lane, until)
        else:
            if next_request > until:
                break
            if not _has_room(lane):
                scalars[NEXT_REQUEST] = position
                return NEEDS_RECORDS
            _route(
                world,
                lane,
                next_request,
                request_x[position],
                request_y[position],
                request_type[position],
                request_mark[position],
            )
            position += 1
    scalars[NEXT_REQUEST] = position
    _close_window(world, lane, until)
    return DONE
