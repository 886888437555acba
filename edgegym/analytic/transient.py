"""Queues after a change of traffic or routing, and coverage while they settle (compiled).

A queue takes time to fill and to drain. At any time it is taken for the stationary queue of some
load, its *effective load* e below the slots c, whose mean number of requests L(e) moves as arrivals
and departures say:

    dL/dt = (a - e) / occupancy,    L(e) = e + wait_scale * C(c, e) * e / (c - e),

where a is the offered load and C the Erlang-C formula [18] (the pointwise stationary fluid-flow
approximation; Wang, Tipper and Banerjee, INFOCOM 1996). A tier with a < c settles at e = a. One
with a >= c first fills its free slots; then its backlog grows by (a - c) / occupancy per second. So
there is no jump between a tier that is almost and one that is just overloaded. Mean numbers are
within 12 % of the exact ones while a queue fills. Waits are taken for exponential beyond their
atom at 0, as they are in steady state; in a long pile all are nearly the same, so that coverage is
then too high, by up to 0.2 of the tier's requests.
"""

import math

import numpy as np

from edgegym.analytic.coverage import cost_coverage
from edgegym.analytic.queueing import delay_probability
from edgegym.analytic.tier_map import tier_loads
from edgegym.jit import kernel

# Of the distance to the load at which the queue grows without bound, and of a queue's own time.
_STEP = 0.4
_SETTLED = 1e-7
# Each span of ages is so much longer than the one before.
_GROWTH = 3.0
# Gauss-Legendre points of a span, on (0, 1); equal weights.
_NODES = (0.5 - 0.5 / math.sqrt(3.0), 0.5 + 0.5 / math.sqrt(3.0))
# Ages beyond so many mean ones carry 0.03 % of the requests.
LONGEST_AGE = 8.0


@kernel
def _number_slope(slots, load, wait_scale):
    """Return the derivative of the mean number of requests at a node in its load."""
    waiting, slope = delay_probability(slots, load)
    rest = slots - load
    return 1.0 + wait_scale * (slope * load + waiting * slots / rest) / rest


@kernel
def settle_for(slots, occupancy, load, wait_scale, effective, span):
    """Return the effective load after some seconds, from `effective` below the slots.

    By the classical Runge-Kutta method; steps grow with the queue, whose changes are slow when it
    is long.
    """
    left = span
    while left > 0.0 and abs(load - effective) > _SETTLED * slots:
        own_time = occupancy * _number_slope(slots, effective, wait_scale)
        gap = load - effective
        step = min(left, _STEP * own_time * min(1.0, (slots - effective) / abs(gap)))
        first = gap / own_time
        middle = effective + 0.5 * step * first
        second = (load - middle) / (occupancy * _number_slope(slots, middle, wait_scale))
        middle = effective + 0.5 * step * second
        third = (load - middle) / (occupancy * _number_slope(slots, middle, wait_scale))
        end = effective + step * third
        fourth = (load - end) / (occupancy * _number_slope(slots, end, wait_scale))
        effective += step / 6.0 * (first + 2.0 * (second + third) + fourth)
        left -= step
    return effective


@kernel
def _occupancy(tiers, s, rate, load):
    """Return the mean time in a slot; that of all requests where a tier gets none."""
    return load / rate if rate > 0.0 else tiers.unit[s] * tiers.slots[s]


@kernel
def advance_queues(tiers, wait, points, weights, effective, span):
    """Change the effective loads ``[S]`` by so many seconds of routing by these waits."""
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    empty = np.empty((0, 0))
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    for s in range(count):
        occupancy = _occupancy(tiers, s, rate[s], load[s])
        effective[s] = settle_for(
            tiers.slots[s], occupancy, load[s], tiers.wait_scale, effective[s], span
        )


@kernel
def phase_coverage(tiers, wait, target, points, weights, effective, span, ending_rate):
    """Return the coverage of requests during a phase of routing by these waits.

    Parameters
    ----------
    tiers : Tiers
    wait : float64 [S]
        Waits that the router assumes, seconds.
    target : float64 [Q]
        TTFT targets less the fixed radio latency, seconds.
    points, weights : float64 [n]
        Quadrature rule.
    effective : float64 [S]
        Effective loads when the phase begins, below the slots; changed to those at its end.
    span : float
        Longest time since the phase began, seconds.
    ending_rate : float
        Per second: the phase goes on for t with probability ``exp(-ending_rate * t)``.

    Returns
    -------
    coverage : float
        Mean over the ages up to the span at which requests arrive.
    excess : float
        Load beyond the slots, over all slots.
    """
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    delay = np.empty(count)
    decay = np.empty(count)
    occupancy = np.empty(count)
    empty = np.empty((0, 0))
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    excess = 0.0
    capacity = 0.0
    width = np.inf
    for s in range(count):
        occupancy[s] = _occupancy(tiers, s, rate[s], load[s])
        excess += tiers.density[s] * max(load[s] - tiers.slots[s], 0.0)
        capacity += tiers.density[s] * tiers.slots[s]
        width = min(width, tiers.unit[s] * tiers.slots[s])
    costs = tiers.prefill + wait
    total = 0.0
    mass = 0.0
    begin = 0.0
    now = 0.0
    while begin < span:
        moving = False
        for s in range(count):
            moving |= abs(load[s] - effective[s]) > 2.0 * _SETTLED * tiers.slots[s]
        end = span if begin + 1.5 * width > span or not moving else begin + width
        part = math.exp(-ending_rate * begin) - math.exp(-ending_rate * end)
        density = 0.0
        found = 0.0
        for node in _NODES:
            age = begin + node * (end - begin)
            for s in range(count):
                effective[s] = settle_for(
                    tiers.slots[s],
                    occupancy[s],
                    load[s],
                    tiers.wait_scale,
                    effective[s],
                    age - now,
                )
                delay[s] = delay_probability(tiers.slots[s], effective[s])[0]
                rest = tiers.slots[s] - effective[s]
                decay[s] = rest / (occupancy[s] * tiers.wait_scale)
            now = age
            weight = math.exp(-ending_rate * (age - begin))
            density += weight
            found += weight * cost_coverage(
                costs,
                tiers.density,
                tiers.xi,
                tiers.power,
                points,
                weights,
                tiers.shares,
                target,
                wait,
                delay,
                decay,
            )
            if not moving:
                break
        total += part * found / density
        mass += part
        begin = end
        width *= _GROWTH
    for s in range(count):
        effective[s] = settle_for(
            tiers.slots[s], occupancy[s], load[s], tiers.wait_scale, effective[s], span - now
        )
    return total / mass, excess / capacity
