"""What a fleet of the full loop begins with, once it has its nodes."""

import numpy as np

from edgegym.simulator.catalogue import advertise_holding
from edgegym.simulator.compiling import helper
from edgegym.simulator.events import CATALOGUE, EXPIRY, FAULT, TELEMETRY, push_event
from edgegym.simulator.full.admission import note_load
from edgegym.simulator.full.expiry import next_change_s
from edgegym.simulator.full.faults import (
    CODE_SHIFT,
    OUTAGE_BEGINS,
    OUTAGE_ENDS,
    component_kind,
    next_toggle_s,
)
from edgegym.simulator.full.lane import FullLane
from edgegym.simulator.full.stations import refresh_node


@helper
def begin(fleet: FullLane) -> None:
    """Bring what follows from the nodes up to date, and schedule what comes by itself."""
    core, queue = fleet.core, fleet.core.queue
    for node in range(fleet.area.num_nodes):
        refresh_node(fleet, node)
        advertise_holding(core.nodes, node)
        note_load(fleet.routing, node, 0.0)
    if core.signals.period_s > 0.0:
        push_event(queue, core.signals.period_s, TELEMETRY, 1)
    if fleet.life.catalogue_s > 0.0:
        push_event(queue, fleet.life.catalogue_s, CATALOGUE, 1)
    for vertex in range(len(fleet.expiry_params.lifetime_s)):
        push_event(queue, next_change_s(fleet.expiry_params, fleet.expiry, vertex), EXPIRY, vertex)
    for component in range(fleet.life.num_nodes + 2):
        exists = component >= fleet.life.num_nodes or component < fleet.area.num_nodes
        if exists and fleet.fault_params.mean_up_s[component_kind(fleet, component)] < np.inf:
            push_event(queue, next_toggle_s(fleet, component), FAULT, component)
    outages = fleet.fault_params.outages
    for outage in range(len(outages)):
        component = int(outages[outage, 0])
        if fleet.area.num_nodes <= component < fleet.life.num_nodes:
            continue  # this episode has fewer nodes
        begins, ends = OUTAGE_BEGINS << CODE_SHIFT, OUTAGE_ENDS << CODE_SHIFT
        push_event(queue, outages[outage, 1], FAULT, component + begins)
        push_event(queue, outages[outage, 2], FAULT, component + ends)
