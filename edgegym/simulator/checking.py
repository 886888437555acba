"""Whether a state may be put into a fleet: kernels follow its indices without looking."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.simulator.columns import (
    FINGERPRINT,
    FREE_LEAF,
    FREE_RECORD,
    HEAD,
    HOLDING,
    HOLDS_SHIFT,
    IN_SLOTS,
    NEXT,
    NEXT_REQUEST,
    NEXT_SEQUENCE,
    NODE,
    NODE_CLASS,
    NODE_MASK,
    NOTED_FAMILY,
    NOTED_NODE,
    NUM_RECORDS,
    NUM_REQUESTS,
    ON_PAGES,
    PLACE,
    SITE_BITS,
    SIZE,
    SLOT_FREED,
    SLOTS,
    STATUS,
    TAIL,
    TYPE,
    USED_LEAVES,
    USED_RECORDS,
    WAITING,
)
from edgegym.simulator.events import (
    CATALOGUE,
    EXPIRY,
    FAULT,
    FLOW_END,
    KIND_SHIFT,
    LANDING,
    LEAF_SHIFT,
    NODE_SHIFT,
    READY,
    RECORD_MASK,
    SLOT_END,
    TELEMETRY,
)
from edgegym.simulator.full.checking import check_full_arrays, check_full_indices
from edgegym.simulator.full.columns import LOST
from edgegym.simulator.full.faults import CODE_SHIFT, COMPONENT_MASK, OUTAGE_ENDS, TOGGLE
from edgegym.simulator.state import LEAF_ENTRIES, FleetState, num_leaves
from edgegym.world.compiled import World

if TYPE_CHECKING:
    from edgegym.simulator.full.allocate import FullState

# Axis 1 of these grows with the requests in the system, or with those of a stream block.
_RECORD_FIELDS = ("record_time", "record_index")
_EVENT_FIELDS = ("soon_time", "soon_order", "soon_item", "far_time", "far_order", "far_item")
_LEAF_FIELDS = ("leaf_entries", "leaf_following")
_REQUEST_FIELDS = (
    "request_time_s",
    "request_x_km",
    "request_y_km",
    "request_mark",
    "request_type",
)
_NON_NEGATIVE = ("now", "active", "queued", "in_flight", "slots", "move_bytes_total")


def check_state(world: World, mine: FleetState, state: FleetState) -> None:
    """Refuse a state that the fleet cannot continue from.

    Parameters
    ----------
    world : World
        The fleet's compiled scenario.
    mine : FleetState
        The fleet's own state: gives shapes and types.
    state : FleetState
        The state to put in its place.

    Raises
    ------
    ValueError
        If it is no state, an array has another shape or type, or a number is out of its range.
    """
    if not isinstance(state, FleetState):
        raise ValueError(f"state is {type(state).__name__}: must be a FleetState, from get_state")
    _check_loop(mine.full, state.full)
    _check_arrays(mine, state)
    records = state.record_time.shape[1]
    if mine.full is not None and state.full is not None:
        check_full_arrays(mine.full, state.full, records, state.request_time_s.shape[1])
    if state.scalars[0, FINGERPRINT] != world.fingerprint:
        raise ValueError(
            "state.scalars[FINGERPRINT] is that of another scenario: the state must be of a fleet "
            "of the same scenario"
        )
    _check_fleet(world, state)
    _check_queues(world, state)
    if state.full is not None:
        check_full_indices(state.full, records, len(world.classes.share))
        _check_full_nodes(world, state)


def _check_loop(mine: "FullState | None", state: "FullState | None") -> None:
    if (mine is None) != (state is None):
        loops = ["fast", "full"]
        raise ValueError(
            f"state.full: the state is of a fleet on the {loops[state is not None]} event loop, "
            f"this fleet is on the {loops[mine is not None]} one"
        )


def _check_arrays(mine: FleetState, state: FleetState) -> None:
    for name, ours, theirs in zip(FleetState._fields[:-1], mine[:-1], state[:-1], strict=True):
        if not isinstance(theirs, np.ndarray) or theirs.dtype != ours.dtype:
            found = getattr(theirs, "dtype", type(theirs).__name__)
            raise ValueError(f"state.{name} is {found}: must be an array of {ours.dtype}")
        shape = theirs.shape
        if name in _RECORD_FIELDS + _EVENT_FIELDS + _LEAF_FIELDS + _REQUEST_FIELDS:
            fits = len(shape) == ours.ndim and shape[0] == 1 and shape[2:] == ours.shape[2:]
        else:
            fits = shape == ours.shape
        if not fits:
            raise ValueError(f"state.{name} has shape {shape}: this fleet's is {ours.shape}")
    records = state.record_time.shape[1]
    events = records + mine.soon_time.shape[1] - mine.record_time.shape[1]
    _check_lengths(state, _RECORD_FIELDS, records)
    _check_lengths(state, _EVENT_FIELDS, events)
    leaves = num_leaves(events, state.page_head.shape[1])
    _check_lengths(state, ("leaf_entries",), leaves * LEAF_ENTRIES)
    _check_lengths(state, ("leaf_following",), leaves)
    _check_lengths(state, _REQUEST_FIELDS, state.request_time_s.shape[1])


def _check_lengths(state: FleetState, names: tuple[str, ...], length: int) -> None:
    for name in names:
        found = getattr(state, name).shape[1]
        if found != length:
            raise ValueError(f"state.{name} has length {found}: must be {length}")


def _check_range(name: str, values: Any, low: float, high: float) -> None:
    if values.size and not (values.min() >= low and values.max() <= high):
        raise ValueError(
            f"state.{name} has {values.min()} to {values.max()}: must be {low} to {high}"
        )


def _check_fleet(world: World, state: FleetState) -> None:
    nodes, cells = state.node_x.shape[1], state.cell_start.shape[1] - 1
    count = state.node_count
    _check_range("node_count", count, 0, nodes)
    _check_range("node_x", state.node_x, 0.0, world.width_km)
    _check_range("node_y", state.node_y, 0.0, world.height_km)
    _check_range("profile", state.profile, 0, world.num_profiles - 1)
    rows = world.num_holdings
    if state.full is not None:
        rows = max(len(world.classes.row_class), state.full.node_class.shape[1])
    _check_range("holding", state.holding, 0, rows - 1)
    for name in _NON_NEGATIVE:
        _check_range(name, getattr(state, name), 0, np.finfo(np.float64).max)
    _check_range("bucket_bytes", state.bucket_bytes, 0.0, float(world.burst_bytes))
    _check_range("tier_wait_s", state.tier_wait_s, 0.0, np.finfo(np.float64).max)
    site = np.ascontiguousarray(state.sites[..., SITE_BITS]).view(np.int64)
    stations = state.node_work.shape[1]
    _check_range("sites, holding", site >> HOLDS_SHIFT, 0, rows - 1)
    _check_range("sites, node", site & NODE_MASK, 0, stations - 1)
    _check_range("node_work[PLACE]", state.node_work[..., PLACE], 0, stations - 1)
    _check_range("cell_start", state.cell_start, 0, nodes)
    shape = state.cells[0].tolist()
    if shape != [0, 0] and (min(shape) < 1 or math.prod(shape) > cells):
        raise ValueError(f"state.cells is {state.cells[0].tolist()}: there are {cells} cells")


def _check_full_nodes(world: World, state: FleetState) -> None:
    """Check what the full loop looks up by the figures of a node."""
    classes, nodes = len(world.classes.share), state.node_x.shape[1]
    _check_range("node_work[NODE_CLASS]", state.node_work[..., NODE_CLASS], 0, classes)
    most = max(int(world.classes.slots.max()), 1)
    for column, name in ((IN_SLOTS, "IN_SLOTS"), (SLOTS, "SLOTS")):
        _check_range(f"node_work[{name}]", state.node_work[:, :nodes, column], 0, most)
    _check_range("slots", state.slots, 0, most)


def _check_queues(world: World, state: FleetState) -> None:
    records, stations = state.record_time.shape[1], state.node_work.shape[1]
    full = state.full is not None
    rows = len(world.classes.row_class) if full else world.num_holdings
    scalars, capacity = state.scalars, state.request_time_s.shape[1]
    _check_range("scalars[FREE_RECORD]", scalars[:, FREE_RECORD], -1, records - 1)
    _check_range("scalars[USED_RECORDS]", scalars[:, USED_RECORDS], 0, records)
    _check_range("scalars[NOTED_NODE]", scalars[:, NOTED_NODE], -1, world.max_nodes - 1)
    _check_range("scalars[NOTED_FAMILY]", scalars[:, NOTED_FAMILY], 0, world.num_families - 1)
    _check_range("scalars[NUM_RECORDS]", scalars[:, NUM_RECORDS], records, records)
    _check_range("scalars[NUM_REQUESTS]", scalars[:, NUM_REQUESTS], 0, capacity)
    loaded = int(scalars[0, NUM_REQUESTS])
    _check_range("scalars[NEXT_REQUEST]", scalars[:, NEXT_REQUEST], 0, loaded)
    _check_range("request_type", state.request_type, 0, world.num_types - 1)
    info = state.record_index
    least, most = info.min(axis=(0, 1)), info.max(axis=(0, 1))
    for name, column, low, high in (
        ("STATUS", STATUS, 0, LOST if full else SLOT_FREED),
        ("NEXT", NEXT, -1, records - 1),
        ("TYPE", TYPE, 0, world.num_types - 1),
        ("NODE", NODE, -1, stations - 1),
        ("HOLDING", HOLDING, -1, max(rows, stations) - 1),
    ):
        if not low <= least[column] <= most[column] <= high:
            raise ValueError(
                f"state.record_index[{name}] has {least[column]} to {most[column]}: "
                f"must be {low} to {high}"
            )
    for column, name in ((HEAD, "HEAD"), (TAIL, "TAIL")):
        _check_range(f"node_work[{name}]", state.node_work[..., column], -1, records - 1)
    waiting = state.node_work[..., WAITING]
    _check_range("node_work[WAITING]", waiting, 0, records)
    _check_range(
        "node_work[HEAD], where requests wait", state.node_work[waiting > 0, HEAD], 0, records
    )
    _check_events(state, records, stations, world.max_nodes)


def _check_events(state: FleetState, records: int, stations: int, nodes: int) -> None:
    vertices = 0 if state.full is None else state.full.expiry.version.shape[1]
    leaves, events = state.leaf_following.shape[1], state.soon_time.shape[1]
    _check_range("soon_count[SIZE]", state.soon_count[:, SIZE], 0, events)
    _check_range("far_count[SIZE]", state.far_count[:, SIZE], 0, events)
    _check_range("page_head", state.page_head, -1, leaves << LEAF_SHIFT)
    _check_range("leaf_following", state.leaf_following, -1, leaves - 1)
    _check_range("calendar_num[FREE_LEAF]", state.calendar_num[:, FREE_LEAF], -1, leaves - 1)
    _check_range("calendar_num[USED_LEAVES]", state.calendar_num[:, USED_LEAVES], 0, leaves)
    _check_range("calendar_num[ON_PAGES]", state.calendar_num[:, ON_PAGES], 0, events)
    most = (1 << KIND_SHIFT) - 1
    _check_range("calendar_num[NEXT_SEQUENCE]", state.calendar_num[:, NEXT_SEQUENCE], 0, most)
    times_s = np.ascontiguousarray(state.leaf_entries[..., 0]).view(np.float64)
    _check_range("leaf_entries, time", times_s, 0.0, np.inf)
    for name, orders, items in (
        ("soon_item", state.soon_order, state.soon_item),
        ("far_item", state.far_order, state.far_item),
        ("leaf_entries", state.leaf_entries[..., 1], state.leaf_entries[..., 2]),
    ):
        kinds = orders >> KIND_SHIFT
        of_requests = items[(kinds == SLOT_END) | (kinds == LANDING) | (kinds == READY)]
        _check_range(f"{name}, node", of_requests >> NODE_SHIFT, 0, stations - 1)
        _check_range(f"{name}, record", of_requests & RECORD_MASK, 0, records - 1)
        _check_range(f"{name}, node", items[kinds == FLOW_END], 0, nodes - 1)
        of_reports = items[(kinds == TELEMETRY) | (kinds == CATALOGUE)]
        _check_range(f"{name}, report", of_reports, 0, most)
        faults = items[kinds == FAULT]
        _check_range(f"{name}, fault", faults >> CODE_SHIFT, TOGGLE, OUTAGE_ENDS)
        _check_range(f"{name}, part that fails", faults & COMPONENT_MASK, 0, nodes + 1)
        _check_range(f"{name}, vertex", items[kinds == EXPIRY], 0, vertices - 1)
