"""The load-association equilibrium [14]-[20], [32], [33]."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic import fixed_point
from edgegym.analytic.association import (
    FINE_NODES,
    association_probability,
    check_network,
    checked_wait,
    nearest_association,
)
from edgegym.analytic.quadrature import rule
from edgegym.analytic.queueing import delay_probability
from edgegym.analytic.tier_map import Tiers, knee_units
from edgegym.jit import kernel
from edgegym.world.network import (
    TieredNetwork,
    checked_choice,
    checked_number,
    checked_whole,
)

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Policy = Literal["load_aware", "queue_unaware", "nearest"]
Method = Literal["newton", "damped"]

COARSE_NODES = 16
TOLERANCE = 1e-9
_ROUNDS = 60
_MOST_ITERATIONS = 10**6


@dataclass(frozen=True, eq=False)
class Equilibrium:
    """A fleet's long-run state under one routing policy.

    Attributes
    ----------
    assumed_wait_s : float64 [S]
        Waits that the association used; always finite.
    mean_wait_s : float64 [S]
        Mean waits that its load induces: 0 for empty and unused tiers, infinite for unstable ones.
    association : float64 [S, Q]
        Probability that a request of type q is served by tier s.
    arrival_rate_per_node : float64 [S]
        Requests/s at a node of the tier [14]; 0 for empty tiers.
    service_rate : float64 [S]
        Requests/s of one slot [16]; of the mean occupancy for a tier that nobody chooses, 0 for an
        empty one.
    utilization : float64 [S]
        Offered load per slot; above 1 in an unstable tier.
    erlang_c : float64 [S]
        Probability of waiting [18]; 1 in an unstable tier.
    wait_decay_per_s : float64 [S]
        Rate at which the wait of those who wait dies out [20]: it exceeds w with probability
        ``erlang_c * exp(-wait_decay_per_s * w)``; 0 in an unstable tier.
    policy : str
        "load_aware", "queue_unaware" or "nearest".
    iterations : int
        Sweeps and steps made; 0 where nothing had to be solved.
    residual : float
        ``max |assumed - induced| / (1 + assumed)`` for load-aware routing, on the true map, so
        infinite if a tier is unstable; 0 for the others, which assume no induced wait.
    converged : bool
        Whether the residual is within the tolerance. False for load-aware routing under overload:
        there is no equilibrium then, and the values describe where a finite continuation of the
        wait beyond saturation settles.
    stable : bool
        Whether every used tier has less load than slots.
    """

    assumed_wait_s: FloatArray
    mean_wait_s: FloatArray
    association: FloatArray
    arrival_rate_per_node: FloatArray
    service_rate: FloatArray
    utilization: FloatArray
    erlang_c: FloatArray
    wait_decay_per_s: FloatArray
    policy: Policy
    iterations: int
    residual: float
    converged: bool
    stable: bool

    @property
    def stable_tiers(self) -> BoolArray:
        """Which tiers have less load than slots, ``[S]``; empty and unused ones do."""
        return np.isfinite(self.mean_wait_s)


@kernel
def _group_identical(prefill, occupancy, slots, density, group):
    """Fill the number of each non-empty tier, equal ones alike (-1: empty); return the count."""
    count = 0
    for s in range(slots.size):
        group[s] = -1
        if density[s] <= 0.0:
            continue
        for t in range(s):
            if group[t] >= 0 and slots[t] == slots[s]:
                same = True
                for q in range(prefill.shape[1]):
                    if prefill[s, q] != prefill[t, q] or occupancy[s, q] != occupancy[t, q]:
                        same = False
                        break
                if same:
                    group[s] = group[t]
                    break
        if group[s] < 0:
            group[s] = count
            count += 1
    return count


def build_tiers(
    net: TieredNetwork, density: FloatArray | None = None
) -> tuple[Tiers, NDArray[np.int64]]:
    """Return the compiled solver's view of a network, and which of its tiers each profile is in.

    Profiles with the same prefill times, occupancies and slots are one tier to the solver: their
    waits are equal, and rounding must not tell them apart (at ``radio_alpha >= 4`` the association
    is infinitely sensitive there).

    Parameters
    ----------
    net : TieredNetwork
    density : float64 [S], optional
        Tier densities to use instead of the network's.

    Returns
    -------
    tiers : Tiers
    group : int64 [S]
        Index of the solver's tier; -1 for empty tiers.
    """
    prefill, occupancy, shares = net.prefill_s, net.occupancy_s, net.type_probabilities
    if net.servable is not None:
        prefill = np.where(net.servable, prefill, np.inf)
    if not shares.all():
        present = shares > 0
        prefill, occupancy, shares = prefill[:, present], occupancy[:, present], shares[present]
    # Writable copies in one layout: the compiled functions are built for each kind of array.
    prefill, occupancy = np.array(prefill, order="C"), np.array(occupancy, order="C")
    all_density = np.array(net.tier_density if density is None else density)
    slots = net.concurrency.copy()
    group = np.empty(len(slots), np.int64)
    count = _group_identical(prefill, occupancy, slots, all_density, group)
    if count < len(slots):
        _, first = np.unique(group, return_index=True)
        first = first[-count:]
        prefill, occupancy = prefill[first], occupancy[first]
        slots = slots[first]
    tiers = Tiers(
        prefill=np.array(prefill.T, order="C"),
        occupancy=np.array(occupancy.T, order="C"),
        shares=shares.copy(),
        density=np.bincount(group[group >= 0], all_density[group >= 0], count),
        slots=slots,
        unit=occupancy.mean(axis=1) / slots,
        knee=knee_units(slots),
        intensity=net.request_intensity,
        xi=net.radio_xi,
        power=2.0 / net.radio_alpha,
        wait_scale=(1.0 + net.service_scv) / 2.0,
    )
    return tiers, group


def spread_to_profiles(tier_values: FloatArray, group: NDArray[np.int64]) -> FloatArray:
    """Return values of solver tiers as values per profile ``[S]``; 0 for empty ones."""
    return np.where(group >= 0, tier_values[group], 0.0)


def spread_to_tiers(profile_values: FloatArray, group: NDArray[np.int64]) -> FloatArray:
    """Return values per profile as values of the solver's tiers."""
    values = np.zeros(group.max() + 1)
    values[group[group >= 0]] = profile_values[group >= 0]
    return values


@kernel
def _queues(rate, load, slots, wait_scale, wait, waiting):
    """Fill mean waits and probabilities of waiting of queues with these rates and loads."""
    for s in range(rate.size):
        if rate[s] <= 0.0:
            wait[s] = 0.0
            waiting[s] = 0.0
        elif load[s] >= slots[s]:
            wait[s] = np.inf
            waiting[s] = 1.0
        else:
            waiting[s] = delay_probability(slots[s], load[s])[0]
            wait[s] = wait_scale * (load[s] / rate[s]) * waiting[s] / (slots[s] - load[s])


def _describe(
    net: TieredNetwork,
    assumed: FloatArray,
    association: FloatArray,
    saturated: BoolArray,
    policy: Policy,
    iterations: int,
    tolerance: float,
) -> Equilibrium:
    """Work out the queues that an association induces, and whether its waits are theirs."""
    density = net.tier_density
    filled = density > 0
    per_node = net.request_intensity / np.where(filled, density, 1.0)
    weights = association * net.type_probabilities
    chosen = weights.sum(axis=1)
    rate = per_node * chosen
    load = per_node * (weights * net.occupancy_s).sum(axis=1)
    used = chosen > 0
    mean_occupancy = np.where(
        used,
        (weights * net.occupancy_s).sum(axis=1) / np.where(used, chosen, 1.0),
        net.occupancy_s.mean(axis=1),
    )
    wait, waiting = np.empty(len(rate)), np.empty(len(rate))
    _queues(rate, load, net.concurrency, (1.0 + net.service_scv) / 2.0, wait, waiting)
    wait[saturated] = np.inf
    waiting[saturated] = 1.0
    service_rate = np.where(filled, 1.0 / mean_occupancy, 0.0)
    spare = np.maximum(net.concurrency * service_rate - rate, 0.0)
    residual = 0.0
    if policy == "load_aware":
        residual = float(np.max(np.abs(assumed - wait) / (1.0 + assumed)))
    return Equilibrium(
        assumed_wait_s=assumed,
        mean_wait_s=wait,
        association=association,
        arrival_rate_per_node=rate,
        service_rate=service_rate,
        utilization=load / net.concurrency,
        erlang_c=waiting,
        wait_decay_per_s=np.where(np.isfinite(wait), spare / ((1.0 + net.service_scv) / 2.0), 0.0),
        policy=policy,
        iterations=iterations,
        residual=residual,
        converged=residual <= tolerance,
        stable=bool(np.isfinite(wait).all()),
    )


def _start_wait(net: TieredNetwork, start: "Equilibrium | ArrayLike | None") -> FloatArray | None:
    if start is None:
        return None
    wait = start.assumed_wait_s if isinstance(start, Equilibrium) else start
    return checked_wait(net, wait, "start")


def _newton_wait(
    net: TieredNetwork, start: FloatArray | None, tolerance: float
) -> tuple[FloatArray, BoolArray, int]:
    """Return the waits, which tiers the solver found to be overloaded, and the iterations."""
    tiers, group = build_tiers(net)
    if start is None:
        wait = np.zeros(len(tiers.slots))
    else:
        wait = spread_to_tiers(start, group)
    status, iterations = fixed_point.solve(
        tiers,
        wait,
        warm=start is not None,
        coarse=rule(net.radio_alpha, COARSE_NODES),
        fine=rule(net.radio_alpha, FINE_NODES),
        tolerance=tolerance,
        rounds=_ROUNDS,
    )
    unstable = (group >= 0) & (status == fixed_point.OVERLOADED)
    unstable[unstable] = fixed_point.saturated(tiers, wait)[group[unstable]]
    return spread_to_profiles(wait, group), unstable, iterations


def _damped_wait(
    net: TieredNetwork,
    start: FloatArray | None,
    tolerance: float,
    damping: float,
    max_iterations: int,
) -> tuple[FloatArray, int]:
    tiers, group = build_tiers(net)
    wait = np.zeros(len(tiers.slots)) if start is None else spread_to_tiers(start, group)
    iterations = fixed_point.damped(
        tiers, wait, *rule(net.radio_alpha, FINE_NODES), damping, tolerance, max_iterations
    )
    return spread_to_profiles(wait, group), iterations


def solve_equilibrium(
    net: TieredNetwork,
    policy: Policy = "load_aware",
    method: Method = "newton",
    start: "Equilibrium | ArrayLike | None" = None,
    *,
    tolerance: float = TOLERANCE,
    damping: float = 0.5,
    max_iterations: int = 1000,
) -> Equilibrium:
    """Solve for the waits, loads and association of a fleet under one routing policy.

    Load-aware routing needs a fixed point: the advertised waits must be those that the routing
    induces [32]. The others do not: they assume no wait ("queue_unaware": prefill and radio only)
    or go to the nearest node ("nearest"); their queues follow.

    Parameters
    ----------
    net : TieredNetwork
    policy : {"load_aware", "queue_unaware", "nearest"}
    method : {"newton", "damped"}
        How to find the load-aware fixed point. "newton" raises the waits tier by tier from zero
        (each a scalar root) and polishes with Newton's iteration; "damped" is the paper's ``W <- (1
        - damping) W + damping * induced W`` [33] from zero, which cycles where the damping is too
        large for the load and then returns with ``converged`` False.
    start : Equilibrium or array_like [S], optional
        Waits to start from.
    tolerance : float
        Residual that counts as converged, above 0 and at most 1.
    damping : float
        Weight of the new waits in the damped iteration, above 0 and at most 1.
    max_iterations : int
        Most steps of the damped iteration, up to 1,000,000.

    Returns
    -------
    Equilibrium
        Look at ``converged`` and ``stable``.

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    TypeError
        If `net` is no network.
    """
    check_network(net)
    checked_choice("policy", policy, get_args(Policy))
    checked_choice("method", method, get_args(Method))
    tolerance = checked_number("tolerance", tolerance, 0.0, 1.0, strict=True)
    damping = checked_number("damping", damping, 0.0, 1.0, strict=True)
    max_iterations = checked_whole("max_iterations", max_iterations, 1, _MOST_ITERATIONS)
    first = _start_wait(net, start)
    iterations = 0
    saturated = np.zeros(net.num_profiles, np.bool_)
    if policy == "nearest":
        wait = np.zeros(net.num_profiles)
        association = nearest_association(net).probability
    else:
        if policy == "queue_unaware":
            wait = np.zeros(net.num_profiles)
        elif method == "newton":
            wait, saturated, iterations = _newton_wait(net, first, tolerance)
        else:
            wait, iterations = _damped_wait(net, first, tolerance, damping, max_iterations)
        association = association_probability(net, wait)
    return _describe(net, wait, association, saturated, policy, iterations, tolerance)
