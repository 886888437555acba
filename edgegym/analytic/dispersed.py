"""Coverage of a fleet whose nodes advertise one wait per tier but have cells of their own size.

The mean-field prediction gives every node of a tier the tier's mean load. Wherever the advertised
waits do not follow the single node (`tier` waits, queue-unaware or nearest-node routing), a node
is an independent queue with the load of its own cell: some are idle, some overloaded, and requests
meet the loaded ones more often, by as much as their cells are larger. This module replaces the mean
load by its law, from the exact second moments of :mod:`edgegym.analytic.cells`.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import checked_target
from edgegym.analytic.cells import CellSizes, NodeCells, Rings, advertised_costs, node_cells
from edgegym.analytic.equilibrium import Equilibrium, check_solved_for
from edgegym.analytic.load_spread import tilted_square, unit_scale, weibull_shape
from edgegym.analytic.queue_models import ErlangC
from edgegym.analytic.queueing import delay_probability
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]

_LOADS = 256
_LEAST_SPREAD = 1e-6


@dataclass(frozen=True, eq=False)
class DispersedPerformance:
    """What a fleet delivers when its nodes differ in load.

    Attributes
    ----------
    coverage : float
        Probability that TTFT is within the target; an overloaded node covers nothing.
    coverage_by_type : float64 [Q]
    overloaded_requests : float
        Share of all requests that go to overloaded nodes.
    overloaded_nodes : float64 [S]
        Share of the nodes of each tier with more load than slots.
    utilization_mean, utilization_deviation : float64 [S]
        Mean and standard deviation between nodes of the offered load per slot.
    busy_mean, busy_deviation : float64 [S]
        The same of the share of slots in use in the long run: the load per slot, at most 1.
    cells : CellSizes
        The moments that all this follows from.
    """

    coverage: float
    coverage_by_type: FloatArray
    overloaded_requests: float
    overloaded_nodes: FloatArray
    utilization_mean: FloatArray
    utilization_deviation: FloatArray
    busy_mean: FloatArray
    busy_deviation: FloatArray
    cells: CellSizes


@kernel
def _load_grid(slots, edges, delays):
    """Fill loads from 0 to `slots`, closer and closer, and Erlang-C in the middle of each part."""
    parts = delays.size
    for i in range(parts + 1):
        rest = 1.0 - i / parts
        edges[i] = slots * (1.0 - rest * rest)
    for i in range(parts):
        delays[i] = delay_probability(slots, 0.5 * (edges[i] + edges[i + 1]))[0]


@kernel
def _below(load, mean, shape):
    """Return the Weibull probability of at most this load."""
    if load <= 0.0:
        return 0.0
    return 1.0 - math.exp(-((load / (mean * unit_scale(shape))) ** shape))


@kernel
def _fits(edges, delays, slot_decay, mean, shape, slack):
    """Return the probability that the wait is within `slack`, and that the node is stable."""
    slots = edges[-1]
    within = 0.0
    before = 0.0
    for i in range(delays.size):
        after = _below(edges[i + 1], mean, shape)
        spare = slots - 0.5 * (edges[i] + edges[i + 1])
        within += (after - before) * (1.0 - delays[i] * math.exp(-slot_decay * spare * slack))
        before = after
    return within, before


@kernel
def _covered(served, loads, spread, slack, edges, delays, slot_decay):
    """Return the served area that is covered, and that of overloaded nodes.

    Parameters
    ----------
    served, loads, slack : float64 [n]
        Per ring: the area that a node serves, the mean load of a node that serves a request there,
        and the time that is left for its wait.
    spread : float
        Variance of the load, of those that the rings leave, over its mean square.
    edges, delays : float64 [m + 1], [m]
    slot_decay : float
        What each spare slot adds to the decay of the wait.
    """
    shape = weibull_shape(spread)
    covered = 0.0
    overloaded = 0.0
    for i in range(served.size):
        within, stable = _fits(edges, delays, slot_decay, loads[i], shape, max(slack[i], 0.0))
        if slack[i] >= 0.0:
            covered += served[i] * within
        overloaded += served[i] * (1.0 - stable)
    return covered, overloaded


def _spread_at_rings(
    served: FloatArray, loads: FloatArray, mean_load: float, relative_variance: float
) -> float:
    """Return the relative variance of the load that is left once the radius is known.

    The law that requests of the type see has a mean and, by reweighting, a variance; what the
    means of the rings explain of it is taken off.
    """
    weight = served / served.sum()
    mean = float(weight @ loads)
    square = float(weight @ loads**2)
    seen = tilted_square(weibull_shape(relative_variance), mean / mean_load) * mean_load**2
    return max(seen - square, _LEAST_SPREAD * square) / square


def _radii_in_time(net: TieredNetwork, s: int, target: FloatArray) -> list[list[float]]:
    """Return, for each type, the radius at which no time for a wait is left."""
    left = np.maximum(target - net.radio_base_s - net.prefill_s[s], 0.0)
    return [[float(r)] for r in (left / net.radio_xi) ** (1.0 / net.radio_alpha)]


def _slack_s(net: TieredNetwork, s: int, q: int, ring: Rings, target: FloatArray) -> FloatArray:
    """Return the time for a wait that the target leaves to requests of each ring, ``[n]``."""
    radio = net.radio_base_s + net.radio_xi * ring.radius_km**net.radio_alpha
    return target[q] - net.prefill_s[s, q] - radio


def _tier_coverage(
    net: TieredNetwork, eq: Equilibrium, s: int, cells: NodeCells, target: FloatArray
) -> tuple[FloatArray, float]:
    """Return the share of each type's requests that a tier covers, and of all it loses."""
    work = net.request_intensity * net.type_probabilities * net.occupancy_s[s]
    mean_load = float(work @ cells.mean_area_km2)
    covered, lost = np.zeros(net.num_types), 0.0
    if mean_load <= 0.0:  # nobody waits
        for q, ring in enumerate(cells.rings):
            in_time = _slack_s(net, s, q, ring, target) >= 0.0
            covered[q] = net.tier_density[s] * float(ring.served_km2 @ in_time)
        return covered, lost
    variance = work @ cells.area_product_km4 @ work / mean_load**2 - 1.0
    slots = int(net.concurrency[s])
    edges, delays = np.empty(_LOADS + 1), np.empty(_LOADS)
    _load_grid(slots, edges, delays)
    slot_decay = eq.service_rate[s] / ((1.0 + net.service_scv) / 2.0)
    for q, ring in enumerate(cells.rings):
        served = ring.served_km2
        if served.sum() <= 0.0:
            continue
        loads = cells.seen_area_km2[q] @ work
        slack = _slack_s(net, s, q, ring, target)
        spread = _spread_at_rings(served, loads, mean_load, max(variance, _LEAST_SPREAD))
        parts = _covered(served, loads, spread, slack, edges, delays, slot_decay)
        covered[q] = net.tier_density[s] * parts[0]
        lost += net.type_probabilities[q] * net.tier_density[s] * parts[1]
    return covered, lost


def _busy(mean: float, variance: float) -> tuple[float, float, float]:
    """Return mean and deviation of min(X, 1), and P(X > 1), of a Weibull X."""
    if mean <= 0.0:
        return 0.0, 0.0, 0.0
    shape = weibull_shape(max(variance / mean**2, _LEAST_SPREAD))
    edges = np.linspace(0.0, 1.0, 2001)
    above = 1.0 - np.array([_below(edge, mean, shape) for edge in edges])
    first = np.trapezoid(above, edges)
    second = np.trapezoid(2.0 * edges * above, edges)
    return float(first), math.sqrt(max(float(second - first**2), 0.0)), float(above[-1])


def evaluate_dispersed(
    net: TieredNetwork, eq: Equilibrium, ttft_target_s: ArrayLike
) -> DispersedPerformance:
    """Return the service of a fleet whose nodes differ in the size of their cells.

    For routing whose advertised waits do not follow the single node: those of an equilibrium that
    every node of a tier advertises alike, none at all, or the nearest node. Each node is then a
    queue of its own, with the load of its cell. The mean of that load and its variance are exact,
    also as requests of each type and distance see them in the mean; its law is taken as Weibull.
    What a fleet does that has run for ever: an overloaded node covers nothing.

    Parameters
    ----------
    net : TieredNetwork
        The network that `eq` was solved for.
    eq : Equilibrium
        Its assumed waits are what the nodes advertise.
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.

    Returns
    -------
    DispersedPerformance

    Raises
    ------
    ValueError
        If the target is negative or has another shape, or `eq` has the shape or the loads of
        another network, or another queue module than :class:`ErlangC`.
    TypeError
        If `net` is no network or `eq` no equilibrium.
    """
    check_solved_for(net, eq)
    target = checked_target(net, ttft_target_s)
    if not isinstance(eq.queue, ErlangC):
        raise ValueError(f"eq.queue is {eq.queue!r}: must be ErlangC(), by which nodes wait here")
    costs = advertised_costs(net, eq)
    tiers, types = net.num_profiles, net.num_types
    mean, product = np.zeros((tiers, types)), np.zeros((tiers, types, types))
    covered, lost = np.zeros(types), 0.0
    for s in np.flatnonzero(net.tier_density > 0).tolist():
        cells = node_cells(net, costs, costs[:, s], _radii_in_time(net, s, target))
        mean[s], product[s] = cells.mean_area_km2, cells.area_product_km4
        by_type, by_tier = _tier_coverage(net, eq, s, cells, target)
        covered += by_type
        lost += by_tier
    sizes = CellSizes.of_areas(net, mean, product)
    utilization = sizes.mean_load / net.concurrency
    variance = sizes.load_variance / net.concurrency**2
    busy = [_busy(*pair) for pair in zip(utilization.tolist(), variance.tolist(), strict=True)]
    busy_mean, busy_deviation, overloaded = np.array(busy).T
    return DispersedPerformance(
        coverage=float(covered @ net.type_probabilities),
        coverage_by_type=covered,
        overloaded_requests=lost,
        overloaded_nodes=overloaded,
        utilization_mean=utilization,
        utilization_deviation=np.sqrt(variance),
        busy_mean=busy_mean,
        busy_deviation=busy_deviation,
        cells=sizes,
    )
