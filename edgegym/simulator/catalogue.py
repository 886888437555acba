"""What follows from a node's profile and from what it really holds; always live."""

from edgegym.simulator.compiling import helper
from edgegym.simulator.lane import Catalogue, Nodes
from edgegym.simulator.state import SECONDS_PER_REQUEST, SLOTS
from edgegym.simulator.telemetry import advertise_backlog


@helper
def refresh_node(catalogue: Catalogue, nodes: Nodes, backlog: bool, node: int) -> None:
    """Bring what follows from a node's profile and holding up to date."""
    holding, profile = nodes.holding[node], catalogue.profile[node]
    slots = catalogue.slots[node, profile]
    nodes.work[node, SLOTS] = slots
    nodes.rates[node, SECONDS_PER_REQUEST] = 1.0 / (slots * catalogue.slot_service_rate[holding])
    for request_type in range(catalogue.prefill_s.shape[1]):
        nodes.prefill_s[request_type, node] = catalogue.prefill_s[holding, request_type]
    if backlog:
        advertise_backlog(nodes.work, nodes.rates, nodes.advertised_wait_s, node)
    elif catalogue.advertises_tier:
        nodes.advertised_wait_s[node] = catalogue.tier_wait_s[profile]
