"""What the full loop's kernels see of one fleet."""

from typing import NamedTuple

from edgegym.simulator.columns import NUM_NODE_WORK
from edgegym.simulator.full.counts import Counts
from edgegym.simulator.full.groups import (
    FaultParams,
    Faults,
    Lengths,
    LifeParams,
    OriginParams,
    Tasks,
)
from edgegym.simulator.full.log import Log
from edgegym.simulator.lane import (
    Area,
    Core,
    Records,
    Requests,
    Transfers,
    Types,
    Window,
)
from edgegym.simulator.state import Bools, Floats, Ints
from edgegym.world.classes import ClassTables


class Desk(NamedTuple):
    """Where requests are counted and logged."""

    types: Types
    records: Records
    tasks: Tasks
    window: Window
    counts: Counts
    log: Log
    coefficients: Floats  # [C + 1, 4] prefill of each class, the origin last
    station_class: Ints  # [M]
    work: Ints  # [M, NUM_NODE_WORK]
    origin: int  # station of the origin, -1 without one

    COLUMNS = (("work", NUM_NODE_WORK), ("coefficients", 4))


class Catalogue(NamedTuple):
    """What stations hold, and what follows from it."""

    profile: Ints  # [N]
    slots: Ints  # [N, S]
    up: Bools  # [N]
    position_km: Floats  # [N] of the x axis
    tier_wait_s: Floats  # [S]
    advertises_tier: bool
    live: bool  # what nodes hold is advertised without delay
    classes: ClassTables


class FullLane(NamedTuple):
    """One fleet."""

    core: Core
    desk: Desk
    catalogue: Catalogue
    transfers: Transfers
    area: Area
    requests: Requests
    lengths: Lengths
    nearest_demand: Ints  # [N, F]
    now_s: Floats  # [1]
    scalars: Ints  # [NUM_FULL_SCALARS]
    faults: Faults
    life: LifeParams
    origin: OriginParams
    fault_params: FaultParams
