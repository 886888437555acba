"""A fleet at its actual places as a fluid: where requests flow, and what a move would change.

The region is cut into cells; the requests of a cell and type go to the node with the least radio
latency, prefill and mean wait, and near a tie to the second as well. A node's wait is that of
M/M/c [17]-[20] at its load, and what a backlog makes it that is there or grows. A few
damped rounds find flows and waits that fit each other. A placement is worth the requests/s within
target, less the requests/s by which backlogs grow, or more those by which they shrink: each of them
is late, and makes others late. A
move is valued with the flows of the moved node's surroundings alone; what it does to other nodes is
counted to first order.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.queueing import node_queue
from edgegym.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SETTLING_ROUNDS, _MOVE_ROUNDS = 30, 6
# Of the change that a round asks for; less where the last one went too far, then slowly more.
_STEP, _AFTER_TOO_FAR, _AFTER_TOO_LITTLE = 0.5, 0.5, 1.2
# Load per slot from which a queue counts as a backlog that grows: Erlang's formula diverges at 1.
_SATURATED = 0.95
# Costs nearer than this, seconds, share the flow: real waits change from request to request.
_TIE_S = 0.1
# A wait behind a backlog at which about half of the requests notice it.
_SHORT_S = 0.3
# Slots in use by which a load is changed to see what others lose.
_PROBE = 0.1


class FluidWorld(NamedTuple):
    """What does not depend on the episode: R rows (node class and holding), Q request types."""

    prefill_s: Floats  # [R, Q] inf where a type can't be served
    occupancy_s: Floats  # [R, Q] of a slot
    target_s: Floats  # [Q]
    radio_factor: Floats  # [Q] radio latency relative to that of the cells
    radio_base_s: float
    weighs_prefill: bool  # whether the router does
    weighs_wait: bool
    wait_scale: float  # (1 + scv) / 2 of the service time
    horizon_s: float  # in which a backlog grows


class FluidCells(NamedTuple):
    """Cells and the nodes near each: C cells, K nodes, N nodes."""

    near: Ints  # [C, K] nodes by distance
    radio_s: Floats  # [C, K] latency to each, without the fixed part
    start: Ints  # [N + 1] first entry of each node in `cell`
    cell: Ints  # [entries] cells that have the node among their K
    place: Ints  # [entries] at which of the K places


class FluidNodes(NamedTuple):
    """What each of N nodes holds."""

    row: Ints  # [N]
    slots: Ints  # [N] at least 1 for nodes that are near a cell
    queued: Floats  # [N] requests in the queue


class _Flows(NamedTuple):
    """Flows in balance."""

    first: Ints  # [C, Q] place of the best node among the K, -1: none serves the type
    second: Ints  # [C, Q]
    first_cost_s: Floats  # [C, Q] inf if there is none
    second_cost_s: Floats  # [C, Q]
    wait_s: Floats  # [N] mean
    waiting: Floats  # [N] probability
    decay_per_s: Floats  # [N]
    price: Floats  # [N] worth that others lose per slot of further load


@kernel
def _backlog_wait(world, slots, rate, load, queued):
    """Return the mean wait behind the backlog until the horizon, in seconds."""
    first_s = queued * load / (rate * slots)
    slope = load / slots - _SATURATED
    if slope < 0.0 and first_s < -slope * world.horizon_s:
        return 0.5 * first_s * first_s / (-slope * world.horizon_s)
    return first_s + 0.5 * slope * world.horizon_s


@kernel
def _queue(world, slots, rate, load, queued):
    """Return mean wait, probability of waiting and decay, finite at every load."""
    if rate <= 0.0 or load <= 0.0:
        return 0.0, 0.0, 1.0
    steady = min(load, _SATURATED * slots)
    mean, waiting, decay = node_queue(slots, rate * steady / load, steady, world.wait_scale)
    if queued <= 0.0 and steady == load:
        return mean, waiting, decay
    behind_s = _backlog_wait(world, slots, rate, load, queued)
    waiting += (1.0 - waiting) * behind_s / (behind_s + _SHORT_S)
    mean += behind_s
    return mean, waiting, waiting / mean


@kernel
def _growth(world, slots, rate, load, queued):
    """Return the requests/s by which the backlog grows, and by how much more per slot of load."""
    least = -queued / world.horizon_s
    if rate <= 0.0 or load <= 0.0:
        return least, 0.0
    growth = rate * (load - _SATURATED * slots) / load
    return (least, 0.0) if growth <= least else (growth, rate / load)


@kernel
def _hit(slack_s, waiting, decay_per_s):
    """Return the probability that the wait leaves the target met."""
    return 0.0 if slack_s < 0.0 else 1.0 - waiting * np.exp(-decay_per_s * slack_s)


@kernel
def _share(cost_s, other_s):
    """Return the share of a flow that takes the first of two nodes."""
    if cost_s == np.inf:
        return 0.0
    if other_s == np.inf:
        return 1.0
    return min(max(0.5 + 0.5 * (other_s - cost_s) / _TIE_S, 0.0), 1.0)


@kernel
def _cost(world, q, radio_s, row, wait_s):
    """Return what the router compares; inf where the type can't be served."""
    prefill_s = world.prefill_s[row, q]
    if prefill_s == np.inf:
        return np.inf
    cost_s = radio_s * world.radio_factor[q]
    if world.weighs_prefill:
        cost_s += prefill_s
    return cost_s + wait_s if world.weighs_wait else cost_s


@kernel
def _slack(world, q, radio_s, row):
    """Return how long a request may wait."""
    ttft_s = world.radio_base_s + radio_s * world.radio_factor[q] + world.prefill_s[row, q]
    return world.target_s[q] - ttft_s


@kernel
def _route(world, cells, nodes, flows):
    """Find the two best nodes of every flow at the present waits."""
    for c in range(cells.near.shape[0]):
        for q in range(len(world.target_s)):
            first, second = -1, -1
            best, next_best = np.inf, np.inf
            for k in range(cells.near.shape[1]):
                j = cells.near[c, k]
                cost_s = _cost(world, q, cells.radio_s[c, k], nodes.row[j], flows.wait_s[j])
                if cost_s < best:
                    second, next_best = first, best
                    first, best = k, cost_s
                elif cost_s < next_best:
                    second, next_best = k, cost_s
            flows.first[c, q], flows.second[c, q] = first, second
            flows.first_cost_s[c, q], flows.second_cost_s[c, q] = best, next_best


@kernel
def _loads(world, cells, nodes, rate, flows, node_rate, load):
    """Add up what flows to each node: requests/s and slots in use."""
    node_rate[:] = 0.0
    load[:] = 0.0
    for c in range(cells.near.shape[0]):
        for q in range(len(world.target_s)):
            share = _share(flows.first_cost_s[c, q], flows.second_cost_s[c, q])
            for k, part in ((flows.first[c, q], share), (flows.second[c, q], 1.0 - share)):
                if k >= 0 and part > 0.0:
                    j = cells.near[c, k]
                    node_rate[j] += part * rate[c, q]
                    load[j] += part * rate[c, q] * world.occupancy_s[nodes.row[j], q]


@kernel
def _hits(world, cells, nodes, rate, flows, waiting, decay_per_s, hits):
    """Add up each node's requests/s within target, ``[N]``, at given waits."""
    hits[:] = 0.0
    for c in range(cells.near.shape[0]):
        for q in range(len(world.target_s)):
            share = _share(flows.first_cost_s[c, q], flows.second_cost_s[c, q])
            for k, part in ((flows.first[c, q], share), (flows.second[c, q], 1.0 - share)):
                if k >= 0 and part > 0.0:
                    j = cells.near[c, k]
                    slack_s = _slack(world, q, cells.radio_s[c, k], nodes.row[j])
                    hits[j] += part * rate[c, q] * _hit(slack_s, waiting[j], decay_per_s[j])


@kernel
def _balance(world, cells, nodes, rate, flows):
    """Find flows and waits that fit each other; return the requests/s within target."""
    count = len(nodes.row)
    node_rate, load = np.zeros(count), np.zeros(count)
    hits, probed = np.zeros(count), np.zeros(count)
    waiting, decay = np.zeros(count), np.ones(count)
    step, change = np.full(count, _STEP), np.zeros(count)
    for turn in range(_SETTLING_ROUNDS):
        _route(world, cells, nodes, flows)
        _loads(world, cells, nodes, rate, flows, node_rate, load)
        for j in range(count):
            mean_s, flows.waiting[j], flows.decay_per_s[j] = _queue(
                world, nodes.slots[j], node_rate[j], load[j], nodes.queued[j]
            )
            wanted_s = mean_s - flows.wait_s[j]
            if wanted_s * change[j] < 0.0:
                step[j] *= _AFTER_TOO_FAR
            else:
                step[j] = min(_STEP, step[j] * _AFTER_TOO_LITTLE)
            change[j] = wanted_s
            if turn < _SETTLING_ROUNDS - 1:
                flows.wait_s[j] += step[j] * wanted_s
    for j in range(count):
        more = load[j] + _PROBE
        rate_j = node_rate[j] * more / load[j] if load[j] > 0.0 else 0.0
        _, waiting[j], decay[j] = _queue(world, nodes.slots[j], rate_j, more, nodes.queued[j])
    _hits(world, cells, nodes, rate, flows, flows.waiting, flows.decay_per_s, hits)
    _hits(world, cells, nodes, rate, flows, waiting, decay, probed)
    for j in range(count):
        flows.price[j] = max(hits[j] - probed[j], 0.0) / _PROBE
        flows.price[j] += _growth(world, nodes.slots[j], node_rate[j], load[j], nodes.queued[j])[1]
    return hits.sum()


@kernel
def _value(world, cells, nodes, rate, flows, i, row, slots):
    """Return the worth of what happens around a node if it had a row and slots.

    Less what the load of those that go elsewhere takes from others there.
    """
    wait_s, waiting, decay = flows.wait_s[i], 0.0, 1.0
    # The longer the wait, the fewer come: the wait that fits lies between these.
    least_s, most_s = 0.0, np.inf
    total, node_rate, load = 0.0, 0.0, 0.0
    for turn in range(_MOVE_ROUNDS + 1):
        node_rate, load = 0.0, 0.0
        last = turn == _MOVE_ROUNDS
        for entry in range(cells.start[i], cells.start[i + 1]):
            c, place = cells.cell[entry], cells.place[entry]
            radio_s = cells.radio_s[c, place]
            for q in range(len(world.target_s)):
                here_s = _cost(world, q, radio_s, row, wait_s)
                other, other_s = flows.first[c, q], flows.first_cost_s[c, q]
                if other == place:
                    other, other_s = flows.second[c, q], flows.second_cost_s[c, q]
                part = _share(here_s, other_s)
                if part > 0.0:
                    node_rate += part * rate[c, q]
                    load += part * rate[c, q] * world.occupancy_s[row, q]
                if not last:
                    continue
                if part > 0.0:
                    slack_s = _slack(world, q, radio_s, row)
                    total += part * rate[c, q] * _hit(slack_s, waiting, decay)
                if part < 1.0 and other >= 0:
                    j = cells.near[c, other]
                    slack_s = _slack(world, q, cells.radio_s[c, other], nodes.row[j])
                    worth = _hit(slack_s, flows.waiting[j], flows.decay_per_s[j])
                    worth -= flows.price[j] * world.occupancy_s[nodes.row[j], q]
                    total += (1.0 - part) * rate[c, q] * worth
        if not last:
            mean_s, waiting, decay = _queue(world, slots, node_rate, load, nodes.queued[i])
            if mean_s > wait_s:
                least_s = wait_s
            else:
                most_s = wait_s
            if turn < _MOVE_ROUNDS - 1:
                wait_s += _STEP * (mean_s - wait_s)
                if not least_s <= wait_s <= most_s:
                    wait_s = 0.5 * (least_s + most_s)
    return total - _growth(world, slots, node_rate, load, nodes.queued[i])[0]


@kernel
def write_move_gains(world, cells, nodes, rate, move_node, move_row, move_slots, gain):
    """Write what each of M moves would gain, and return the requests/s within target now.

    Parameters
    ----------
    world : FluidWorld
    cells : FluidCells
    nodes : FluidNodes
        What the nodes hold now.
    rate : ndarray
        ``[C, Q]`` requests/s of each cell and type.
    move_node, move_row, move_slots : ndarray
        ``[M]`` the node, what it would hold, and its slots then, at least 1.
    gain : ndarray
        ``[M]`` receives the change in requests/s within target, less that in the growth of
        backlogs.
    """
    count, types = len(nodes.row), len(world.target_s)
    num_cells = cells.near.shape[0]
    flows = _Flows(
        np.empty((num_cells, types), np.int64),
        np.empty((num_cells, types), np.int64),
        np.empty((num_cells, types)),
        np.empty((num_cells, types)),
        np.zeros(count),
        np.zeros(count),
        np.zeros(count),
        np.zeros(count),
    )
    hits = _balance(world, cells, nodes, rate, flows)
    now = np.zeros(count)
    for i in range(count):
        if cells.start[i] < cells.start[i + 1]:
            now[i] = _value(world, cells, nodes, rate, flows, i, nodes.row[i], nodes.slots[i])
    for m in range(len(move_node)):
        i = move_node[m]
        after = _value(world, cells, nodes, rate, flows, i, move_row[m], move_slots[m])
        gain[m] = after - now[i]
    return hits
