"""What the router believes of each node's wait.

Live (`period_s` = 0) it knows n = in flight + queued + active. Otherwise each node reports queued +
active at multiples of the period; with `predict_on_route` the router keeps what the report cannot
have seen (requests still in flight) and adds what it has sent since. The catalogue (profile, slots,
what is really held) is always live, unless the full loop gives it a period of its own.
"""

import math

import numpy as np

from edgegym.simulator.columns import (
    IN_SLOTS,
    MEASURED_AT_S,
    MEASURED_SUM_S,
    MEASURED_WEIGHT,
    ON_RADIO,
    PLACE,
    REPORTED,
    REQUEST_S_BITS,
    SITE_WAIT_S,
    SLOTS,
    WAITING,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.lane import Nodes, Signals


@inlined
def advertise_backlog(nodes: Nodes, node: int) -> None:
    """Advertise max(0, n − c + 1) / (c μ)."""
    work = nodes.work
    ahead = max(0, work[node, REPORTED] - work[node, SLOTS] + 1)
    request_s = np.int64(work[node, REQUEST_S_BITS]).view(np.float64)
    nodes.sites[work[node, PLACE], SITE_WAIT_S] = ahead * request_s


@inlined
def _advertise_measured(nodes: Nodes, node: int, now: float, ewma_s: float) -> None:
    measured = nodes.measured
    # An average without new waits fades: a node once shunned would never be measured again.
    if measured[node, MEASURED_WEIGHT] > 0.0:
        fade = math.exp((measured[node, MEASURED_AT_S] - now) / ewma_s)
        mean_s = measured[node, MEASURED_SUM_S] / measured[node, MEASURED_WEIGHT]
        nodes.sites[nodes.work[node, PLACE], SITE_WAIT_S] = fade * mean_s


@inlined
def _shows_backlog(signals: Signals, node: int) -> bool:
    return signals.backlog or node == signals.lone


@inlined
def note_routed(signals: Signals, nodes: Nodes, node: int) -> None:
    """Take note of a request sent to a node."""
    if _shows_backlog(signals, node) and signals.predicts:
        nodes.work[node, REPORTED] += 1
        advertise_backlog(nodes, node)


@inlined
def note_left(signals: Signals, nodes: Nodes, node: int) -> None:
    """Take note of a request that left its slot."""
    if _shows_backlog(signals, node) and signals.live:
        nodes.work[node, REPORTED] -= 1
        advertise_backlog(nodes, node)


@inlined
def note_wait(signals: Signals, nodes: Nodes, node: int, now: float, wait_s: float) -> None:
    """Add a realised wait to the node's average, whose weights fall with age as e^(−age/ewma_s)."""
    if signals.measured:
        measured = nodes.measured
        fade = math.exp((measured[node, MEASURED_AT_S] - now) / signals.ewma_s)
        measured[node, MEASURED_SUM_S] = measured[node, MEASURED_SUM_S] * fade + wait_s
        measured[node, MEASURED_WEIGHT] = measured[node, MEASURED_WEIGHT] * fade + 1.0
        measured[node, MEASURED_AT_S] = now
        if signals.live:
            _advertise_measured(nodes, node, now, signals.ewma_s)


@helper
def publish(signals: Signals, nodes: Nodes, num_nodes: int, now: float) -> None:
    """Let every node report."""
    work = nodes.work
    for node in range(num_nodes):
        if _shows_backlog(signals, node):
            seen = work[node, WAITING] + work[node, IN_SLOTS]
            unseen = work[node, ON_RADIO] if signals.predicts else 0
            work[node, REPORTED] = seen + unseen
            advertise_backlog(nodes, node)
        elif signals.measured:
            _advertise_measured(nodes, node, now, signals.ewma_s)
