"""What the router knows of a station: advertised hit, wait, predicted time to the first token."""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import (
    HOLDS_SHIFT,
    NODE_MASK,
    PLACE,
    SITE_BITS,
    SITE_WAIT_S,
    SITE_X_KM,
    SITE_Y_KM,
)
from edgegym.simulator.compiling import inlined
from edgegym.simulator.full.columns import DOWN
from edgegym.simulator.full.fetch import JOINT, whole_path_hit
from edgegym.simulator.full.joint import joint_fetching
from edgegym.simulator.full.random import uniform_of
from edgegym.simulator.full.routing_groups import Ask, Routing
from edgegym.simulator.full.service import prefill_seconds
from edgegym.simulator.lane import Area
from edgegym.simulator.search import axis_distance_km, radio_beyond_base_s

# Stands for the width of a region that does not wrap; finite, so that inf − inf never arises.
_NO_WRAP_KM = 1e300

# Numbers of a request's random draws from the origin's key.
DRAW_OF_CONNECTION = 0
DRAW_OF_REPLICA = 1


class Sight(NamedTuple):
    """A node as the router sees it for one request."""

    hit_tokens: float  # below 0: can't serve the request
    radio_s: float  # beyond the base latency; inf where the node is down
    prefill_s: float
    wait_s: float
    fetch_s: float  # what a fetch changes in the time to the first token, at most 0
    imposed_s: float  # and in that of others


@inlined
def node_at(area: Area, place: int) -> int:
    """Return the node at a place among the sites."""
    return int(np.float64(area.sites[place, SITE_BITS]).view(np.int64)) & NODE_MASK


@inlined
def squared_km2(area: Area, place: int, x: float, y: float) -> float:
    """Return the squared distance to the node at a place; inf where it is down."""
    width = area.width_km if area.periodic else _NO_WRAP_KM
    height = area.height_km if area.periodic else _NO_WRAP_KM
    dx = axis_distance_km(area.sites[place, SITE_X_KM], x, width)
    dy = axis_distance_km(area.sites[place, SITE_Y_KM], y, height)
    return dx * dx + dy * dy


@inlined
def advertised_hit(routing: Routing, ask: Ask, place: int) -> float:
    """Return the advertised hit of a request at a place, below 0 where it can't be served.

    The last token of a prompt is always computed.
    """
    row = int(np.float64(routing.area.sites[place, SITE_BITS]).view(np.int64)) >> HOLDS_SHIFT
    return min(routing.stock.hit_tokens[row, ask.type], ask.input_tokens - 1.0)


@inlined
def radio_s_of(routing: Routing, ask: Ask, squared: float) -> float:
    """Return the radio latency of a request beyond the base latency."""
    area = routing.area
    xi = area.radio_xi * routing.params.xi_factor[ask.type]
    return radio_beyond_base_s(xi, area.radio_alpha, squared)


@inlined
def sight_of(
    routing: Routing, ask: Ask, place: int, squared: float, hit: float, now: float
) -> Sight:
    """Return what the router sees of a node that can serve a request."""
    stock, sites = routing.stock, routing.area.sites
    bits = int(np.float64(sites[place, SITE_BITS]).view(np.int64))
    node_class, node = stock.row_class[bits >> HOLDS_SHIFT], bits & NODE_MASK
    prefill_s = prefill_seconds(stock.coefficients, node_class, ask.input_tokens, hit)
    radio_s, wait_s = radio_s_of(routing, ask, squared), sites[place, SITE_WAIT_S]
    if routing.reach.params.controller != JOINT:
        return Sight(hit, radio_s, prefill_s, wait_s, 0.0, 0.0)
    origin = routing.origin_station
    fetching = joint_fetching(
        routing.reach,
        origin >= 0 and routing.faults.num[origin, DOWN] == 0,
        stock.coefficients,
        node_class,
        node,
        ask.type,
        ask.input_tokens,
        hit,
        wait_s,
        prefill_s,
        routing.area.radio_base_s + radio_s,
        now,
    )
    return Sight(hit, radio_s, prefill_s, wait_s, fetching.fetch_s, fetching.imposed_s)


@inlined
def expected_s(sight: Sight) -> float:
    """Return the predicted time to the first token beyond the base latency, without margin."""
    return sight.radio_s + (sight.prefill_s + sight.wait_s) + sight.fetch_s


@inlined
def least_prefill_s(routing: Routing, ask: Ask) -> float:
    """Return the least prefill time of a request on any node that holds, or gets, all it could."""
    stock, least, fetched_hit = routing.stock, np.inf, 0.0
    if routing.reach.params.controller == JOINT:
        fetched_hit = whole_path_hit(routing.reach.params, ask.type)
    for node_class in range(routing.params.num_classes):
        hit = stock.most_hit_tokens[node_class, ask.type]
        if hit >= 0.0:
            hit = min(max(hit, fetched_hit), ask.input_tokens)
            prefill_s = prefill_seconds(stock.coefficients, node_class, ask.input_tokens, hit)
            least = min(least, prefill_s)
    return least


@inlined
def backbone_s(routing: Routing, ask: Ask) -> float:
    """Return the time from the nearest node to the origin, with handshakes on a new connection."""
    origin = routing.origin
    if origin.new_connection_share <= 0.0:
        return origin.rtt_s
    draw = uniform_of(ask.origin_key, ask.number, DRAW_OF_CONNECTION)
    opens = draw < origin.new_connection_share
    return origin.rtt_s + (origin.handshake_s if opens else 0.0)


@inlined
def origin_expected_s(routing: Routing, ask: Ask, nearest_squared_km2: float) -> float:
    """Return the predicted time to the first token at the origin, beyond the base latency.

    Radio to the nearest node, backbone, prefill in the mean over replicas, advertised wait.
    """
    origin, work, coefficients = routing.origin, routing.nodes.work, routing.stock.coefficients
    hit = min(origin.path_tokens[ask.type], ask.input_tokens - 1.0)
    row = routing.params.num_classes
    warm_s = prefill_seconds(coefficients, row, ask.input_tokens, hit)
    cold_s = prefill_seconds(coefficients, row, ask.input_tokens, 0.0)
    prefill_s = origin.affinity * warm_s + (1.0 - origin.affinity) * cold_s
    wait_s = routing.nodes.sites[work[routing.origin_station, PLACE], SITE_WAIT_S]
    radio_s = radio_s_of(routing, ask, nearest_squared_km2) + backbone_s(routing, ask)
    return radio_s + (prefill_s + wait_s)


@inlined
def way_s(routing: Routing, ask: Ask, station: int, distance_squared_km2: float) -> float:
    """Return how long a request is on its way to where it was routed."""
    radio_s = routing.area.radio_base_s + radio_s_of(routing, ask, distance_squared_km2)
    if station == routing.origin_station:
        return radio_s + backbone_s(routing, ask)
    return radio_s
