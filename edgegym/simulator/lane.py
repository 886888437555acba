"""What kernels see of one fleet: views of its state and of its world, in small groups.

Helpers take the groups they need. Tuples are kept narrow because compile time grows steeply with
the number of arrays that a function is passed. Tuples with ``COLUMNS`` lose the lengths of their
arrays inside a kernel: see :data:`~edgegym.simulator.compiling.borrow`.
"""

from typing import NamedTuple

from edgegym.simulator.columns import (
    NUM_MEASURED,
    NUM_NODE_WORK,
    NUM_RECORD_INDICES,
    NUM_RECORD_TIMES,
    NUM_SITE,
)
from edgegym.simulator.state import Bools, FleetState, Floats, Ints, pages_per_s
from edgegym.world.compiled import ROUTER_KINDS, WAIT_KINDS, World

_LOAD_AWARE = ROUTER_KINDS.index("load_aware")
_BACKLOG = WAIT_KINDS.index("backlog")
_MEASURED = WAIT_KINDS.index("measured")
_TIER = WAIT_KINDS.index("tier")


class Types(NamedTuple):
    """Request types and how they are served."""

    family: Ints  # [Q]
    target_s: Floats  # [Q]
    cold_prefill_s: Floats  # [Q]
    decode_s: Floats  # [Q]
    output_tokens: Floats  # [Q]
    hit_tokens: Floats  # [H, Q]
    prefill_s: Floats  # [H, Q]
    service_kind: int

    COLUMNS = ()


class Signals(NamedTuple):
    """Which signals of load reach the router."""

    backlog: bool  # it looks at backlogs
    lone: int  # a station whose backlog it looks at whatever nodes advertise, -1 for none
    measured: bool  # it looks at measured waits
    live: bool  # without delay
    predicts: bool  # it adds what it has sent itself
    period_s: float
    ewma_s: float


class Nodes(NamedTuple):
    """Load of the nodes; columns as in :mod:`edgegym.simulator.columns`."""

    work: Ints  # [N, NUM_NODE_WORK]
    measured: Floats  # [N, NUM_MEASURED]
    sites: Floats  # [N, NUM_SITE]

    COLUMNS = (("work", NUM_NODE_WORK), ("measured", NUM_MEASURED), ("sites", NUM_SITE))


class Records(NamedTuple):
    """Request records."""

    time: Floats  # [P, NUM_RECORD_TIMES]
    info: Ints  # [P, NUM_RECORD_INDICES]
    scalars: Ints

    COLUMNS = (("time", NUM_RECORD_TIMES), ("info", NUM_RECORD_INDICES))


class Heap(NamedTuple):
    """Heap of events; the first time is infinite when it is empty."""

    time: Floats
    order: Ints
    item: Ints
    num: Ints  # [1] SIZE

    COLUMNS = ()


class Calendar(NamedTuple):
    """Pages of events, columns of num as in :mod:`edgegym.simulator.columns`."""

    head: Ints  # [pages]
    entries: Ints  # [leaves · LEAF_ENTRIES, 3]
    following: Ints  # [leaves]
    num: Ints  # [NUM_CALENDAR]
    pages: int  # a power of two
    pages_per_s: float

    COLUMNS = (("entries", 3),)


class Queue(NamedTuple):
    """All events to come."""

    soon: Heap
    far: Heap
    calendar: Calendar


class Window(NamedTuple):
    """Counters of the window."""

    counters: Ints  # [NUM_COUNTERS]
    families: Ints  # [3, F]
    histogram: Ints  # [HISTOGRAM_BINS]


class Core(NamedTuple):
    """What serving a request touches."""

    types: Types
    signals: Signals
    nodes: Nodes
    records: Records
    queue: Queue
    scalars: Ints
    window: Window


class Catalogue(NamedTuple):
    """Profiles of the nodes, and what follows from them."""

    profile: Ints  # [N]
    slots: Ints  # [N, S]
    slot_service_rate: Floats  # [H]
    tier_wait_s: Floats  # [S]
    advertises_tier: bool


class Transfers(NamedTuple):
    """Moves in progress."""

    receiving: Bools  # [N]
    bytes_total: Ints  # [N]
    start_s: Floats  # [N]
    end_s: Floats  # [N]
    bytes_per_s: float


class Area(NamedTuple):
    """What the search for a node reads."""

    router_kind: int
    radio_xi: float
    radio_alpha: float
    radio_base_s: float
    width_km: float
    height_km: float
    periodic: bool
    num_nodes: int
    sites: Floats  # [N, NUM_SITE]
    prefill_s: Floats  # [H, Q]
    least_prefill_s: Floats  # [Q]
    scan: Floats  # [2, N] scratch
    cells_x: int  # 0 without a grid
    cells_y: int
    cell_start: Ints  # [cells + 1]

    COLUMNS = (("sites", NUM_SITE),)


class Requests(NamedTuple):
    """The loaded block of the request stream."""

    time_s: Floats  # [R]
    x_km: Floats  # [R]
    y_km: Floats  # [R]
    mark: Floats  # [R]
    type: Ints  # [R]
    end_s: Floats  # [1]

    COLUMNS = ()


class Lane(NamedTuple):
    """One fleet."""

    core: Core
    catalogue: Catalogue
    transfers: Transfers
    area: Area
    requests: Requests
    nearest_demand: Ints  # [N, F]
    now_s: Floats  # [1]


def requests_of(state: FleetState, b: int) -> Requests:
    """Return the views of the loaded stream block of fleet b."""
    return Requests(
        state.request_time_s[b],
        state.request_x_km[b],
        state.request_y_km[b],
        state.request_mark[b],
        state.request_type[b],
        state.stream_end_s[b : b + 1],
    )


def lane_of(world: World, state: FleetState, b: int) -> Lane:
    """Return the views of one fleet.

    Parameters
    ----------
    world : World
        The compiled scenario.
    state : FleetState
        State of B fleets. The lane is valid as long as its arrays are not replaced.
    b : int
        Which fleet.

    Returns
    -------
    Lane
        What kernels take. Lanes of different fleets can be advanced from different threads.
    """
    load_aware = world.router_kind == _LOAD_AWARE
    live = world.telemetry_period_s == 0.0
    scalars = state.scalars[b]
    core = Core(
        Types(
            world.type_family,
            world.type_target_s,
            world.cold_prefill_s,
            world.decode_occupancy_s,
            world.output_tokens,
            world.hit_tokens,
            world.prefill_s,
            world.service_kind,
        ),
        Signals(
            load_aware and world.wait_kind == _BACKLOG,
            -1,
            load_aware and world.wait_kind == _MEASURED,
            live,
            live or world.predict_on_route,
            world.telemetry_period_s,
            world.telemetry_ewma_s,
        ),
        Nodes(state.node_work[b], state.node_measured[b], state.sites[b]),
        Records(state.record_time[b], state.record_index[b], scalars),
        Queue(
            Heap(state.soon_time[b], state.soon_order[b], state.soon_item[b], state.soon_count[b]),
            Heap(state.far_time[b], state.far_order[b], state.far_item[b], state.far_count[b]),
            Calendar(
                state.page_head[b],
                state.leaf_entries[b],
                state.leaf_following[b],
                state.calendar_num[b],
                state.page_head.shape[1],
                pages_per_s(world),
            ),
        ),
        scalars,
        Window(state.counters[b], state.family_counters[b], state.histogram[b]),
    )
    catalogue = Catalogue(
        state.profile[b],
        state.slots[b],
        world.slot_service_rate,
        state.tier_wait_s[b],
        load_aware and world.wait_kind == _TIER,
    )
    transfers = Transfers(
        state.receiving[b],
        state.move_bytes_total[b],
        state.transfer_start_s[b],
        state.transfer_end_s[b],
        world.backhaul_bytes_per_s,
    )
    area = Area(
        world.router_kind,
        world.radio_xi,
        world.radio_alpha,
        world.radio_base_s,
        world.width_km,
        world.height_km,
        world.periodic,
        int(state.node_count[b]),
        state.sites[b],
        world.prefill_s,
        world.min_prefill_s,
        state.scan[b],
        int(state.cells[b, 0]),
        int(state.cells[b, 1]),
        state.cell_start[b],
    )
    return Lane(
        core,
        catalogue,
        transfers,
        area,
        requests_of(state, b),
        state.window_nearest_demand[b],
        state.now[b : b + 1],
    )
