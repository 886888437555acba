"""What a node does: take requests from its queue and let them go."""

from edgegym.simulator.accounting import accrue_slots
from edgegym.simulator.columns import (
    HEAD,
    IN_SLOTS,
    JOIN_S,
    NEXT,
    ON_RADIO,
    QUEUED,
    SLOTS,
    STATUS,
    TAIL,
    WAITING,
)
from edgegym.simulator.compiling import inlined
from edgegym.simulator.events import SLOT_END, push_event, request_item
from edgegym.simulator.lane import Core, Nodes, Records
from edgegym.simulator.service import leave_slot, take_slot
from edgegym.simulator.telemetry import note_left, note_wait


@inlined
def append(nodes: Nodes, records: Records, node: int, record: int) -> None:
    """Put a request at the end of a node's queue."""
    records.info[record, STATUS] = QUEUED
    records.info[record, NEXT] = -1
    if nodes.work[node, WAITING] == 0:
        nodes.work[node, HEAD] = record
    else:
        records.info[nodes.work[node, TAIL], NEXT] = record
    nodes.work[node, TAIL] = record
    nodes.work[node, WAITING] += 1


@inlined
def take_first(nodes: Nodes, records: Records, node: int) -> int:
    """Take the first request out of a node's queue, which is not empty."""
    record = nodes.work[node, HEAD]
    nodes.work[node, HEAD] = records.info[record, NEXT]
    nodes.work[node, WAITING] -= 1
    return record


@inlined
def _start(core: Core, node: int, record: int, now: float) -> float:
    """Start a request on a free slot (the caller counts it as active); return its slot end."""
    end = take_slot(core.types, core.nodes, core.records, node, record, now)
    note_wait(core.signals, core.nodes, node, now, now - core.records.time[record, JOIN_S])
    return end


@inlined
def join_node(core: Core, node: int, record: int, now: float) -> float:
    """Let a request reach its node; return when its slot ends, or −1 when it has to queue."""
    nodes = core.nodes
    nodes.work[node, ON_RADIO] -= 1
    core.records.time[record, JOIN_S] = now
    if nodes.work[node, IN_SLOTS] >= nodes.work[node, SLOTS]:
        append(nodes, core.records, node, record)
        return -1.0
    accrue_slots(nodes.work, node, now)
    nodes.work[node, IN_SLOTS] += 1
    return _start(core, node, record, now)


@inlined
def end_slot(core: Core, node: int, record: int, now: float, until: float) -> tuple[float, int]:
    """Let a request leave its slot and the first in the queue take it.

    Returns the slot end and the record of that one; −1 and −1 when nobody takes the slot.
    """
    nodes = core.nodes
    leave_slot(core.types, core.records, core.window, nodes.work, record, until)
    note_left(core.signals, nodes, node)
    if nodes.work[node, WAITING] > 0 and nodes.work[node, IN_SLOTS] <= nodes.work[node, SLOTS]:
        following = take_first(nodes, core.records, node)
        return _start(core, node, following, now), following
    accrue_slots(nodes.work, node, now)
    nodes.work[node, IN_SLOTS] -= 1
    return -1.0, -1


@inlined
def fill_slots(core: Core, node: int, now: float) -> None:
    """Start queued requests while slots are free."""
    nodes = core.nodes
    accrue_slots(nodes.work, node, now)
    while nodes.work[node, WAITING] > 0 and nodes.work[node, IN_SLOTS] < nodes.work[node, SLOTS]:
        record = take_first(nodes, core.records, node)
        nodes.work[node, IN_SLOTS] += 1
        end = _start(core, node, record, now)
        push_event(core.queue, end, SLOT_END, request_item(node, record))
