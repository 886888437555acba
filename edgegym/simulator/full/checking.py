"""Whether the full loop's part of a state may be put into a fleet: its sizes and its indices."""

from typing import Any

import numpy as np

from edgegym.simulator.full import columns, engine_data, flows, lru_data, routing_columns
from edgegym.simulator.full.allocate import FullState
from edgegym.simulator.full.engine import FINISHED
from edgegym.simulator.full.marks import NUM_LINKS
from edgegym.simulator.tree import named_arrays

# Axis 1 of these grows with the requests in the system, or with those of a stream block.
_BY_RECORD = ("tasks.real", "tasks.num", "dues.time_s", "dues.heap", "dues.place")
_BY_PROMPT = ("engine.request", "engine.link")
_BY_REQUEST = ("lengths.input_tokens", "lengths.output_tokens")
_BY_FLOW = ("link.flow", "link.flow_real", "link.listed")
_BY_LEAF = ("lru.older", "lru.newer", "lru.leaf_bytes")
# A fleet has its own log.
_BY_LOG = ("log.real", "log.num")
_GROWING = _BY_RECORD + _BY_PROMPT + _BY_REQUEST + _BY_FLOW + _BY_LEAF + _BY_LOG

_MOST = np.iinfo(np.int64).max


def check_full_arrays(mine: FullState, state: FullState, records: int, requests: int) -> None:
    """Refuse arrays of another type or size; those that grow may be longer than the fleet's own.

    Parameters
    ----------
    mine, state : FullState
        The fleet's own state, and the one to put in its place.
    records, requests : int
        Request records, and requests of a stream block, that the new state has room for.

    Raises
    ------
    ValueError
        If one is no array, or has another type or shape.
    """
    found = dict(named_arrays(state))
    for name, ours in named_arrays(mine):
        theirs = found[name]
        if not isinstance(theirs, np.ndarray) or theirs.dtype != ours.dtype:
            kind = getattr(theirs, "dtype", type(theirs).__name__)
            raise ValueError(f"state.full.{name} is {kind}: must be an array of {ours.dtype}")
        shape, wanted = theirs.shape, ours.shape
        if name in _GROWING:
            fits = len(shape) == len(wanted) and shape[0] == 1 and shape[2:] == wanted[2:]
        else:
            fits = shape == wanted
        if not fits:
            raise ValueError(f"state.full.{name} has shape {shape}: this fleet's is {wanted}")
    leaves = state.lru.leaf_bytes.shape[1]
    for names, length in (
        (_BY_RECORD, records),
        (_BY_PROMPT, records if mine.engine.request.shape[1] else 0),
        (_BY_REQUEST, requests),
        (_BY_FLOW, state.link.listed.shape[1]),
        (_BY_LEAF[:2], state.lru.present.size + leaves),
    ):
        for name in names:
            if found[name].shape[1] != length:
                raise ValueError(
                    f"state.full.{name} has length {found[name].shape[1]}: must be {length}"
                )


def check_full_indices(state: FullState, records: int, num_classes: int) -> None:
    """Refuse numbers that kernels would follow out of their arrays.

    Parameters
    ----------
    state : FullState
        With arrays of the right types and sizes.
    records : int
        Request records that it has room for.
    num_classes : int
        Hardware classes, C.

    Raises
    ------
    ValueError
        If a number is out of its range.
    """
    _check_requests(state, records)
    _check_stations(state, num_classes)
    _check_engine(state, records, num_classes)
    _check_link(state, records)
    _check_lru(state)


def _check(name: str, values: Any, low: int, high: int) -> None:
    if values.size and not (values.min() >= low and values.max() <= high):
        raise ValueError(
            f"state.full.{name} has {values.min()} to {values.max()}: must be {low} to {high}"
        )


def _check_requests(state: FullState, records: int) -> None:
    num, depth = state.tasks.num, state.counts.hit_vertices.shape[1] - 1
    stations, nodes = state.node_class.shape[1], state.node_flows.num.shape[1]
    for name, low, high in (
        ("INPUT_TOKENS", 0, _MOST),
        ("OUTPUT_TOKENS", 0, _MOST),
        ("FLOW", -1, state.link.listed.shape[1] - 1),
        ("HIT_DEPTH", 0, depth),
        ("KEPT_DEPTH", 0, depth),
        ("NEAREST", -1, nodes - 1),
        ("RUNNER_UP", -1, stations - 1),
        ("FETCH_ORDER", columns.BY_CONTROLLER, columns.FETCH_ANYWAY),
    ):
        _check(f"tasks.num[{name}]", num[..., getattr(columns, name)], low, high)
    for name, values in (("heap", state.dues.heap), ("place", state.dues.place)):
        _check(f"dues.{name}", values, 0, records - 1)
    scalars = state.scalars
    for name, low, high in (
        ("FIRST_REQUEST", 0, _MOST),
        ("FORCED_STATION", columns.BY_ROUTER, stations - 1),
        ("FORCED_FETCH", columns.BY_CONTROLLER, columns.FETCH_ANYWAY),
        ("ASKS", 0, 1),
    ):
        _check(f"scalars[{name}]", scalars[:, getattr(columns, name)], low, high)
    _check("log.used", state.log.used, 0, 0)


def _check_stations(state: FullState, num_classes: int) -> None:
    stations, flow_room = state.node_class.shape[1], state.link.listed.shape[1]
    _check("node_class", state.node_class, 0, num_classes)
    held = state.node_flows.num
    _check("node_flows.num[NODE_FLOW]", held[..., columns.NODE_FLOW], -1, flow_room - 1)
    kinds = held[..., columns.NODE_FLOW_KIND]
    _check("node_flows.num[NODE_FLOW_KIND]", kinds, 0, flows.NUM_FLOW_KINDS - 1)
    _check("faults.num", state.faults.num, 0, _MOST)
    _check("expiry.version", state.expiry.version, 0, _MOST)
    routing = state.routing
    tier = routing.station_sums[..., routing_columns.NOTED_TIER]
    _check("routing.station_sums[NOTED_TIER]", tier, -1, routing.tier_sums.shape[1] - 1)
    _check("routing.failed_count", routing.failed_count, 0, routing.failed.shape[1])
    for name, values in (("heap", state.timers.heap), ("place", state.timers.place)):
        _check(f"timers.{name}", values, 0, stations - 1)


def _check_engine(state: FullState, records: int, num_classes: int) -> None:
    engine = state.engine
    for name, low, high in (
        ("CLASS", 0, num_classes),
        ("FIRST_PROMPT", -1, records - 1),
        ("LAST_PROMPT", -1, records - 1),
        ("ROOT", -1, records - 1),
        ("PROMPTS", 0, records),
        ("DECODING", 0, records),
        ("RESTORING", 0, records),
        ("DUE", 0, FINISHED),
    ):
        _check(f"engine.state[{name}]", engine.state[..., getattr(engine_data, name)], low, high)
    # Those of the heap, but for the rank, and the queue of prompts.
    heap = np.delete(engine.link, NUM_LINKS - 1, axis=2)
    _check("engine.link", heap, -1, records - 1)


def _check_link(state: FullState, records: int) -> None:
    link, stations = state.link, state.node_class.shape[1]
    room, groups = link.listed.shape[1], link.group.shape[1]
    for name, low, high in (
        ("FLOWS", 0, room),
        ("FREE_FLOW", -1, room - 1),
        ("USED_FLOWS", 0, room),
        ("NUM_FLOWS", room, room),
        ("GROUPS", 0, groups),
        ("LINK_UP", 0, 1),
        ("FIRST_GROUP", 0, groups - 1),
    ):
        _check(f"link.num[{name}]", link.num[:, getattr(flows, name)], low, high)
    for name, low, high in (
        ("FLOW_KIND", -1, flows.NUM_FLOW_KINDS - 1),
        ("FLOW_STATION", -1, stations - 1),
        ("FLOW_SOURCE", -1, stations - 1),
        ("FLOW_ITEM", -1, max(records, stations) - 1),
        ("FLOW_PLACE", -1, room - 1),
        ("FIRST_CHILD", -1, room - 1),
        ("NEXT_SIBLING", -1, room - 1),
        ("BEFORE", -1, room - 1),
    ):
        _check(f"link.flow[{name}]", link.flow[..., getattr(flows, name)], low, high)
    _check("link.listed", link.listed, 0, room - 1)
    for name, low, high in (
        ("GROUP_STATION", -1, groups - 1),
        ("GROUP_ROOT", -1, room - 1),
        ("GROUP_FLOWS", -1, room),
    ):
        _check(f"link.group[{name}]", link.group[..., getattr(flows, name)], low, high)
    _check("link.group_of", link.group_of, -1, groups - 1)


def _check_lru(state: FullState) -> None:
    lru = state.lru
    leaves, pieces = lru.leaf_bytes.shape[1], lru.older.shape[1]
    _check("lru.leaf_bytes", lru.leaf_bytes, 0, _MOST)
    _check("lru.older", lru.older, -1, pieces - 1)
    _check("lru.newer", lru.newer, -1, pieces - 1)
    for name, low, high in (
        ("FREE_LEAF", -1, leaves - 1),
        ("USED_LEAVES", 0, leaves),
        ("KEPT_LEAVES", 0, leaves),
    ):
        _check(f"lru.num[{name}]", lru.num[:, getattr(lru_data, name)], low, high)
    used = lru.stations[..., lru_data.USED_BYTES]
    _check("lru.stations[USED_BYTES]", used, 0, _MOST)
    pinned = lru.stations[..., lru_data.PINNED_BYTES]
    _check("lru.stations[PINNED_BYTES]", pinned, 0, int(used.max(initial=0)))
    for name in ("OLDEST", "NEWEST"):
        values = lru.stations[..., getattr(lru_data, name)]
        _check(f"lru.stations[{name}]", values, -1, pieces - 1)
