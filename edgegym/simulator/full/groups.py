"""What the full loop has besides the lane of the fast one: parameters and state, in small groups.

Arrays of a state have a leading axis of fleets, ``[B, …]``, which a lane is without.
"""

from typing import NamedTuple

from edgegym.simulator.full.columns import (
    NUM_FAULT,
    NUM_TASK_NUMS,
    NUM_TASK_REALS,
)
from edgegym.simulator.lane import Lane
from edgegym.simulator.state import Floats, Ints
from edgegym.world.classes import ClassTables


class Tasks(NamedTuple):
    """Requests, beside their records; columns as in :mod:`edgegym.simulator.full.columns`."""

    real: Floats  # [P, NUM_TASK_REALS]
    num: Ints  # [P, NUM_TASK_NUMS]

    COLUMNS = (("real", NUM_TASK_REALS), ("num", NUM_TASK_NUMS))


class Lengths(NamedTuple):
    """Lengths of the requests of the loaded block."""

    input_tokens: Ints  # [R]
    output_tokens: Ints  # [R]

    COLUMNS = ()


class Faults(NamedTuple):
    """What is down, and why."""

    num: Ints  # [N + 2, NUM_FAULT] nodes, origin, link

    COLUMNS = (("num", NUM_FAULT),)


class FaultParams(NamedTuple):
    """Random failures: mean times, ``inf`` for what never fails by itself."""

    mean_up_s: Floats  # [3] node, origin, link
    mean_down_s: Floats  # [3]
    outages: Floats  # [n, 3] component, begin_s, end_s
    refill: bool  # whether a node that comes back fetches what its profile holds


class OriginParams(NamedTuple):
    """The distant data centre."""

    exists: bool
    rtt_s: float
    handshake_s: float  # of a request that opens a connection
    new_connection_share: float
    slots: int
    prefill_linear_s: float
    prefill_quadratic_s: float
    tpot_s: float
    affinity: float
    output_cap_tokens: int
    path_tokens: Floats  # [Q] what a replica that holds the type's prefix spares
    request_s: float  # mean time between requests that leave all its slots


class LifeParams(NamedTuple):
    """The life of a request."""

    service_kind: int
    lru: bool
    num_nodes: int  # most nodes, N: the origin's row
