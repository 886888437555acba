"""Who is served in time: coverage integrals of all types and tiers [39] (compiled)."""

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.association import nearest_density, type_costs
from edgegym.analytic.cost_integrals import covered
from edgegym.analytic.deadline_integrals import fitting_by_limit
from edgegym.analytic.equilibrium import Equilibrium
from edgegym.analytic.pieces import build_pieces
from edgegym.analytic.quadrature import FINE_NODES, rule
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]


@kernel
def cost_coverage(
    costs, density, xi, power, points, weights, shares, target, assumed, delay, decay
):
    """Return the coverage [39] of cost-based routing.

    Parameters
    ----------
    costs : float64 [Q, S]
        Prefill plus assumed wait.
    density : float64 [S]
        Nodes per km².
    xi, power : float
        Radio coefficient and ``2 / alpha``.
    points, weights : float64 [n]
        Quadrature rule.
    shares, target : float64 [Q]
        Type probabilities, and targets less the fixed radio latency.
    assumed, delay, decay : float64 [S]
        Assumed waits; the induced wait exceeds w with probability ``delay * exp(-decay * w)``.
    """
    total = 0.0
    limit = np.empty(assumed.size)
    fitting = np.empty(assumed.size)
    reached = np.empty(assumed.size)
    for q in range(shares.size):
        if shares[q] > 0.0:
            for s in range(assumed.size):
                limit[s] = target[q] + assumed[s]
            covered(
                costs[q],
                density,
                xi,
                power,
                points,
                weights,
                limit,
                delay,
                decay,
                fitting,
                reached,
            )
            total += shares[q] * fitting.sum()
    return total


@kernel
def _cost_pairs(costs, density, xi, power, points, weights, limit, delay, decay, fitting, reached):
    """Fill P(served by s in time) with and without waits ``[Q, S]``, given the type."""
    for q in range(costs.shape[0]):
        covered(
            costs[q],
            density,
            xi,
            power,
            points,
            weights,
            limit[q],
            delay,
            decay,
            fitting[q],
            reached[q],
        )


@kernel
def _nearest_pairs(
    probability, density, xi, power, points, weights, limit, delay, decay, fitting, reached
):
    """Fill the same where each request goes to the nearest node that may serve it.

    The nearest node's tier is independent of its distance: one radio law per type and tier.
    """
    cost = np.zeros(1)
    alone = np.empty(1)
    for q in range(probability.shape[0]):
        alone[0] = density[q]
        for s in range(delay.size):
            pair = slice(s, s + 1)
            covered(
                cost,
                alone,
                xi,
                power,
                points,
                weights,
                limit[q, pair],
                delay[pair],
                decay[pair],
                fitting[q, pair],
                reached[q, pair],
            )
            fitting[q, s] *= probability[q, s]
            reached[q, s] *= probability[q, s]


def pair_coverage(
    net: TieredNetwork,
    eq: Equilibrium,
    target_s: FloatArray,
    delay: FloatArray,
    decay: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return the probability that a request of a type is served by a tier in time.

    Parameters
    ----------
    net : TieredNetwork
    eq : Equilibrium
        Its policy and assumed waits decide who serves whom.
    target_s : float64 [Q] or [S, Q]
        Largest TTFT that counts.
    delay, decay : float64 [S]
        The wait of tier s exceeds w with probability ``delay * exp(-decay * w)``.

    Returns
    -------
    coverage, coverage_no_queue : float64 [S, Q]
        Given the type; the second as if nobody waited.
    """
    points, weights = rule(net.radio_alpha, FINE_NODES)
    power = 2.0 / net.radio_alpha
    goal = np.empty(net.prefill_s.shape[::-1])
    goal.T[:] = target_s - net.radio_base_s
    fitting, reached = np.empty(goal.shape), np.empty(goal.shape)
    if eq.policy == "nearest":
        _nearest_pairs(
            np.ascontiguousarray(eq.association.T),
            nearest_density(net),
            net.radio_xi,
            power,
            points,
            weights,
            goal - net.prefill_s.T,
            delay,
            decay,
            fitting,
            reached,
        )
    else:
        _cost_pairs(
            type_costs(net, eq.assumed_wait_s),
            net.tier_density.copy(),
            net.radio_xi,
            power,
            points,
            weights,
            goal + eq.assumed_wait_s,
            delay,
            decay,
            fitting,
            reached,
        )
    return fitting.T, reached.T


@kernel
def _cost_cdf(pieces, times, assumed, delay, decay, result):
    """Fill P(served by s within t) ``[Q, S, T]``; `times` increase, less the fixed radio part."""
    for q in range(pieces.cost.shape[0]):
        for rank in range(pieces.rivals[q]):
            s = pieces.order[q, rank]
            limits = times + assumed[s]
            fitting_by_limit(pieces, q, rank, limits, delay[s], decay[s], result[q, s])


@kernel
def _nearest_cdf(pieces, probability, prefill, times, delay, decay, result):
    """Fill the same for the nearest node: one tier per type, whose marks do not matter."""
    for q in range(probability.shape[0]):
        for s in range(delay.size):
            if probability[q, s] > 0.0:
                limits = times - prefill[q, s]
                fitting_by_limit(pieces, q, 0, limits, delay[s], decay[s], result[q, s])
                result[q, s] *= probability[q, s]


def pair_ttft_cdf(
    net: TieredNetwork, eq: Equilibrium, times_s: FloatArray, delay: FloatArray, decay: FloatArray
) -> FloatArray:
    """Return the probability that a tier serves a request within each time, given its type.

    Parameters
    ----------
    net : TieredNetwork
    eq : Equilibrium
        Its policy and assumed waits decide who serves whom.
    times_s : float64 [T]
        TTFTs, in any order.
    delay, decay : float64 [S]
        The wait of tier s exceeds w with probability ``delay * exp(-decay * w)``.

    Returns
    -------
    float64 [T, S, Q]
    """
    order = np.argsort(times_s, kind="stable")
    times = times_s[order] - net.radio_base_s
    found = np.zeros((net.num_types, net.num_profiles, len(times)))
    if eq.policy == "nearest":
        near = nearest_density(net)[:, None]
        pieces = build_pieces(np.zeros(near.shape), near, net.radio_xi, net.radio_alpha)
        probability = np.ascontiguousarray(eq.association.T)
        prefill = np.ascontiguousarray(net.prefill_s.T)
        _nearest_cdf(pieces, probability, prefill, times, delay, decay, found)
    else:
        costs = type_costs(net, eq.assumed_wait_s)
        density = np.tile(net.tier_density, (len(costs), 1))
        pieces = build_pieces(costs, density, net.radio_xi, net.radio_alpha)
        _cost_cdf(pieces, times, eq.assumed_wait_s, delay, decay, found)
    result = np.empty((len(times), net.num_profiles, net.num_types))
    # Rounding must not let it fall.
    result[order] = np.maximum.accumulate(found, axis=2).T
    return result
