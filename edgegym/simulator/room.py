"""Room in a fleet's arrays that runs out: more of it, with the same content."""

from typing import Any

from numpy.typing import NDArray

from edgegym.simulator.columns import NUM_RECORDS
from edgegym.simulator.full.allocate import with_more_lengths, with_more_tasks
from edgegym.simulator.state import LEAF_ENTRIES, FleetState, num_leaves, zeros


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    """Return a copy with axis 1 extended by zeros."""
    grown = zeros((array.shape[0], length, *array.shape[2:]), array.dtype)
    grown[:, : array.shape[1]] = array
    return grown


def with_more_records(state: FleetState) -> FleetState:
    """Return the state with twice as many request records.

    Parameters
    ----------
    state : FleetState
        Any state; its other arrays are shared with the result.

    Returns
    -------
    FleetState
        Same content, room for more requests in the system.
    """
    records = 2 * state.record_time.shape[1]
    events = state.soon_time.shape[1] + records // 2
    leaves = num_leaves(events, state.page_head.shape[1])
    scalars = state.scalars.copy()
    scalars[:, NUM_RECORDS] = records
    return state._replace(
        full=None if state.full is None else with_more_tasks(state.full, records),
        scalars=scalars,
        record_time=_longer(state.record_time, records),
        record_index=_longer(state.record_index, records),
        soon_time=_longer(state.soon_time, events),
        soon_order=_longer(state.soon_order, events),
        soon_item=_longer(state.soon_item, events),
        far_time=_longer(state.far_time, events),
        far_order=_longer(state.far_order, events),
        far_item=_longer(state.far_item, events),
        leaf_entries=_longer(state.leaf_entries, leaves * LEAF_ENTRIES),
        leaf_following=_longer(state.leaf_following, leaves),
    )


def with_block_capacity(state: FleetState, capacity: int) -> FleetState:
    """Return the state with room for at least ``capacity`` requests in a stream block.

    Parameters
    ----------
    state : FleetState
        Any state; its other arrays are shared with the result.
    capacity : int
        Requests in one block.

    Returns
    -------
    FleetState
        The state itself when it has the room.
    """
    if state.request_time_s.shape[1] >= capacity:
        return state
    names = ("request_time_s", "request_x_km", "request_y_km", "request_mark", "request_type")
    longer: dict[str, Any] = {name: _longer(getattr(state, name), capacity) for name in names}
    full = None if state.full is None else with_more_lengths(state.full, capacity)
    return state._replace(full=full, **longer)
