"""What follows from a node's profile and from what it really holds; always live."""

from edgegym.simulator.compiling import helper
from edgegym.simulator.lane import Catalogue, Nodes
from edgegym.simulator.state import HOLDS, PLACE, SECONDS_PER_REQUEST, SITE_HOLDS, SITE_WAIT_S, SLOTS
from edgegym.simulator.telemetry import advertise_backlog


@helper
def refresh_node(catalogue: Catalogue, nodes: Nodes, backlog: bool, node: int) -> None:
    """Bring what follows from a node's profile and holding up to date."""
    holding, profile = nodes.work[node, HOLDS], catalogue.profile[node]
    slots = catalogue.slots[node, profile]
    nodes.work[node, SLOTS] = slots
    nodes.rates[node, SECONDS_PER_REQUEST] = 1.0 / (slots * catalogue.slot_service_rate[holding])
    place = nodes.work[node, PLACE]
    nodes.sites[place, SITE_HOLDS] = holding
    if backlog:
        advertise_backlog(nodes, node)
    elif catalogue.advertises_tier:
        nodes.sites[place, SITE_WAIT_S] = catalogue.tier_wait_s[profile]
