"""The lane that the full loop's kernels see, and the beginning of a fleet."""

from typing import Any

import numpy as np

from edgegym.simulator.columns import NODE_CLASS, REQUEST_S_BITS, SITE_BITS, SITE_X_KM, SLOTS
from edgegym.simulator.full.allocate import FullState, num_stations, set_keys
from edgegym.simulator.full.engine_data import CLASS
from edgegym.simulator.full.expiry import draw_phases
from edgegym.simulator.full.fetch import JOINT
from edgegym.simulator.full.groups import Holdings
from edgegym.simulator.full.joint import Reach
from edgegym.simulator.full.lane import Catalogue, Desk, FullLane
from edgegym.simulator.full.log import log_lane
from edgegym.simulator.full.params import FullParams
from edgegym.simulator.full.routing_groups import Routing, Stock, most_hits, tier_serves
from edgegym.simulator.lane import Lane, lane_of
from edgegym.simulator.state import FleetState
from edgegym.simulator.topology import write_nodes
from edgegym.simulator.tree import map_arrays
from edgegym.world.compiled import WAIT_KINDS, World

_BACKLOG = WAIT_KINDS.index("backlog")
_MEASURED = WAIT_KINDS.index("measured")
_TIER = WAIT_KINDS.index("tier")


def _one(b: int, tree: Any) -> Any:
    """Return the views of fleet b."""
    return map_arrays(lambda array: array[b], tree)


def _holdings(world: World, params: FullParams, full: FullState, b: int) -> Holdings:
    """Return what rows are worth: those of the catalogue, or of the stations' radix caches."""
    tables, lru = world.classes, params.life.lru
    held = full.lru.held_tokens[b] if lru else tables.hit_tokens
    return Holdings(
        hit_tokens=held,
        seen_tokens=full.seen_tokens[b] if full.seen_tokens.size else held,
        holders=full.holders[b],
        hit_depth=params.hit_depth,
        path_length=params.path_length,
        path_tokens=params.path_tokens,
        node_class=full.node_class[b],
        row_service_rate=tables.row_service_rate,
        empty_row=tables.empty_row,
        missing_bytes=tables.missing_bytes,
        bytes_per_token=tables.kv_bytes_per_token,
        num_holdings=tables.num_holdings,
        num_types=world.num_types,
    )


def _routing(
    world: World,
    params: FullParams,
    state: FleetState,
    full: FullState,
    b: int,
    plain: Lane,
    holdings: Holdings,
) -> Routing:
    """Return what routing touches."""
    tables, nodes = world.classes, plain.core.nodes
    rules, logs = params.routing, full.log.real.shape[1] > 0
    if params.life.lru:
        row_class = full.node_class[b]
        most = np.broadcast_to(params.origin.path_tokens, tables.occupancy_s.shape).copy()
        most[tables.serves == 0] = -1.0
        serves = np.ones((world.num_profiles, world.num_types), dtype=np.int64)
    else:
        row_class = tables.row_class
        most = most_hits(tables.hit_tokens, row_class, len(tables.share))
        serves = tier_serves(tables.hit_tokens, tables.num_holdings, world.num_profiles)
    return Routing(
        params=params.routing,
        state=_one(b, full.routing),
        stock=Stock(holdings.seen_tokens, row_class, params.life.coefficients, most, serves),
        signals=plain.core.signals,
        nodes=nodes,
        area=plain.area,
        origin=params.origin,
        origin_station=world.max_nodes if params.origin.exists else -1,
        faults=_one(b, full.faults),
        profile=state.profile[b],
        up=state.up[b],
        receiving=state.receiving[b],
        reach=Reach(
            params.fetch,
            params.link,
            _one(b, full.link),
            holdings.hit_tokens,
            holdings.holders,
        ),
        seeks_runner_up=logs,
        looks_plainly=not (
            logs or rules.admission.used or rules.margin.used or params.fetch.controller == JOINT
        ),
    )


def full_lane_of(world: World, params: FullParams, state: FleetState, b: int) -> FullLane:
    """Return the views of one fleet of the full loop.

    Parameters
    ----------
    world : World
        The compiled scenario.
    params : FullParams
        Of the same scenario.
    state : FleetState
        State of B fleets, with the full loop's. The lane is valid as long as its arrays are not
        replaced.
    b : int
        Which fleet.
    """
    full = state.full
    assert full is not None
    plain = lane_of(world, state, b)
    lone = world.max_nodes if params.origin.exists and world.wait_kind == _TIER else -1
    signals = plain.core.signals._replace(
        backlog=world.wait_kind == _BACKLOG, lone=lone, measured=world.wait_kind == _MEASURED
    )
    plain = plain._replace(core=plain.core._replace(signals=signals))
    core, stations = plain.core, num_stations(world, params)
    holdings = _holdings(world, params, full, b)

    desk = Desk(
        types=core.types,
        records=core.records,
        tasks=_one(b, full.tasks),
        window=core.window,
        counts=_one(b, full.counts),
        log=log_lane(full.log, b),
        dues=_one(b, full.dues),
        coefficients=params.life.coefficients,
        work=core.nodes.work,
        origin=world.max_nodes if params.origin.exists else -1,
        has_engine=params.life.has_engine,
        stations=stations,
    )
    catalogue = Catalogue(
        profile=state.profile[b],
        slots=state.slots[b],
        up=state.up[b],
        node_x_km=state.node_x[b],
        tier_wait_s=state.tier_wait_s[b],
        advertises_tier=world.wait_kind == _TIER,
        live=params.life.catalogue_s == 0.0,
    )
    return FullLane(
        core=core,
        desk=desk,
        catalogue=catalogue,
        holdings=holdings,
        transfers=plain.transfers,
        area=plain.area,
        requests=plain.requests,
        lengths=_one(b, full.lengths),
        nearest_demand=plain.nearest_demand,
        now_s=plain.now_s,
        scalars=full.scalars[b],
        life=params.life,
        origin=params.origin,
        node_flows=_one(b, full.node_flows),
        faults=_one(b, full.faults),
        fault_params=params.faults,
        routing=_routing(world, params, state, full, b, plain, holdings),
        timers=_one(b, full.timers),
        engine=_one(b, full.engine),
        engine_params=params.engine,
        link=_one(b, full.link),
        link_params=params.link,
        fetch_params=params.fetch,
        lru=_one(b, full.lru),
        lru_params=params.lru,
        expiry=_one(b, full.expiry),
        expiry_params=params.expiry,
    )


def begin_full(world: World, params: FullParams, state: FleetState, b: int, seed: int) -> None:
    """Give an empty fleet of the full loop its nodes; the loop's BEGIN does the rest.

    Parameters
    ----------
    world : World
        The compiled scenario.
    params : FullParams
        Of the same scenario.
    state : FleetState
        Empty, with ``tier_wait_s`` set; changed in place.
    b : int
        Which fleet.
    seed : int
        Seed of the episode.
    """
    full = state.full
    assert full is not None
    nodes = write_nodes(world, state, b, seed)
    count = len(nodes.x_km)
    set_keys(full, b, seed)
    draw_phases(params.expiry, full.expiry, b, seed)
    full.node_class[b, :count] = nodes.node_class
    state.node_work[b, :count, NODE_CLASS] = nodes.node_class
    if full.engine.state.size:
        full.engine.state[b, :count, CLASS] = nodes.node_class
    rows = np.arange(count)
    if params.life.lru:
        # Nothing can be moved: no other profile fits.
        state.slots[b][state.profile[b][:, None] != np.arange(world.num_profiles)] = 0
    else:
        rows = nodes.node_class * world.classes.num_holdings + nodes.profile
        full.holders[b] = np.bincount(rows, minlength=full.holders.shape[1])
    state.holding[b, :count] = rows
    if params.origin.exists:
        origin = world.max_nodes
        full.node_class[b, origin] = len(world.classes.share)
        state.node_work[b, origin, NODE_CLASS] = len(world.classes.share)
        state.node_work[b, origin, SLOTS] = params.origin.slots
        state.node_work[b, origin, REQUEST_S_BITS] = np.float64(params.origin.request_s).view(
            np.int64
        )
        state.sites[b, origin, SITE_X_KM] = np.inf
        state.sites[b, origin, SITE_BITS] = np.int64(origin).view(np.float64)
