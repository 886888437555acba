"""Transfers on the backhaul by themselves: when each ends, and what one costs the rest."""

import numpy as np
from numpy.typing import ArrayLike

from edgegym.jit import kernel
from edgegym.simulator.compiling import lend
from edgegym.simulator.full.flows import FETCH, FLOW_ITEM, LinkState
from edgegym.simulator.full.link import (
    add_flow,
    allocate_link,
    next_flow_end_s,
    pop_flow,
    with_more_flows,
)
from edgegym.simulator.full.sharing import LinkParams
from edgegym.simulator.state import Floats, Ints


@kernel
def _play(
    params: LinkParams,
    state: LinkState,
    begin_s: Floats,
    stations: Ints,
    sizes: Ints,
    end_s: Floats,
) -> None:
    link = lend(state)
    for k in range(len(begin_s) + 1):
        limit = begin_s[k] if k < len(begin_s) else np.inf
        while next_flow_end_s(link) <= limit and next_flow_end_s(link) < np.inf:
            now = next_flow_end_s(link)
            end_s[link.flow[pop_flow(params, link, now), FLOW_ITEM]] = now
        if k < len(begin_s):
            add_flow(params, link, limit, FETCH, k, -1, stations[k], sizes[k])


def transfer_ends_s(
    params: LinkParams, begin_s: ArrayLike, stations: ArrayLike, size_bytes: ArrayLike
) -> Floats:
    """Return when transfers end that share a backhaul with nothing else.

    Parameters
    ----------
    params : LinkParams
        The backhaul, see :func:`~edgegym.simulator.full.sharing.link_params`.
    begin_s : array_like, shape [n]
        When each begins, ascending, from 0 on.
    stations : array_like, shape [n]
        Where its bytes go, numbers from 0.
    size_bytes : array_like, shape [n]
        State of at least one byte; the link carries it compressed.

    Returns
    -------
    ndarray, shape [n]
        Seconds.

    Raises
    ------
    ValueError
        If the shapes differ, times descend, or a number is out of range.
    """
    begins = np.asarray(begin_s, dtype=np.float64)
    places = np.asarray(stations, dtype=np.int64)
    sizes = np.asarray(size_bytes, dtype=np.int64)
    if begins.ndim != 1 or begins.shape != places.shape or begins.shape != sizes.shape:
        raise ValueError(
            f"begin_s {begins.shape}, stations {places.shape}, size_bytes {sizes.shape}: must be "
            "of the same length"
        )
    if len(begins) == 0:
        return np.empty(0)
    if not (np.isfinite(begins).all() and begins[0] >= 0.0 and (np.diff(begins) >= 0.0).all()):
        raise ValueError("begin_s: must be finite, ascending, and not before 0")
    if places.min() < 0 or sizes.min() < 1:
        raise ValueError(
            f"stations from {places.min()}, size_bytes from {sizes.min()}: must be from 0 and 1 on"
        )
    state = allocate_link(params, int(places.max()) + 1)
    while state.listed.shape[1] < len(begins):
        state = with_more_flows(state)
    link = LinkState(*(array[0] for array in state))
    end_s = np.full(len(begins), np.nan)
    _play(params, link, begins, places, sizes, end_s)
    return end_s


def imposed_delays_s(
    params: LinkParams,
    begin_s: ArrayLike,
    stations: ArrayLike,
    size_bytes: ArrayLike,
    which: ArrayLike,
) -> Floats:
    """Return by how much one transfer delays those that are there when it begins.

    The difference of two schedules, with it and without it, that both go on without any transfer
    that begins later.

    Parameters
    ----------
    params, begin_s, stations, size_bytes
        As in :func:`transfer_ends_s`.
    which : array_like, shape [m]
        Positions of the transfers that are looked at.

    Returns
    -------
    ndarray, shape [m]
        Seconds, added up over the others.

    Raises
    ------
    ValueError
        As :func:`transfer_ends_s`.
    """
    columns = [np.asarray(column) for column in (begin_s, stations, size_bytes)]
    delays = []
    for position in np.asarray(which, dtype=np.int64):
        with_it = transfer_ends_s(params, *(column[: position + 1] for column in columns))
        without = transfer_ends_s(params, *(column[:position] for column in columns))
        delays.append(float((with_it[:position] - without).sum()))
    return np.array(delays)
