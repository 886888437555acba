"""What the full loop's kernels see of one fleet."""

from typing import NamedTuple

from edgegym.simulator.columns import NUM_NODE_WORK
from edgegym.simulator.full.counts import Counts
from edgegym.simulator.full.engine_data import Engine, EngineParams
from edgegym.simulator.full.expiry import ExpiryParams, ExpiryState
from edgegym.simulator.full.fetch import FetchParams
from edgegym.simulator.full.flows import LinkState
from edgegym.simulator.full.groups import (
    FaultParams,
    Faults,
    Holdings,
    Lengths,
    LifeParams,
    NodeFlows,
    OriginParams,
    Tasks,
)
from edgegym.simulator.full.log import Log
from edgegym.simulator.full.lru_data import LruParams, LruState
from edgegym.simulator.full.routing_groups import Routing
from edgegym.simulator.full.sharing import LinkParams
from edgegym.simulator.full.timers import Timers
from edgegym.simulator.lane import Area, Core, Records, Requests, Transfers, Types, Window
from edgegym.simulator.state import Bools, Floats, Ints


class Desk(NamedTuple):
    """Where requests are counted and logged."""

    types: Types
    records: Records
    tasks: Tasks
    window: Window
    counts: Counts
    log: Log
    dues: Timers  # [P] when each request is next counted, in a fleet that asks
    coefficients: Floats  # [C + 1, 4] prefill of each class, the origin last
    work: Ints  # [M, NUM_NODE_WORK]
    origin: int  # station of the origin, -1 without one
    has_engine: bool  # whose nodes count the time of their prefill servers themselves
    stations: int  # M

    COLUMNS = (("work", NUM_NODE_WORK), ("coefficients", 4))


class Catalogue(NamedTuple):
    """What nodes are to hold, and what follows from it."""

    profile: Ints  # [N]
    slots: Ints  # [N, S]
    up: Bools  # [N]
    node_x_km: Floats  # [N]
    tier_wait_s: Floats  # [S]
    advertises_tier: bool
    live: bool  # what nodes hold is advertised without delay


class FullLane(NamedTuple):
    """One fleet."""

    core: Core
    desk: Desk
    catalogue: Catalogue
    holdings: Holdings
    transfers: Transfers
    area: Area
    requests: Requests
    lengths: Lengths
    nearest_demand: Ints  # [N, F]
    now_s: Floats  # [1]
    scalars: Ints  # [NUM_FULL_SCALARS]
    life: LifeParams
    origin: OriginParams
    node_flows: NodeFlows
    faults: Faults
    fault_params: FaultParams
    routing: Routing
    timers: Timers
    engine: Engine
    engine_params: EngineParams
    link: LinkState
    link_params: LinkParams
    fetch_params: FetchParams
    lru: LruState
    lru_params: LruParams
    expiry: ExpiryState
    expiry_params: ExpiryParams
