"""The state that only the full loop has, and its growth."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.simulator.full.columns import (
    FAULTS_KEY,
    FLOW,
    FORCED_REQUEST,
    NODE_FLOW,
    NUM_FAULT,
    NUM_FULL_SCALARS,
    NUM_NODE_FLOW,
    NUM_TASK_NUMS,
    NUM_TASK_REALS,
    ORIGIN_KEY,
    ROUTING_KEY,
)
from edgegym.simulator.full.counts import Counts, allocate_counts
from edgegym.simulator.full.engine_data import Engine, allocate_engine, with_more_requests
from edgegym.simulator.full.expiry import ExpiryState, allocate_expiry
from edgegym.simulator.full.flows import LinkState
from edgegym.simulator.full.groups import Faults, Lengths, NodeFlows, Tasks
from edgegym.simulator.full.link import allocate_link
from edgegym.simulator.full.log import LogState, allocate_log
from edgegym.simulator.full.lru_data import LruState, allocate_lru
from edgegym.simulator.full.params import FullParams
from edgegym.simulator.full.routing_groups import RoutingState, allocate_routing
from edgegym.simulator.full.timers import Timers, allocate_timers, with_more_timers
from edgegym.simulator.generators import stream_key
from edgegym.simulator.state import Floats, Ints, zeros
from edgegym.simulator.tree import map_arrays
from edgegym.world.compiled import World


class FullState(NamedTuple):
    """What the full loop keeps of B fleets, beside a FleetState; no array is shared."""

    tasks: Tasks  # [B, P, …]
    lengths: Lengths  # [B, R]
    scalars: Ints  # [B, NUM_FULL_SCALARS]
    node_class: Ints  # [B, M]
    holders: Ints  # [B, C * H]
    seen_tokens: Floats  # [B, M, Q] of radix caches with a delayed catalogue, else empty
    node_flows: NodeFlows  # [B, N, …]
    faults: Faults  # [B, N + 2, …]
    counts: Counts
    log: LogState
    routing: RoutingState
    timers: Timers
    dues: Timers  # [B, P] when each request is next counted, in a fleet that asks
    engine: Engine
    link: LinkState
    lru: LruState
    expiry: ExpiryState


def num_stations(world: World, params: FullParams) -> int:
    """Return the stations of a fleet, M: its nodes, and the origin."""
    return world.max_nodes + (1 if params.origin.exists else 0)


def extra_events(params: FullParams, world: World) -> int:
    """Return how many events there can be besides those of requests and nodes."""
    components = world.max_nodes + 2
    return components + 2 * len(params.faults.outages) + len(params.expiry.lifetime_s) + 8


def allocate_full(
    world: World, params: FullParams, records: int, block_capacity: int, logs: bool, batch: int = 1
) -> FullState:
    """Return the full loop's state of B fleets at time 0.

    Parameters
    ----------
    world : World
        The compiled scenario.
    params : FullParams
        Of the same scenario.
    records : int
        Request records, P.
    block_capacity : int
        Requests that a stream block may hold, R.
    logs : bool
        Whether requests are logged.
    batch : int
        Number of fleets, B.
    """
    stations, nodes = num_stations(world, params), world.max_nodes
    types = world.num_types

    def ints(*shape: int) -> Ints:
        return np.zeros((batch, *shape), dtype=np.int64)

    delayed = params.life.lru and params.life.catalogue_s > 0.0
    state = FullState(
        tasks=Tasks(
            zeros((batch, records, NUM_TASK_REALS), np.float64),
            zeros((batch, records, NUM_TASK_NUMS), np.int64),
        ),
        lengths=Lengths(ints(block_capacity), ints(block_capacity)),
        scalars=ints(NUM_FULL_SCALARS),
        node_class=ints(stations),
        holders=ints(len(world.classes.row_class)),
        seen_tokens=np.zeros((batch, stations if delayed else 0, types)),
        node_flows=NodeFlows(ints(nodes, NUM_NODE_FLOW)),
        faults=Faults(ints(nodes + 2, NUM_FAULT)),
        counts=allocate_counts(world.num_families, int(params.path_length.max()), batch),
        log=allocate_log(records if logs else 0, batch),
        routing=allocate_routing(params.routing, stations, world.num_profiles, batch),
        timers=allocate_timers(stations, batch),
        dues=allocate_timers(records, batch),
        engine=allocate_engine(stations, records if params.life.has_engine else 0, batch),
        link=allocate_link(params.link, stations, batch),
        lru=allocate_lru(params.lru, stations if params.life.lru else 0, batch),
        expiry=allocate_expiry(params.expiry, batch),
    )
    state.scalars[:, FORCED_REQUEST] = -1
    state.tasks.num[:, :, FLOW] = -1
    state.node_flows.num[:, :, NODE_FLOW] = -1
    return state


def _longer(array: NDArray[np.generic], length: int) -> NDArray[np.generic]:
    grown = zeros((array.shape[0], length, *array.shape[2:]), array.dtype)
    grown[:, : array.shape[1]] = array
    return grown


def with_more_tasks(state: FullState, records: int) -> FullState:
    """Return the state with room for more request records; other arrays are shared."""
    log = state.log
    if log.real.shape[1] > 0:
        rows = max(2 * records, log.real.shape[1])
        log = log._replace(real=_longer(log.real, rows), num=_longer(log.num, rows))
    engine = state.engine
    if engine.request.shape[1] > 0:
        engine = with_more_requests(engine, records)
    tasks = map_arrays(lambda array: _longer(array, records), state.tasks)
    dues = with_more_timers(state.dues, records)
    return state._replace(tasks=tasks, dues=dues, log=log, engine=engine)


def with_more_lengths(state: FullState, capacity: int) -> FullState:
    """Return the state with room for longer stream blocks; other arrays are shared."""
    return state._replace(lengths=map_arrays(lambda array: _longer(array, capacity), state.lengths))


def set_keys(state: FullState, b: int, seed: int) -> None:
    """Give fleet b the keys of its random draws."""
    for column, name in (
        (ROUTING_KEY, "routing"),
        (FAULTS_KEY, "failures"),
        (ORIGIN_KEY, "origin"),
    ):
        state.scalars[b, column] = stream_key(seed, name)
