"""How much of a route's latency an edge can remove."""

import math
from dataclasses import dataclass

from edgegym.world.network import checked_number

_LONGEST_S = 1e6
_MOST_TOKENS = 1e9
_MOST_ROUND_TRIPS = 100.0


@dataclass(frozen=True, kw_only=True)
class Serving:
    """How a model is served at one place.

    Parameters
    ----------
    first_token_s : float
        Queue plus prefill: what passes there until the first token, seconds.
    tpot_s : float
        Time for each further output token, seconds.

    Raises
    ------
    ValueError
        If a number is negative or not finite.
    """

    first_token_s: float
    tpot_s: float

    def __post_init__(self) -> None:
        checked_number("first_token_s", self.first_token_s, 0.0, _LONGEST_S)
        checked_number("tpot_s", self.tpot_s, 0.0, _LONGEST_S)


@dataclass(frozen=True, kw_only=True)
class RouteLatency:
    """Mean latency of a route for one user-visible answer."""

    network_s: float
    """Round trips, handshakes of new connections included."""
    ttft_s: float
    """Time to first token: round trips, queue and prefill."""
    total_s: float
    """Until the last token; tokens stream, so distance delays them once and not each."""


@dataclass(frozen=True, kw_only=True)
class LatencySaving:
    """What serving at the edge removes, compared with one way to the origin.

    Negative savings mean that the edge is slower.
    """

    ttft_saving_s: float
    """Time to first token that the edge removes."""
    ttft_saving_share: float
    """The same over the TTFT of the other way; 0 if that takes no time."""
    total_saving_s: float
    """Total time that the edge removes."""
    total_saving_share: float
    """The same over the total of the other way; 0 if that takes no time."""
    break_even_tokens: float
    """Output length at which both take the same in all. Shorter answers are faster where the first
    token is, longer ones where decoding is. Infinite if no length of 1 or more ties."""


@dataclass(frozen=True, kw_only=True)
class EdgeAdvantage:
    """A route served at the edge beside the ways to the origin."""

    edge: RouteLatency
    """The model runs at the edge."""
    origin: RouteLatency
    """The user connects to the origin."""
    gateway: RouteLatency | None
    """The edge ends the user's connection and forwards over a warm one; None without backbone."""
    over_origin: LatencySaving
    """Edge against the direct way."""
    over_gateway: LatencySaving | None
    """Edge against the gateway: what the GPU at the edge adds to what a gateway already gives."""


def edge_advantage(
    *,
    edge: Serving,
    origin: Serving,
    output_tokens: float,
    edge_rtt_s: float,
    origin_rtt_s: float,
    backbone_rtt_s: float | None = None,
    handshake_round_trips: float = 2.0,
    new_connection_share: float = 0.0,
) -> EdgeAdvantage:
    """Return how much of a route's TTFT and total latency an edge can remove.

    A request takes one round trip, and a new connection its handshakes before it (2: one for TCP,
    one for TLS 1.3). So with h handshakes on a share c of the requests::

        edge      (1 + c h) RTT_edge                   + first token at the edge
        gateway   (1 + c h) RTT_edge  + RTT_backbone   + first token at the origin
        origin    (1 + c h) RTT_origin                 + first token at the origin

    and the total is the TTFT + (output tokens - 1) · TPOT of the place that decodes.

    Parameters
    ----------
    edge, origin : Serving
        Queue plus prefill and TPOT at either place.
    output_tokens : float
        Mean output length, at least 1.
    edge_rtt_s, origin_rtt_s : float
        Round-trip times of the user.
    backbone_rtt_s : float, optional
        Round-trip time from edge to origin on a connection that stays open. Without it there is no
        gateway.
    handshake_round_trips : float, optional
        Round trips before the first request of a new connection.
    new_connection_share : float, optional
        Share of the requests that come on a new connection.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    for name, value in (("edge", edge), ("origin", origin)):
        if not isinstance(value, Serving):
            raise ValueError(f"{name} is {value!r}: must be a Serving")
    tokens = checked_number("output_tokens", output_tokens, 1.0, _MOST_TOKENS)
    to_edge = checked_number("edge_rtt_s", edge_rtt_s, 0.0, _LONGEST_S)
    to_origin = checked_number("origin_rtt_s", origin_rtt_s, 0.0, _LONGEST_S)
    handshakes = checked_number(
        "handshake_round_trips", handshake_round_trips, 0.0, _MOST_ROUND_TRIPS
    )
    new = checked_number("new_connection_share", new_connection_share, 0.0, 1.0)
    trips = 1.0 + new * handshakes
    at_edge = _latency(trips * to_edge, edge, tokens)
    direct = _latency(trips * to_origin, origin, tokens)
    gateway = over_gateway = None
    if backbone_rtt_s is not None:
        backbone = checked_number("backbone_rtt_s", backbone_rtt_s, 0.0, _LONGEST_S)
        gateway = _latency(trips * to_edge + backbone, origin, tokens)
        over_gateway = _saving(at_edge, gateway, edge.tpot_s - origin.tpot_s)
    return EdgeAdvantage(
        edge=at_edge,
        origin=direct,
        gateway=gateway,
        over_origin=_saving(at_edge, direct, edge.tpot_s - origin.tpot_s),
        over_gateway=over_gateway,
    )


def _latency(network_s: float, serving: Serving, tokens: float) -> RouteLatency:
    ttft_s = network_s + serving.first_token_s
    return RouteLatency(
        network_s=network_s, ttft_s=ttft_s, total_s=ttft_s + (tokens - 1.0) * serving.tpot_s
    )


def _saving(edge: RouteLatency, other: RouteLatency, slower_s: float) -> LatencySaving:
    ttft_saving_s = other.ttft_s - edge.ttft_s
    total_saving_s = other.total_s - edge.total_s
    return LatencySaving(
        ttft_saving_s=ttft_saving_s,
        ttft_saving_share=ttft_saving_s / other.ttft_s if other.ttft_s else 0.0,
        total_saving_s=total_saving_s,
        total_saving_share=total_saving_s / other.total_s if other.total_s else 0.0,
        break_even_tokens=_break_even(ttft_saving_s, slower_s),
    )


def _break_even(ttft_saving_s: float, slower_s: float) -> float:
    if ttft_saving_s == 0.0:
        return 1.0
    if ttft_saving_s * slower_s <= 0.0:
        return math.inf
    return 1.0 + ttft_saving_s / slower_s
