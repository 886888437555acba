"""The state of a fleet as plain arrays with a leading axis of fleets.

Everything that a simulation is lies in these arrays, so a copy of them is a copy of the simulation.
Kernels see one fleet of them at a time, as a :class:`~edgegym.simulator.lane.Lane` of views.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.columns import (
    FREE_LEAF,
    FREE_RECORD,
    HOLDS,
    IN_SLOTS,
    NOTED_NODE,
    NUM_CALENDAR,
    NUM_COUNTERS,
    NUM_MEASURED,
    NUM_NODE_WORK,
    NUM_RECORD_INDICES,
    NUM_RECORD_TIMES,
    NUM_RECORDS,
    NUM_SCALARS,
    NUM_SITE,
    ON_RADIO,
    PLACE,
    SITE_WAIT_S,
    SITE_X_KM,
    WAITING,
)
from edgegym.simulator.tree import map_arrays
from edgegym.world.compiled import World

if TYPE_CHECKING:
    from edgegym.simulator.full.allocate import FullState

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

LEAF_ENTRIES = 8
_EVENTS_PER_PAGE, _EVENTS_PER_FULL_PAGE = 16, 32
# With so few requests at once a heap of all events is faster than pages.
_FEW_REQUESTS, _ALL_ON_ONE_PAGE = 32.0, 2.0**20
# So many page heads lie in the nearest cache, so many in the next.
_NEAR_PAGES = 1 << 14
_MIN_PAGES, _MAX_PAGES = 16, 1 << 17
# Pages reach as far as this many mean times that a request spends in a slot.
_REACH_IN_OCCUPANCIES = 4.0

TICKS_PER_S = float(2**30)
"""Statistics add up times as integers of this resolution, so that no order of addition matters."""


def to_ticks(seconds: float) -> int:
    """Return a time of at least 0 as whole ticks.

    Parameters
    ----------
    seconds : float
        Up to 8.6e9 s.

    Returns
    -------
    int
        The nearest number of ticks of 2^-30 s.
    """
    return int(seconds * TICKS_PER_S + 0.5)


HISTOGRAM_SUBBUCKETS_LOG2 = 6
HISTOGRAM_MIN_LOG2 = -10
HISTOGRAM_MAX_LOG2 = 14
HISTOGRAM_BINS = ((HISTOGRAM_MAX_LOG2 - HISTOGRAM_MIN_LOG2) << HISTOGRAM_SUBBUCKETS_LOG2) + 2

_LINE_BYTES = 64
_ALIGNED_FROM_BYTES = 4096  # smaller arrays stay in the nearest cache however they lie

INITIAL_RECORDS_PER_NODE = 16
MIN_RECORDS = 256


class FleetState(NamedTuple):
    """A batch of B fleets of the same scenario; N nodes with padding, S profiles, F families."""

    seed: NDArray[np.uint64]  # [B] all randomness follows from it
    now: Floats  # [B] s
    node_count: Ints  # [B]
    node_x: Floats  # [B, N] km
    node_y: Floats  # [B, N] km
    up: Bools  # [B, N] False for padding nodes
    profile: Ints  # [B, N] the target as soon as a move has started
    receiving: Bools  # [B, N] a move is in progress
    move_bytes_total: Ints  # [B, N] bytes of that move
    transfer_start_s: Floats  # [B, N] inf while draining
    transfer_end_s: Floats  # [B, N] inf while draining
    slots: Ints  # [B, N, S]
    bucket_bytes: Floats  # [B] level at bucket_time_s
    bucket_time_s: Floats  # [B]
    window_nearest_demand: Ints  # [B, N, F] requests of the window by nearest up node and family
    # The rest is the kernel's own.
    node_work: Ints  # [B, N, NUM_NODE_WORK]
    node_measured: Floats  # [B, N, NUM_MEASURED]
    tier_wait_s: Floats  # [B, S]
    sites: Floats  # [B, N, NUM_SITE] nodes in the order of the search: by cell, then by index
    cells: Ints  # [B, 2] cells of the search grid in x and y, 0 without a grid
    cell_start: Ints  # [B, cells + 1] first place of each cell
    scan: Floats  # [B, 2, N] scratch of the search without a grid
    counters: Ints  # [B, NUM_COUNTERS]
    family_counters: Ints  # [B, 3, F]
    histogram: Ints  # [B, HISTOGRAM_BINS] TTFT
    scalars: Ints  # [B, NUM_SCALARS]
    record_time: Floats  # [B, P, NUM_RECORD_TIMES]
    record_index: Ints  # [B, P, NUM_RECORD_INDICES]
    soon_time: Floats  # [B, P + N + 1] heap of the events of the calendar's current page
    soon_order: Ints  # [B, P + N + 1]
    soon_item: Ints  # [B, P + N + 1]
    soon_count: Ints  # [B, 1]
    far_time: Floats  # [B, P + N + 1] heap of the events beyond the calendar's last page
    far_order: Ints  # [B, P + N + 1]
    far_item: Ints  # [B, P + N + 1]
    far_count: Ints  # [B, 1]
    page_head: Ints  # [B, pages] first leaf and number of its entries, -1 for an empty page
    leaf_entries: Ints  # [B, leaves · LEAF_ENTRIES, 3] time as bits, order, item
    leaf_following: Ints  # [B, leaves] next leaf of the same page, or of the free list
    calendar_num: Ints  # [B, NUM_CALENDAR]
    stream_end_s: Floats  # [B] end of the loaded block
    request_time_s: Floats  # [B, R]
    request_x_km: Floats  # [B, R]
    request_y_km: Floats  # [B, R]
    request_mark: Floats  # [B, R]
    request_type: Ints  # [B, R]
    full: "FullState | None" = None  # what only the full loop keeps

    def _work(self, column: int) -> Ints:
        """Return a column of all nodes; the full loop has a row for the origin besides."""
        return self.node_work[:, : self.node_x.shape[1], column]

    @property
    def active(self) -> Ints:
        """Requests in a slot, a view ``[B, N]``."""
        return self._work(IN_SLOTS)

    @property
    def queued(self) -> Ints:
        """Requests in the queue, a view ``[B, N]``."""
        return self._work(WAITING)

    @property
    def in_flight(self) -> Ints:
        """Requests routed to the node and still on the radio, a view ``[B, N]``."""
        return self._work(ON_RADIO)

    @property
    def holding(self) -> Ints:
        """What the node really holds, a view ``[B, N]``: a holding, in the full loop a row."""
        return self._work(HOLDS)

    @property
    def advertised_wait_s(self) -> Floats:
        """The wait that the router expects at each node, a copy ``[B, N]``."""
        places = self._work(PLACE)
        return np.take_along_axis(self.sites[:, :, SITE_WAIT_S], places, axis=1)


def pages_per_s(world: World) -> float:
    """Return the pages of the event calendar in a second.

    Parameters
    ----------
    world : World
        The compiled scenario.

    Returns
    -------
    float
        So that a page has a few events: each request lands at its node and leaves its slot. Larger
        fleets have fuller pages, so that the heads of all pages stay in the cache (measured).
    """
    in_slots = world.mean_rate_per_s / world.slot_service_rate.min()
    if in_slots <= _FEW_REQUESTS:
        return 2.0 * world.mean_rate_per_s / _ALL_ON_ONE_PAGE
    reach_s = _REACH_IN_OCCUPANCIES / world.slot_service_rate.min()
    events_per_s = 2.0 * world.mean_rate_per_s
    if events_per_s / _EVENTS_PER_PAGE * reach_s <= _NEAR_PAGES:
        return events_per_s / _EVENTS_PER_PAGE
    return min(events_per_s / _EVENTS_PER_FULL_PAGE, _MAX_PAGES / reach_s)


def _num_pages(world: World) -> int:
    """Return a power of two, so that a page number is cut to a place by its last bits."""
    reach_s = _REACH_IN_OCCUPANCIES / world.slot_service_rate.min()
    pages = min(max(reach_s * pages_per_s(world), _MIN_PAGES), _MAX_PAGES)
    return 1 << math.ceil(math.log2(pages))


def num_leaves(events: int, pages: int) -> int:
    """Return how many leaves so many events can need: one on each page may not be full."""
    return events // LEAF_ENTRIES + pages + 1


def allocate(
    world: World,
    block_capacity: int = 1,
    grid_cells: int = 0,
    batch: int = 1,
    stations: int | None = None,
    extra_events: int = 1,
) -> FleetState:
    """Return the state of B empty fleets at time 0, without nodes.

    Parameters
    ----------
    world : World
        The compiled scenario.
    block_capacity : int
        Requests that a stream block may hold, R.
    grid_cells : int
        Cells of the search grid; 0 when the fleet is searched node by node.
    batch : int
        Number of fleets, B.
    stations : int, optional
        Nodes and, in the full loop, the origin; by default the nodes.
    extra_events : int
        Events that there can be besides one of each request and each node.

    Returns
    -------
    FleetState
        Zeros, with empty queues and lists.
    """
    n, s = world.max_nodes, world.num_profiles
    m = n if stations is None else stations
    f = world.num_families
    records = max(MIN_RECORDS, INITIAL_RECORDS_PER_NODE * n)
    events = records + n + extra_events
    pages = _num_pages(world)

    def ints(*shape: int) -> Ints:
        return zeros((batch, *shape), np.int64)

    def floats(*shape: int) -> Floats:
        return zeros((batch, *shape), np.float64)

    def bools(*shape: int) -> Bools:
        return np.zeros((batch, *shape), dtype=np.bool_)

    state = FleetState(
        seed=np.zeros(batch, dtype=np.uint64),
        now=floats(),
        node_count=ints(),
        node_x=floats(n),
        node_y=floats(n),
        up=bools(n),
        profile=ints(n),
        receiving=bools(n),
        move_bytes_total=ints(n),
        transfer_start_s=np.full((batch, n), np.inf),
        transfer_end_s=np.full((batch, n), np.inf),
        slots=ints(n, s),
        bucket_bytes=np.full(batch, float(world.burst_bytes)),
        bucket_time_s=floats(),
        window_nearest_demand=ints(n, f),
        node_work=ints(m, NUM_NODE_WORK),
        node_measured=floats(m, NUM_MEASURED),
        tier_wait_s=floats(s),
        sites=floats(m, NUM_SITE),
        cells=ints(2),
        cell_start=ints(grid_cells + 1),
        scan=floats(2, 0 if grid_cells else n),
        counters=ints(NUM_COUNTERS),
        family_counters=ints(3, f),
        histogram=ints(HISTOGRAM_BINS),
        scalars=ints(NUM_SCALARS),
        record_time=floats(records, NUM_RECORD_TIMES),
        record_index=ints(records, NUM_RECORD_INDICES),
        soon_time=floats(events),
        soon_order=ints(events),
        soon_item=ints(events),
        soon_count=ints(1),
        far_time=floats(events),
        far_order=ints(events),
        far_item=ints(events),
        far_count=ints(1),
        page_head=np.full((batch, pages), -1, dtype=np.int64),
        leaf_entries=ints(num_leaves(events, pages) * LEAF_ENTRIES, 3),
        leaf_following=ints(num_leaves(events, pages)),
        calendar_num=ints(NUM_CALENDAR),
        stream_end_s=floats(),
        request_time_s=floats(block_capacity),
        request_x_km=floats(block_capacity),
        request_y_km=floats(block_capacity),
        request_mark=floats(block_capacity),
        request_type=ints(block_capacity),
    )
    state.scalars[:, FREE_RECORD], state.scalars[:, NUM_RECORDS] = -1, records
    state.scalars[:, NOTED_NODE] = -1
    state.calendar_num[:, FREE_LEAF] = -1
    state.soon_time[:, 0] = state.far_time[:, 0] = np.inf
    state.sites[:, :, SITE_X_KM] = np.inf
    state.node_work[:, :, PLACE] = np.arange(m)
    return state


def copy_state(state: FleetState) -> FleetState:
    """Return an independent copy.

    Parameters
    ----------
    state : FleetState
        Any state.

    Returns
    -------
    FleetState
        The same values in new arrays.
    """
    return map_arrays(_copy, state)


def zeros(shape: tuple[int, ...], kind: Any) -> NDArray[Any]:
    """Return zeros that begin with a cache line, so that rows of whole lines do not straddle."""
    bytes_ = math.prod(shape) * np.dtype(kind).itemsize
    if bytes_ < _ALIGNED_FROM_BYTES:
        return np.zeros(shape, dtype=kind)
    room = np.zeros(bytes_ + _LINE_BYTES, dtype=np.uint8)
    begin = -room.ctypes.data % _LINE_BYTES
    return room[begin : begin + bytes_].view(kind).reshape(shape)


def _copy(array: NDArray[Any]) -> NDArray[Any]:
    copied = zeros(array.shape, array.dtype)
    copied[...] = array
    return copied
