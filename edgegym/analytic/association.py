"""Who serves whom: the association law (Theorem 1) at given advertised waits."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import LONGEST_S, check_network, checked_wait
from edgegym.analytic.cost_integrals import law, moments
from edgegym.analytic.quadrature import FINE_NODES, rule
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork, checked_whole

FloatArray = NDArray[np.float64]

_MOST_NODES = 1000


@dataclass(frozen=True, eq=False)
class Association:
    """Which tier serves a request of each type, and from how far.

    Attributes
    ----------
    probability : float64 [S, Q]
        A request of type q is served by tier s; each column sums to 1, or to 0 where no tier of
        positive density may serve the type.
    mean_distance_km : float64 [S, Q]
        Mean distance to the serving node given that it is of tier s; NaN where the probability is
        0.
    mean_radio_s : float64 [S, Q]
        Mean radio latency without its fixed part on the same event; NaN where the probability is 0.
    """

    probability: FloatArray
    mean_distance_km: FloatArray
    mean_radio_s: FloatArray


def type_costs(net: TieredNetwork, wait_s: FloatArray) -> FloatArray:
    """Return prefill plus wait ``[Q, S]``; infinite where a tier may not serve a type."""
    costs = net.prefill_s + wait_s[:, None]
    if net.servable is not None:
        costs = np.where(net.servable, costs, np.inf)
    return np.ascontiguousarray(costs.T)


@kernel
def _all_laws(costs, density, xi, power, points, weights, share):
    empty = np.empty((0, 0))
    for q in range(costs.shape[0]):
        law(costs[q], density, xi, power, points, weights, share[q], empty)


@kernel
def _all_moments(costs, density, xi, power, points, weights, share, distance, radio):
    for q in range(costs.shape[0]):
        moments(costs[q], density, xi, power, points, weights, share[q], distance[q], radio[q])


def association_probability(net: TieredNetwork, wait_s: FloatArray) -> FloatArray:
    """Return the association probabilities ``[S, Q]`` at these waits ``[S]``, unchecked."""
    costs = type_costs(net, wait_s)
    share = np.empty(costs.shape)
    points, weights = rule(net.radio_alpha, FINE_NODES)
    _all_laws(
        costs,
        net.tier_density.copy(),
        net.radio_xi,
        2.0 / net.radio_alpha,
        points,
        weights,
        share,
    )
    return np.ascontiguousarray(share.T)


def association_law(net: TieredNetwork, wait_s: ArrayLike, nodes: int = FINE_NODES) -> Association:
    """Return the association law at given advertised waits (Theorem 1, [23]-[26]).

    A request goes to the node of smallest radio latency + prefill + advertised wait. The integrals
    are taken over that cost, where all tiers share one exponent, with a piece per tier.

    Parameters
    ----------
    net : TieredNetwork
    wait_s : array_like [S]
        Advertised waits in seconds, up to 1e12; zeros for routing that does not look at queues.
    nodes : int
        Quadrature points per piece; twice as many give the error (below 1e-9 with the default for
        ``radio_alpha`` from 1.5 to 5).

    Returns
    -------
    Association

    Raises
    ------
    ValueError
        If `wait_s` has another shape or is negative or not finite, or `nodes` is not 2 to 1000.
    TypeError
        If `net` is no network.
    """
    nodes = checked_whole("nodes", nodes, 2, _MOST_NODES)
    wait = checked_wait(net, wait_s)
    if wait.max() > LONGEST_S:
        raise ValueError(f"wait_s is {wait}: advertised waits must be at most {LONGEST_S:g}")
    return cost_association(net, wait, nodes)


def cost_association(
    net: TieredNetwork, wait_s: FloatArray, nodes: int = FINE_NODES
) -> Association:
    """Return the law of :func:`association_law` at float64 waits ``[S]``, unchecked."""
    costs = type_costs(net, wait_s)
    share, distance, radio = (np.empty(costs.shape) for _ in range(3))
    points, weights = rule(net.radio_alpha, nodes)
    _all_moments(
        costs,
        net.tier_density.copy(),
        net.radio_xi,
        2.0 / net.radio_alpha,
        points,
        weights,
        share,
        distance,
        radio,
    )
    used = share > 0
    with np.errstate(over="ignore"):
        mean_distance = np.divide(distance, share, out=np.full(share.shape, np.nan), where=used)
        mean_radio = np.divide(radio, share, out=np.full(share.shape, np.nan), where=used)
    return Association(
        probability=np.ascontiguousarray(share.T),
        mean_distance_km=np.ascontiguousarray(mean_distance.T),
        mean_radio_s=np.ascontiguousarray(mean_radio.T),
    )


def nearest_density(net: TieredNetwork) -> FloatArray:
    """Return the density of the nodes that may serve each type, ``[Q]`` per km²."""
    return net.tier_density @ net.can_serve


def nearest_association(net: TieredNetwork) -> Association:
    """Return who serves whom when each request goes to the nearest node that may serve it.

    The tier of the nearest node does not depend on its distance: probabilities are the shares of
    the tiers, and the distance is that to the nearest node of any tier [8].

    Raises
    ------
    TypeError
        If `net` is no network.
    """
    check_network(net)
    density = nearest_density(net)
    reachable = density > 0
    total = np.where(reachable, density, 1.0)
    probability = net.tier_density[:, None] * net.can_serve / total
    used = probability > 0
    distance = np.where(used, 0.5 / np.sqrt(total), np.nan)
    # E[r**alpha] of a Rayleigh distance: Gamma(1 + alpha / 2) / (pi * density)**(alpha / 2).
    half = net.radio_alpha / 2.0
    radio = net.radio_xi * math.gamma(1.0 + half) / (math.pi * total) ** half
    return Association(probability, distance, np.where(used, radio, np.nan))
