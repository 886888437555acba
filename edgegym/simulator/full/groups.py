"""What the full loop has besides the lane of the fast one: parameters and state, in small groups.

Arrays of a state have a leading axis of fleets, ``[B, …]``, which a lane is without.
"""

from typing import NamedTuple

from edgegym.simulator.full.columns import NUM_FAULT, NUM_NODE_FLOW, NUM_TASK_NUMS, NUM_TASK_REALS
from edgegym.simulator.state import Floats, Ints


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


class NodeFlows(NamedTuple):
    """The flow that each node waits for."""

    num: Ints  # [N, NUM_NODE_FLOW]

    COLUMNS = (("num", NUM_NODE_FLOW),)


class Faults(NamedTuple):
    """What is down, and why."""

    num: Ints  # [N + 2, NUM_FAULT] nodes, origin, link

    COLUMNS = (("num", NUM_FAULT),)


class FaultParams(NamedTuple):
    """Random failures; infinite mean times where nothing fails by itself."""

    mean_up_s: Floats  # [3] node, origin, link
    mean_down_s: Floats  # [3]
    outages: Floats  # [n, 3] component, begin_s, end_s
    empty_profile: int  # of a node that comes back, -1 where each keeps its own


class OriginParams(NamedTuple):
    """The distant data centre."""

    exists: bool
    rtt_s: float
    handshake_s: float  # of a request that opens a connection
    new_connection_share: float
    slots: int
    tpot_s: float
    affinity: float  # share of requests that reach the replica with their prefix
    output_cap_tokens: int
    path_tokens: Floats  # [Q] what a replica that holds the type's prefix spares
    request_s: float  # mean time between two requests that leave, with all its slots in use


class LifeParams(NamedTuple):
    """The life of a request."""

    service_kind: int  # index into SERVICE_KINDS
    has_engine: bool
    lru: bool
    num_nodes: int  # most nodes, N; the origin's row
    coefficients: Floats  # [C + 1, 4] prefill of each class, the origin last
    occupancy_s: Floats  # [C, Q] decode, with the type's output length
    by_tokens: Ints  # [C] 1 where decode takes as long as the output is
    token_s: Floats  # [C, most_active + 1] per output token and active sequences
    most_active: int
    catalogue_s: float  # 0: what stations hold is advertised without delay
    most_dispatches: int  # a request that is sent again more often is rejected


class Holdings(NamedTuple):
    """What the rows of stations are worth; R rows are C · H, or M with radix caches."""

    hit_tokens: Floats  # [R, Q] really held; below 0 where a type can't be served
    seen_tokens: Floats  # [R, Q] as advertised: the same array, or its copy of the last time
    holders: Ints  # [C * H] up nodes that hold the row
    hit_depth: Ints  # [C * H, Q] vertices of the type's path
    path_length: Ints  # [Q]
    path_tokens: Ints  # [Q]
    node_class: Ints  # [M] C for the origin
    row_service_rate: Floats  # [C * H] 1/s
    empty_row: Ints  # [C]
    missing_bytes: Ints  # [H, S]
    bytes_per_token: Ints  # [C]
    num_holdings: int  # H
    num_types: int  # Q
