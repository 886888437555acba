"""The equilibrium of a fleet whose nodes advertise their own backlog, live.

The load-association equilibrium lets every node of a tier advertise the tier's mean wait. A router
with live telemetry does better: it sees which node is free now. Here each tier is split into levels
of backlog. Three things determine each other:

* The levels that a request finds (:mod:`edgegym.analytic.live_states`) are tiers of their own in
  the association law, with the tier's density times the probability of the level.
* The law gives the rate at which a node at each level gets requests; it falls with the level.
* These rates give the probability of each level.

Nodes differ in the size of their cells, and neighbours are alike: where nodes of a tier are rare,
all of them have large cells and are loaded. So each node has a factor, its share of requests over
the mean, with the variance of :mod:`edgegym.analytic.cells` at the mean advertised waits; a request
finds a factor the more often, the larger it is; and all nodes of one tier within its sight have the
same. The factors of different tiers are independent; the tiers are treated one at a time, each
against the mixture of the others.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import check_network, checked_target
from edgegym.analytic.association import type_costs
from edgegym.analytic.cells import cells_at_costs
from edgegym.analytic.critical import lp_intensity
from edgegym.analytic.live_iteration import (
    LiveState,
    coverage_by_type,
    first_state,
    seen_levels,
    settle,
    with_more_levels,
)
from edgegym.analytic.load_spread import equal_parts
from edgegym.world.network import TieredNetwork, checked_number, checked_numbers, checked_whole

FloatArray = NDArray[np.float64]

_FACTORS = 8
_FIRST_LEVELS, _MOST_LEVELS = 32, 256
_LAST_LEVEL = 1e-6
# Rounds of levels at given variances and variances at given levels.
_MOST_ROUNDS = 20
_SAME_VARIANCE = 2e-3
_ROUGH = 1e-4
_MOST_SLOTS = 2000


@dataclass(frozen=True, eq=False)
class LiveEquilibrium:
    """A fleet's long-run state when routing sees each node's backlog.

    Attributes
    ----------
    association : float64 [S, Q]
        Probability that a request of type q is served by tier s.
    level_probability : float64 [S, K]
        Probability that a node of the tier is at each level; level 0: a free slot for the next.
    seen_level_probability : float64 [S, K]
        The same of the nodes that requests find: those with large cells count more.
    level_wait_s : float64 [S, K]
        The wait that each level advertises.
    mean_advertised_wait_s : float64 [S]
        Its mean over the nodes that requests find.
    arrival_rate_per_node : float64 [S]
        Requests/s, mean over the nodes.
    utilization_mean, utilization_deviation : float64 [S]
        Mean and standard deviation between nodes of the long-run share of slots in use.
    mean_occupancy_s, mean_radio_s : float64 [S]
        Mean time in a slot and on the way, of the requests of each tier.
    relative_variance : float64 [S]
        Variance of the nodes' factors.
    defect : float
        Requests that the tiers, treated one at a time, leave over (as a share); rates and coverage
        are scaled by it. 0 without variance.
    iterations : int
    residual : float
        Largest change of a level's probability in the last iteration.
    converged : bool
        False also under overload, where backlogs grow without limit: the values are then those of
        backlogs that end at the last level.
    """

    association: FloatArray
    level_probability: FloatArray
    seen_level_probability: FloatArray
    level_wait_s: FloatArray
    mean_advertised_wait_s: FloatArray
    arrival_rate_per_node: FloatArray
    utilization_mean: FloatArray
    utilization_deviation: FloatArray
    mean_occupancy_s: FloatArray
    mean_radio_s: FloatArray
    relative_variance: FloatArray
    defect: float
    iterations: int
    residual: float
    converged: bool
    _net: TieredNetwork = field(repr=False)
    _state: LiveState = field(repr=False)

    def coverage_by_type(self, ttft_target_s: ArrayLike) -> FloatArray:
        """Return the share of each type's requests with TTFT within the target, ``[Q]``.

        Parameters
        ----------
        ttft_target_s : float or array_like [Q]
            For all types or for each.

        Raises
        ------
        ValueError
            If the target is negative or has another shape.
        """
        target = checked_target(self._net, ttft_target_s) - self._net.radio_base_s
        return coverage_by_type(self._net, self._state, self.level_wait_s, target)

    def coverage(self, ttft_target_s: ArrayLike) -> float:
        """Return the share of all requests with TTFT within the target.

        Parameters
        ----------
        ttft_target_s : float or array_like [Q]
            For all types or for each.

        Raises
        ------
        ValueError
            If the target is negative or has another shape.
        """
        return float(self.coverage_by_type(ttft_target_s) @ self._net.type_probabilities)


def _factors(variance: FloatArray) -> FloatArray:
    parts = _FACTORS if variance.any() else 1
    return np.stack([equal_parts(float(value), parts) for value in variance])


def _checked_variance(net: TieredNetwork, value: ArrayLike) -> FloatArray:
    variance = checked_numbers("relative_variance", value, "[S]")
    if variance.shape != (net.num_profiles,) or not ((variance >= 0) & (variance <= 100)).all():
        raise ValueError(
            f"relative_variance is {value!r}: must be [S] numbers of at least 0, at most 100"
        )
    return variance


def _described(
    net: TieredNetwork,
    state: LiveState,
    wait_s: FloatArray,
    variance: FloatArray,
    iterations: int,
    residual: float,
    converged: bool,
) -> LiveEquilibrium:
    rate = state.factor * np.einsum("sgk,sgk->sg", state.levels, state.rates)
    utilization = rate * (state.occupancy_s / net.concurrency)[:, None]
    seen = seen_levels(state)
    return LiveEquilibrium(
        association=state.association,
        level_probability=state.levels.mean(axis=1),
        seen_level_probability=seen,
        level_wait_s=wait_s,
        mean_advertised_wait_s=(seen * wait_s).sum(axis=1),
        arrival_rate_per_node=rate.mean(axis=1),
        utilization_mean=utilization.mean(axis=1),
        utilization_deviation=utilization.std(axis=1),
        mean_occupancy_s=state.occupancy_s,
        mean_radio_s=state.radio_s,
        relative_variance=variance,
        defect=1.0 - state.total,
        iterations=iterations,
        residual=residual,
        converged=converged,
        _net=net,
        _state=state,
    )


def solve_live_equilibrium(
    net: TieredNetwork,
    *,
    relative_variance: ArrayLike | None = None,
    tolerance: float = 1e-8,
    max_iterations: int = 1000,
) -> LiveEquilibrium:
    """Solve for the state of a fleet whose router sees each node's backlog, live.

    A node advertises max(0, n - c + 1) / (c mu), with n the requests on the way, queued and in a
    slot and mu the service rate of the long-run mix of types, as the simulator's ``backlog`` does.
    Service is exponential with the mean occupancy of the tier's requests.

    Parameters
    ----------
    net : TieredNetwork
        With at most 2000 slots a node.
    relative_variance : array_like [S], optional
        Variance of the nodes' shares of requests, over the squared mean, at most 100; by default
        that of the cells at the mean advertised waits. Zeros treat all nodes of a tier as equal.
    tolerance : float
        Change of a level's probability that counts as converged, above 0 and at most 1.
    max_iterations : int
        Most iterations for given variances, up to 1,000,000.

    Returns
    -------
    LiveEquilibrium
        Look at ``converged``.

    Raises
    ------
    ValueError
        If an argument breaks its rule, a node has too many slots, or there are no requests that
        the fleet may serve.
    TypeError
        If `net` is no network.
    """
    check_network(net)
    tolerance = checked_number("tolerance", tolerance, 0.0, 1.0, strict=True)
    steps = checked_whole("max_iterations", max_iterations, 1, 10**6)
    if net.concurrency.max() > _MOST_SLOTS:
        raise ValueError(f"concurrency is {net.concurrency}: must be at most {_MOST_SLOTS} here")
    if net.request_intensity == 0.0:
        raise ValueError("request_intensity is 0: must be greater than 0 here")
    if not (net.type_probabilities @ (net.tier_density @ net.can_serve > 0)) > 0:
        raise ValueError("servable: no tier of the fleet may serve any of the requests")
    given = None if relative_variance is None else _checked_variance(net, relative_variance)
    # No number of levels is enough then, and each doubling takes several times as long.
    overloaded = net.request_intensity >= lp_intensity(net)
    per_level = (net.occupancy_s @ net.type_probabilities) / net.concurrency
    zero_wait = type_costs(net, np.zeros(net.num_profiles))
    variance = cells_at_costs(net, zero_wait).relative_variance if given is None else given
    levels = _FIRST_LEVELS
    state = first_state(net, _factors(variance), levels)
    iterations, change, settled = 0, np.inf, False
    for _ in range(_MOST_ROUNDS):
        wait = per_level[:, None] * np.arange(levels)
        goal = tolerance if settled else max(tolerance, _ROUGH)
        state, made, change = settle(net, state, wait, goal, steps)
        iterations += made
        if seen_levels(state)[:, -1].max() > _LAST_LEVEL:
            if levels == _MOST_LEVELS or overloaded:
                break
            levels *= 2
            state = with_more_levels(state, levels)
        elif settled:
            break
        elif given is not None:
            settled = True
        else:
            mean_wait = (seen_levels(state) * wait).sum(axis=1)
            found = cells_at_costs(net, type_costs(net, mean_wait)).relative_variance
            settled = bool((np.abs(found - variance) <= _SAME_VARIANCE * (1.0 + variance)).all())
            if not settled:
                variance = found
                state = state._replace(factor=_factors(variance))
    wait = per_level[:, None] * np.arange(levels)
    converged = settled and change <= tolerance and seen_levels(state)[:, -1].max() <= _LAST_LEVEL
    return _described(net, state, wait, variance, iterations, change, bool(converged))
