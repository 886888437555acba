"""What a fleet delivers in equilibrium: coverage, latency, hits [39]-[45]."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.association import (
    FINE_NODES,
    check_network,
    cost_association,
    nearest_association,
    nearest_density,
    type_costs,
)
from edgegym.analytic.equilibrium import Equilibrium
from edgegym.analytic.quadrature import covered, rule
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork, checked_number, checked_numbers

FloatArray = NDArray[np.float64]

_LONGEST_S = 1e12


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
    for q in range(shares.size):
        if shares[q] > 0.0:
            for s in range(assumed.size):
                limit[s] = target[q] + assumed[s]
            total += shares[q] * covered(
                costs[q], density, xi, power, points, weights, limit, delay, decay
            )
    return total


@kernel
def _nearest_coverage(
    prefill, density, probability, xi, power, points, weights, shares, target, delay, decay
):
    """Return the coverage when each request goes to the nearest node that may serve it.

    The nearest node's tier is independent of its distance: one radio law per type, mixed over
    tiers.
    """
    total = 0.0
    one_cost = np.zeros(1)
    one_density = np.empty(1)
    one_limit = np.empty(1)
    one_delay = np.empty(1)
    one_decay = np.empty(1)
    for q in range(shares.size):
        one_density[0] = density[q]
        for s in range(delay.size):
            weight = shares[q] * probability[q, s]
            if weight > 0.0:
                one_limit[0] = target[q] - prefill[q, s]
                one_delay[0] = delay[s]
                one_decay[0] = decay[s]
                total += weight * covered(
                    one_cost,
                    one_density,
                    xi,
                    power,
                    points,
                    weights,
                    one_limit,
                    one_delay,
                    one_decay,
                )
    return total


def wait_tail(eq: Equilibrium) -> tuple[FloatArray, FloatArray]:
    """Return delay and decay ``[S]``: P(wait > w) is ``delay * exp(-decay * w)`` [20].

    Unstable tiers have delay 1 and decay 0: their wait exceeds everything.
    """
    return eq.erlang_c, eq.wait_decay_per_s


def checked_target(net: TieredNetwork, ttft_target_s: ArrayLike) -> FloatArray:
    """Return the TTFT target per type ``[Q]``, or say what is wrong with it."""
    target = checked_numbers("ttft_target_s", ttft_target_s, "[Q] or one for all")
    if target.shape not in ((), (net.num_types,)):
        raise ValueError(
            f"ttft_target_s has shape {target.shape}: must be a number or [Q] = ({net.num_types},)"
        )
    if not ((target >= 0) & (target <= _LONGEST_S)).all():
        raise ValueError(
            f"ttft_target_s is {ttft_target_s}: must be finite and at least 0, "
            f"at most {_LONGEST_S:g}"
        )
    return np.broadcast_to(target, (net.num_types,)).copy()


@dataclass(frozen=True, eq=False)
class Performance:
    """Delivered service of one equilibrium.

    Attributes
    ----------
    coverage : float
        Probability that TTFT is within the target [39].
    coverage_no_queue : float
        The same if no request waited, with the same association.
    mean_ttft_s : float
        Mean TTFT [42]; infinite if a used tier is unstable or a type can be served nowhere.
    mean_distance_km : float
        Mean distance to the serving node over the requests that are served; 0 if none is.
    conditional_mean_distance_km : float64 [S, Q]
        The same given type and tier; NaN where that tier serves none of that type.
    expected_hit_tokens : float
        Mean number of reused tokens per request [44].
    offloading_ratio : float
        Share of the prefill time that reuse saves [45]; 0 if prefill takes no time.
    """

    coverage: float
    coverage_no_queue: float
    mean_ttft_s: float
    mean_distance_km: float
    conditional_mean_distance_km: FloatArray
    expected_hit_tokens: float
    offloading_ratio: float
    _net: TieredNetwork = field(repr=False)
    _eq: Equilibrium = field(repr=False)

    def quantile(self, reliability: float) -> float:
        """Return the TTFT that this share of all requests does not exceed [43].

        Parameters
        ----------
        reliability : float
            Greater than 0 and less than 1.

        Returns
        -------
        float
            Seconds; infinite if unstable tiers keep the share from ever being reached.

        Raises
        ------
        ValueError
            If `reliability` is not between 0 and 1.
        """
        reliability = checked_number("reliability", reliability, 0.0, 1.0, strict=True)
        if reliability == 1.0:
            raise ValueError("reliability is 1.0: must be less than 1")
        return _ttft_quantile(self._net, self._eq, reliability)


def _coverage(
    net: TieredNetwork, eq: Equilibrium, target: FloatArray, delay: FloatArray, decay: FloatArray
) -> float:
    points, weights = rule(net.radio_alpha, FINE_NODES)
    power = 2.0 / net.radio_alpha
    goal = target - net.radio_base_s
    if eq.policy == "nearest":
        return _nearest_coverage(
            type_costs(net, np.zeros(net.num_profiles)),
            nearest_density(net),
            np.ascontiguousarray(eq.association.T),
            net.radio_xi,
            power,
            points,
            weights,
            net.type_probabilities.copy(),
            goal,
            delay,
            decay,
        )
    return cost_coverage(
        type_costs(net, eq.assumed_wait_s),
        net.tier_density.copy(),
        net.radio_xi,
        power,
        points,
        weights,
        net.type_probabilities.copy(),
        goal,
        eq.assumed_wait_s,
        delay,
        decay,
    )


def _ttft_quantile(net: TieredNetwork, eq: Equilibrium, reliability: float) -> float:
    # Imported here: scipy.optimize would slow down every import of the analytic model.
    from scipy.optimize import root_scalar

    delay, decay = wait_tail(eq)
    served = net.type_probabilities @ (eq.association * np.isfinite(eq.mean_wait_s)[:, None]).sum(0)
    if reliability >= served:
        return math.inf

    def shortfall(ttft_s: float) -> float:
        target = np.full(net.num_types, ttft_s)
        return _coverage(net, eq, target, delay, decay) - reliability

    low, high = 0.0, net.radio_base_s + net.radio_xi + float(net.cold_prefill_s.max())
    while shortfall(high) < 0:
        low, high = high, 2.0 * high
        if high > 1e15:  # within rounding of a share that is never reached
            return math.inf
    return root_scalar(shortfall, bracket=(low, high), xtol=1e-13, rtol=1e-13).root


def _check_belongs(net: TieredNetwork, eq: Equilibrium) -> None:
    """Refuse an equilibrium whose loads are not those of the network."""
    if not isinstance(eq, Equilibrium):
        raise TypeError(f"eq is {eq!r}: must be an Equilibrium")
    if eq.association.shape != net.prefill_s.shape:
        raise ValueError(
            f"eq.association has shape {eq.association.shape}: "
            f"must be that of the network, {net.prefill_s.shape}"
        )
    per_km2 = net.request_intensity * (eq.association * net.type_probabilities)
    offered = (per_km2 * net.occupancy_s).sum(axis=1)
    carried = net.tier_density * eq.utilization * net.concurrency
    if not np.allclose(carried, offered, rtol=1e-6, atol=0.0):
        raise ValueError(
            f"eq.utilization is {eq.utilization}: the network's tiers have other loads; "
            "eq must be solved for this network"
        )


def evaluate(net: TieredNetwork, eq: Equilibrium, ttft_target_s: ArrayLike) -> Performance:
    """Return the service that a fleet delivers in an equilibrium.

    Association follows the assumed waits; TTFT counts the induced ones. An unstable tier covers
    nothing.

    Parameters
    ----------
    net : TieredNetwork
        The network that `eq` was solved for.
    eq : Equilibrium
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.

    Returns
    -------
    Performance

    Raises
    ------
    ValueError
        If the target is negative or has another shape, or `eq` has the shape or the loads of
        another network.
    TypeError
        If `net` is no network or `eq` no equilibrium.
    """
    check_network(net)
    target = checked_target(net, ttft_target_s)
    _check_belongs(net, eq)
    law = (
        nearest_association(net)
        if eq.policy == "nearest"
        else cost_association(net, eq.assumed_wait_s)
    )
    share = law.probability * net.type_probabilities
    used = share > 0
    delay, decay = wait_tail(eq)
    lost = float(net.type_probabilities @ (law.probability.sum(axis=0) == 0))
    distance = float((share * law.mean_distance_km)[used].sum())
    ttft = (law.mean_radio_s + net.prefill_s + eq.mean_wait_s[:, None])[used] @ share[used]
    total_prefill = float(net.type_probabilities @ net.cold_prefill_s)
    none = np.zeros(net.num_profiles)
    return Performance(
        coverage=_coverage(net, eq, target, delay, decay),
        coverage_no_queue=_coverage(net, eq, target, none, none),
        mean_ttft_s=math.inf if lost > 0 else net.radio_base_s + float(ttft),
        mean_distance_km=distance / (1.0 - lost) if lost < 1 else 0.0,
        conditional_mean_distance_km=law.mean_distance_km,
        expected_hit_tokens=float((share * net.hit_tokens).sum()),
        offloading_ratio=float((share * net.saving_s).sum()) / total_prefill
        if total_prefill
        else 0.0,
        _net=net,
        _eq=eq,
    )
