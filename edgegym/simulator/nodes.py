"""What a node does: take requests from its queue and let them go."""

from edgegym.jit import kernel
from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.events import SLOT_END, push_event
from edgegym.simulator.service import leave_slot, take_slot
from edgegym.simulator.state import (
    HEAD,
    JOIN_S,
    NEXT,
    QUEUED,
    SLOTS,
    STATUS,
    TAIL,
    Lane,
    Nodes,
    Records,
)
from edgegym.simulator.telemetry import note_left, note_wait


@kernel(forceinline=True)
def _append(nodes: Nodes, records: Records, node: int, record: int) -> None:
    records.index[record, STATUS] = QUEUED
    records.index[record, NEXT] = -1
    if nodes.queued[node] == 0:
        nodes.work[node, HEAD] = record
    else:
        records.index[nodes.work[node, TAIL], NEXT] = record
    nodes.work[node, TAIL] = record
    nodes.queued[node] += 1


@kernel(forceinline=True)
def _take_first(nodes: Nodes, records: Records, node: int) -> int:
    record = nodes.work[node, HEAD]
    nodes.work[node, HEAD] = records.index[record, NEXT]
    nodes.queued[node] -= 1
    return record


@kernel(forceinline=True)
def _start(lane: Lane, node: int, record: int, now: float) -> float:
    """Start a request on a free slot (the caller counts it as active); return its slot end."""
    end = take_slot(lane.types, lane.nodes, lane.records, node, record, now)
    note_wait(lane.signals, lane.nodes, node, now, now - lane.records.time[record, JOIN_S])
    return end


@kernel(forceinline=True)
def join_node(lane: Lane, node: int, record: int, now: float) -> float:
    """Let a request reach its node; return when its slot ends, or −1 when it has to queue."""
    nodes = lane.nodes
    nodes.in_flight[node] -= 1
    lane.records.time[record, JOIN_S] = now
    if nodes.active[node] >= nodes.work[node, SLOTS]:
        _append(nodes, lane.records, node, record)
        return -1.0
    accrue_slots(nodes.active, nodes.work, node, now)
    nodes.active[node] += 1
    return _start(lane, node, record, now)


@kernel(forceinline=True)
def end_slot(
    lane: Lane, node: int, record: int, now: float, until: float
) -> tuple[float, int]:
    """Let a request leave its slot and the first in the queue take it.

    Returns the slot end and the record of that one; −1 and −1 when nobody takes the slot.
    """
    nodes = lane.nodes
    leave_slot(lane.types, lane.records, lane.window, nodes.work, record, until)
    note_left(lane.signals, nodes, node)
    if nodes.queued[node] > 0 and nodes.active[node] <= nodes.work[node, SLOTS]:
        following = _take_first(nodes, lane.records, node)
        return _start(lane, node, following, now), following
    accrue_slots(nodes.active, nodes.work, node, now)
    nodes.active[node] -= 1
    return -1.0, -1


@kernel(forceinline=True)
def fill_slots(lane: Lane, node: int, now: float) -> None:
    """Start queued requests while slots are free."""
    nodes = lane.nodes
    accrue_slots(nodes.active, nodes.work, node, now)
    while nodes.queued[node] > 0 and nodes.active[node] < nodes.work[node, SLOTS]:
        record = _take_first(nodes, lane.records, node)
        nodes.active[node] += 1
        push_event(lane.heap, _start(lane, node, record, now), SLOT_END, record)
