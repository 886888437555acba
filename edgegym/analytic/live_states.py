"""States of a node that advertises its own backlog, and the integrals over who picks it (compiled).

A node of c slots with n requests on the way to it, queued or served is at level k = max(0, n - c +
1) and advertises the wait k / (c mu). Requests come at a rate that depends on n alone, spend a
radio time on the way and are then served by c slots: a network of an infinite-server and a c-server
station whose input depends on the total, which has a product form, whatever the law of the radio
time (Jackson 1963):

    P(i on the way, m at the node) ~ (input rates up to n - 1) * R^i / i! * X^m / prod min(j, c).
"""

import math

import numpy as np

from edgegym.jit import kernel


@kernel
def log_room(slots, levels, occupancy, radio):
    """Return the logarithm of the sum of the last two factors over i + m = n, ``[n]``.

    Parameters
    ----------
    slots, levels : int
    occupancy, radio : float
        Mean time in a slot and on the way.
    """
    total = slots - 1 + levels
    on_way = np.zeros(total)
    at_node = np.zeros(total)
    for n in range(1, total):
        on_way[n] = on_way[n - 1] + (math.log(radio / n) if radio > 0.0 else -np.inf)
        at_node[n] = at_node[n - 1] + math.log(occupancy / min(n, slots))
    room = np.empty(total)
    for n in range(total):
        if n < slots:
            # The binomial theorem.
            room[n] = n * math.log(occupancy + radio) - math.lgamma(n + 1.0)
            continue
        top = -np.inf
        for m in range(n + 1):
            top = max(top, at_node[m] + on_way[n - m])
        part = 0.0
        for m in range(n + 1):
            part += math.exp(at_node[m] + on_way[n - m] - top)
        room[n] = top + math.log(part)
    return room


@kernel
def level_law(rates, factor, room, slots, law):
    """Fill the probability of each level of a node with these input rates by level, times factor.

    Parameters
    ----------
    rates : float64 [K]
    factor : float
    room : float64 [slots - 1 + K]
        From :func:`log_room`.
    slots : int
    law : float64 [K]
        Out.
    """
    levels = rates.size
    total = slots - 1 + levels
    state = np.empty(total)
    came = 0.0
    top = -np.inf
    for n in range(total):
        state[n] = came + room[n]
        top = max(top, state[n])
        came += math.log(max(factor * rates[max(0, n - slots + 1)], 1e-300))
    law[:] = 0.0
    for n in range(total):
        law[max(0, n - slots + 1)] += math.exp(state[n] - top)
    law /= law.sum()


@kernel
def wait_fits(slack, slots, levels, occupancy, radio, fits):
    """Fill the probability that a request that was sent at a level waits no longer than a time.

    The split of the others into those on the way and those at the node is that of the product
    form, which is also what a request finds when it gets there. Who finds m >= c others waits for
    m - c + 1 departures at the full rate.

    Parameters
    ----------
    slack : float64 [K, J]
        The time left for the wait at each level and place.
    slots, levels : int
    occupancy, radio : float
    fits : float64 [K, J]
        Out; 0 where the slack is negative.
    """
    rate = slots / occupancy
    found = np.empty(levels)
    late = np.empty(levels)
    for k in range(levels):
        # The weights of finding m = c - 1 + ahead; 0 stands for all m < c, who find a free slot.
        n = slots - 1 + k
        found[:] = 0.0
        top = -np.inf
        for m in range(n + 1):
            top = max(top, _log_split(n, m, slots, occupancy, radio))
        for m in range(n + 1):
            found[max(0, m - slots + 1)] += math.exp(
                _log_split(n, m, slots, occupancy, radio) - top
            )
        found /= found.sum()
        for j in range(slack.shape[1]):
            if slack[k, j] < 0.0:
                fits[k, j] = 0.0
                continue
            # late[ahead] is P(fewer than `ahead` departures within the slack).
            mean = rate * slack[k, j]
            term = math.exp(-mean)
            late[0] = 0.0
            for ahead in range(1, k + 1):
                late[ahead] = late[ahead - 1] + term
                term *= mean / ahead
            value = 0.0
            for ahead in range(k + 1):
                value += found[ahead] * (1.0 - min(late[ahead], 1.0))
            fits[k, j] = value


@kernel
def _log_split(n, m, slots, occupancy, radio):
    """Return the log weight of m at the node and n - m on the way."""
    if n > m and radio <= 0.0:
        return -np.inf
    on_way = (n - m) * math.log(radio) if n > m else 0.0
    at_node = m * math.log(occupancy) - math.lgamma(min(m, slots) + 1.0)
    if m > slots:
        at_node -= (m - slots) * math.log(slots)
    return on_way - math.lgamma(n - m + 1.0) + at_node
