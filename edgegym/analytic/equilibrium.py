"""The load-association equilibrium [14]-[20], [32], [33]."""

from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic import fixed_point
from edgegym.analytic.arguments import check_network, checked_wait
from edgegym.analytic.association import association_probability, nearest_association
from edgegym.analytic.grouping import spread_to_profiles, spread_to_tiers
from edgegym.analytic.queue_models import CheckedQueue, ErlangC, QueueModel
from edgegym.analytic.queueing import node_queue
from edgegym.analytic.solver_map import build_map
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

TOLERANCE = 1e-9
_ROUNDS = 60
_MOST_ITERATIONS = 10**6
_ERLANG_C = ErlangC()


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
    queue : QueueModel
        The queue module that the waits are by.
    cycle_length : int
        Steps after which the damped iteration repeats itself; 0 if it converged, or did neither.
    history : float64 [K + 1, S] or None
        Waits before the first of K steps of the damped iteration and after each, where asked for.
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
    queue: QueueModel = field(default=_ERLANG_C, repr=False)
    cycle_length: int = 0
    history: FloatArray | None = field(default=None, repr=False)

    @property
    def stable_tiers(self) -> BoolArray:
        """Which tiers have a finite mean wait, ``[S]``; empty and unused ones do."""
        return np.isfinite(self.mean_wait_s)


def check_solved_for(net: TieredNetwork, eq: Equilibrium) -> None:
    """Refuse what is no equilibrium of a network, by its shape and its loads.

    Raises
    ------
    ValueError
        If `eq` has the shape or the loads of another network.
    TypeError
        If `net` is no network or `eq` no equilibrium.
    """
    check_network(net)
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


def assumed_wait(net: TieredNetwork, wait_s: "Equilibrium | ArrayLike | None") -> FloatArray:
    """Return the waits that routing acts on ``[S]``: an equilibrium's, those given, or none.

    Raises
    ------
    ValueError
        If waits have another shape or are negative or not finite.
    TypeError
        If `net` is no network.
    """
    check_network(net)
    if wait_s is None:
        return np.zeros(net.num_profiles)
    return checked_wait(net, wait_s.assumed_wait_s if isinstance(wait_s, Equilibrium) else wait_s)


@kernel
def _queues(rate, load, slots, wait_scale, wait, waiting):
    """Fill mean waits and probabilities of waiting of queues with these rates and loads."""
    for s in range(rate.size):
        wait[s], waiting[s], _ = node_queue(slots[s], rate[s], load[s], wait_scale)


def _called_queues(
    net: TieredNetwork, per_type: FloatArray, queue: CheckedQueue
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return mean waits, probabilities of waiting and decays ``[S]`` by a queue module."""
    result = np.zeros((3, net.num_profiles))
    for s in np.flatnonzero(net.tier_density > 0):
        slots = int(net.concurrency[s])
        delay = queue.delay(per_type[s], net.occupancy_s[s], slots, net.service_scv)
        result[:, s] = delay.mean_wait_s, delay.waiting_probability, delay.decay_per_s
    return result[0], result[1], result[2]


def _describe(
    net: TieredNetwork,
    assumed: FloatArray,
    association: FloatArray,
    saturated: BoolArray,
    policy: Policy,
    queue: QueueModel,
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
    service_rate = np.where(filled, 1.0 / mean_occupancy, 0.0)
    if isinstance(queue, ErlangC):
        scale = (1.0 + net.service_scv) / 2.0
        wait, waiting = np.empty(len(rate)), np.empty(len(rate))
        _queues(rate, load, net.concurrency, scale, wait, waiting)
        decay = np.maximum(net.concurrency * service_rate - rate, 0.0) / scale
    else:
        per_type = per_node[:, None] * weights
        wait, waiting, decay = _called_queues(net, per_type, CheckedQueue(queue))
    wait[saturated] = np.inf
    unstable = np.isinf(wait)
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
        erlang_c=np.where(unstable, 1.0, waiting),
        wait_decay_per_s=np.where(unstable, 0.0, decay),
        policy=policy,
        iterations=iterations,
        residual=residual,
        converged=residual <= tolerance,
        stable=not unstable.any(),
        queue=queue,
    )


def _start_wait(net: TieredNetwork, start: "Equilibrium | ArrayLike | None") -> FloatArray | None:
    if start is None:
        return None
    wait = start.assumed_wait_s if isinstance(start, Equilibrium) else start
    return checked_wait(net, wait, "start")


def _newton_wait(
    net: TieredNetwork, queue: QueueModel, start: FloatArray | None, tolerance: float
) -> tuple[FloatArray, BoolArray, int]:
    """Return the waits, which tiers the solver found to be overloaded, and the iterations."""
    solver_map, group = build_map(net, queue)
    tiers = solver_map.tiers
    wait = np.zeros(len(tiers.slots)) if start is None else spread_to_tiers(start, group)
    status, iterations = fixed_point.rise(solver_map, wait, start is not None, tolerance, _ROUNDS)
    unstable = (group >= 0) & (status == fixed_point.OVERLOADED)
    unstable[unstable] = fixed_point.saturated(tiers, wait)[group[unstable]]
    return spread_to_profiles(wait, group), unstable, iterations


def _damped_run(
    net: TieredNetwork,
    queue: QueueModel,
    start: FloatArray | None,
    tolerance: float,
    damping: float,
    max_iterations: int,
) -> fixed_point.DampedRun:
    """Return the damped iteration, its waits by profile."""
    solver_map, group = build_map(net, queue)
    count = len(solver_map.tiers.slots)
    wait = np.zeros(count) if start is None else spread_to_tiers(start, group)
    run = fixed_point.damped(solver_map, wait, damping, tolerance, max_iterations)
    return run._replace(
        wait=spread_to_profiles(run.wait, group),
        history=np.where(group >= 0, run.history[:, group], 0.0),
    )


def solve_equilibrium(
    net: TieredNetwork,
    policy: Policy = "load_aware",
    method: Method = "newton",
    start: "Equilibrium | ArrayLike | None" = None,
    *,
    queue: QueueModel = _ERLANG_C,
    tolerance: float = TOLERANCE,
    damping: float = 0.5,
    max_iterations: int = 1000,
    history: bool = False,
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
        large for the load and then returns with ``converged`` False and the length of the cycle.
    start : Equilibrium or array_like [S], optional
        Waits to start from.
    queue : QueueModel
        How long requests wait at a node, given its traffic: :class:`ErlangC`, another module of
        this package, or a function of your own (see :class:`QueueModel`).
    tolerance : float
        Residual that counts as converged, above 0 and at most 1.
    damping : float
        Weight of the new waits in the damped iteration, above 0 and at most 1.
    max_iterations : int
        Most steps of the damped iteration, up to 1,000,000.
    history : bool
        Whether to keep the waits of each step of the damped iteration.

    Returns
    -------
    Equilibrium
        Look at ``converged`` and ``stable``.

    Raises
    ------
    ValueError
        If an argument breaks its rule, or `queue` returns what is no delay.
    TypeError
        If `net` is no network or `queue` no queue module.
    """
    check_network(net)
    CheckedQueue(queue)
    checked_choice("policy", policy, get_args(Policy))
    checked_choice("method", method, get_args(Method))
    tolerance = checked_number("tolerance", tolerance, 0.0, 1.0, strict=True)
    damping = checked_number("damping", damping, 0.0, 1.0, strict=True)
    max_iterations = checked_whole("max_iterations", max_iterations, 1, _MOST_ITERATIONS)
    if not isinstance(history, bool):
        raise ValueError(f"history is {history!r}: must be True or False")
    if history and (method != "damped" or policy != "load_aware"):
        raise ValueError(
            f"history is True: must be False with method {method!r} and policy {policy!r}; "
            "only the damped iteration of load-aware routing has one"
        )
    first = _start_wait(net, start)
    iterations = 0
    run = None
    saturated = np.zeros(net.num_profiles, np.bool_)
    if policy == "nearest":
        wait = np.zeros(net.num_profiles)
        association = nearest_association(net).probability
    else:
        if policy == "queue_unaware":
            wait = np.zeros(net.num_profiles)
        elif method == "newton":
            wait, saturated, iterations = _newton_wait(net, queue, first, tolerance)
        else:
            run = _damped_run(net, queue, first, tolerance, damping, max_iterations)
            wait, iterations = run.wait, run.iterations
        association = association_probability(net, wait)
    eq = _describe(net, wait, association, saturated, policy, queue, iterations, tolerance)
    if run is None:
        return eq
    return replace(eq, cycle_length=run.cycle_length, history=run.history if history else None)
