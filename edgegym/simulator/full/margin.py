"""The safety margin ψ that a router adds to the predicted cost of a node.

ψ = deviations · σ̂ + moving_s (while the node receives state) + burst_s · max(0, D − 1), where

* σ̂² is the average of (realised − predicted)² of the requests that the node gave a first token,
* D is the dispersion index of the arrivals: the squared coefficient of variation of the times
  between requests sent to the node, ⟨gap²⟩ / ⟨gap⟩² − 1. It is 1 for a Poisson stream, 0 for a
  regular one, larger for bursts.

All averages are weighted: a weight is 1 when it is new and falls with age as e^(−age/τ), τ =
``telemetry.ewma_s``. σ̂² and D − 1 fade likewise after the last observation, or else a node once
shunned would never be measured again.
"""

import math

from edgegym.simulator.compiling import helper
from edgegym.simulator.full.routing_columns import (
    ERROR_AT_S,
    ERROR_SQUARES,
    ERROR_WEIGHT,
    GAP_SQUARES,
    GAP_SUM_S,
    GAP_WEIGHT,
    SENT_AT_S,
)
from edgegym.simulator.full.routing_groups import Routing


@helper
def note_error(routing: Routing, station: int, error_s: float, now: float) -> None:
    """Take note of a first token that came so much later than predicted (negative: earlier)."""
    params, past = routing.params.margin, routing.state.station_past
    if params.deviations > 0.0:
        fade = math.exp((past[station, ERROR_AT_S] - now) / params.ewma_s)
        past[station, ERROR_SQUARES] = past[station, ERROR_SQUARES] * fade + error_s * error_s
        past[station, ERROR_WEIGHT] = past[station, ERROR_WEIGHT] * fade + 1.0
        past[station, ERROR_AT_S] = now


@helper
def note_gap(routing: Routing, station: int, now: float) -> None:
    """Take note of a request sent to a station."""
    params, past = routing.params.margin, routing.state.station_past
    if params.burst_s > 0.0:
        gap_s = now - past[station, SENT_AT_S]
        if gap_s < math.inf:
            fade = math.exp(-gap_s / params.ewma_s)
            past[station, GAP_SUM_S] = past[station, GAP_SUM_S] * fade + gap_s
            past[station, GAP_SQUARES] = past[station, GAP_SQUARES] * fade + gap_s * gap_s
            past[station, GAP_WEIGHT] = past[station, GAP_WEIGHT] * fade + 1.0
        past[station, SENT_AT_S] = now


@helper
def margin_s(routing: Routing, station: int, now: float) -> float:
    """Return the margin of a node's predicted cost."""
    params, past = routing.params.margin, routing.state.station_past
    margin = 0.0
    if params.deviations > 0.0 and past[station, ERROR_WEIGHT] > 0.0:
        fade = math.exp((past[station, ERROR_AT_S] - now) / params.ewma_s)
        variance = fade * past[station, ERROR_SQUARES] / past[station, ERROR_WEIGHT]
        margin += params.deviations * math.sqrt(variance)
    if params.moving_s > 0.0 and station != routing.origin_station and routing.receiving[station]:
        margin += params.moving_s
    if params.burst_s > 0.0 and past[station, GAP_SUM_S] > 0.0:
        mean = past[station, GAP_SUM_S] / past[station, GAP_WEIGHT]
        dispersion = past[station, GAP_SQUARES] / past[station, GAP_WEIGHT] / (mean * mean) - 1.0
        fade = math.exp((past[station, SENT_AT_S] - now) / params.ewma_s)
        margin += params.burst_s * fade * max(0.0, dispersion - 1.0)
    return margin
