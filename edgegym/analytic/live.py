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
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.association import check_network, type_costs
from edgegym.analytic.cells import cells_at_costs
from edgegym.analytic.live_states import level_law, log_room, wait_fits
from edgegym.analytic.load_spread import equal_parts
from edgegym.analytic.performance import checked_target
from edgegym.analytic.quadrature import rule
from edgegym.world.network import TieredNetwork, checked_number, checked_numbers, checked_whole

FloatArray = NDArray[np.float64]

_FACTORS = 8
_NODES = 8
_TAIL = 40.0
_FIRST_LEVELS, _MOST_LEVELS = 32, 256
_LAST_LEVEL = 1e-6
_WEIGHT = 0.5
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
        False also under overload, where backlogs grow without limit.
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
    _state: "_State" = field(repr=False)

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
        return _coverage_by_type(self._net, self._state, self.level_wait_s, target)

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


class _State(NamedTuple):
    """What an iteration changes; G factors."""

    factor: FloatArray  # [S, G] mean 1
    levels: FloatArray  # [S, G, K] probability of each level
    rates: FloatArray  # [S, G, K] requests/s at a node, before its factor
    occupancy_s: FloatArray  # [S]
    radio_s: FloatArray  # [S]
    association: FloatArray  # [S, Q]
    total: float  # share of all requests that the tiers take together


class _Grid(NamedTuple):
    """Costs at which the integrals of one type are taken, J of them; levels of S tiers."""

    cost: FloatArray  # [J]
    weight: FloatArray  # [J]
    ahead: FloatArray  # [S, K, J] pi r^2 of what a node at each level may be away
    slope: FloatArray  # [S, K, J] its derivative in the cost
    radio_s: FloatArray  # [S, K, J] radio latency beyond the fixed part


def _grid(net: TieredNetwork, costs: FloatArray, breaks: FloatArray) -> _Grid:
    """Return the grid for levels of these costs ``[S, K]`` with a panel between any two breaks."""
    finite = costs[np.isfinite(costs)]
    density = float(net.tier_density @ np.isfinite(costs[:, 0]))
    reach = net.radio_xi * (_TAIL / (np.pi * density)) ** (net.radio_alpha / 2.0)
    ends = np.unique(np.concatenate([finite, breaks, [finite.max() + reach]]))
    points, weights = rule(net.radio_alpha, _NODES)
    lengths = np.diff(ends)
    cost = (ends[:-1, None] + lengths[:, None] * points).ravel()
    weight = (lengths[:, None] * weights).ravel()
    beyond = np.maximum(cost - costs[:, :, None], 0.0)
    power = 2.0 / net.radio_alpha
    ahead = np.pi * (beyond / net.radio_xi) ** power
    slope = np.divide(power * ahead, beyond, out=np.zeros(ahead.shape), where=beyond > 0)
    return _Grid(cost, weight, ahead, slope, beyond)


def _level_costs(net: TieredNetwork, wait_s: FloatArray) -> FloatArray:
    """Return prefill plus advertised wait, ``[Q, S, K]``; infinite where not servable."""
    return type_costs(net, np.zeros(net.num_profiles))[:, :, None] + wait_s


def _seen(state: _State) -> FloatArray:
    """Return the levels that requests find in each tier, ``[S, K]``."""
    return np.einsum("sg,sgk->sk", state.factor, state.levels) / state.factor.shape[1]


def _survival(net: TieredNetwork, state: _State, grid: _Grid, s: int, seen_hazard: FloatArray):
    """Return P(no node is at most this dear) around the nodes of tier s, by factor ``[G, J]``."""
    own = net.tier_density[s] * (state.levels[s] @ grid.ahead[s])
    return np.exp(-(seen_hazard.sum(axis=0) - seen_hazard[s] + own))


def _associate(net: TieredNetwork, state: _State, grids: list[_Grid]) -> _State:
    """Return the state with the rates, and what follows from them, that its levels imply."""
    tiers, types = net.num_profiles, net.num_types
    rates = np.zeros(state.rates.shape)
    association = np.zeros((tiers, types))
    radio = np.zeros(tiers)
    share_of_factor = state.factor / state.factor.shape[1]
    seen = _seen(state)
    for q, grid in enumerate(grids):
        intensity = net.request_intensity * net.type_probabilities[q]
        hazard = net.tier_density[:, None] * np.einsum("sk,skj->sj", seen, grid.ahead)
        for s in np.flatnonzero(net.tier_density > 0):
            free = _survival(net, state, grid, s, hazard) * grid.weight
            rates[s] += intensity * (free @ grid.slope[s].T)
            found = net.tier_density[s] * state.levels[s]
            taken = free * (found @ grid.slope[s])
            association[s, q] = share_of_factor[s] @ taken.sum(axis=1)
            late = free * (found @ (grid.slope[s] * grid.radio_s[s]))
            radio[s] += net.type_probabilities[q] * (share_of_factor[s] @ late.sum(axis=1))
    chosen = association @ net.type_probabilities
    used = chosen > 0
    work = (association * net.type_probabilities * net.occupancy_s).sum(axis=1)
    total = float(chosen.sum())
    mean_occupancy = np.divide(work, chosen, out=state.occupancy_s.copy(), where=used)
    mean_radio = np.divide(radio, chosen, out=np.zeros(tiers), where=used)
    return state._replace(
        rates=rates / total,
        occupancy_s=mean_occupancy,
        radio_s=mean_radio + net.radio_base_s * used,
        association=association / total,
        total=total,
    )


def _populate(net: TieredNetwork, state: _State) -> FloatArray:
    """Return the levels ``[S, G, K]`` that the rates of a state imply."""
    levels = np.zeros(state.levels.shape)
    levels[net.tier_density == 0, :, 0] = 1.0
    for s in np.flatnonzero(net.tier_density > 0):
        slots = int(net.concurrency[s])
        room = log_room(slots, levels.shape[2], state.occupancy_s[s], state.radio_s[s])
        for g, factor in enumerate(state.factor[s]):
            level_law(state.rates[s, g], factor, room, slots, levels[s, g])
    return levels


def _first_state(net: TieredNetwork, factor: FloatArray, levels: int) -> _State:
    shape = (*factor.shape, levels)
    start = np.zeros(shape)
    start[:, :, 0] = 1.0
    occupancy = net.occupancy_s @ net.type_probabilities
    association = np.zeros(net.prefill_s.shape)
    return _State(
        factor, start, np.zeros(shape), occupancy, np.zeros(len(occupancy)), association, 1.0
    )


def _longer(state: _State, levels: int) -> _State:
    """Return the state with room for more levels, empty ones."""
    more = ((0, 0), (0, 0), (0, levels - state.levels.shape[2]))
    return state._replace(levels=np.pad(state.levels, more), rates=np.pad(state.rates, more))


def _settle(
    net: TieredNetwork, state: _State, wait_s: FloatArray, tolerance: float, steps: int
) -> tuple[_State, int, float]:
    """Return the fixed point at these factors, the iterations made and the last change."""
    costs = _level_costs(net, wait_s)
    grids = [_grid(net, costs[q], np.empty(0)) for q in range(net.num_types)]
    change = np.inf
    for step in range(steps):
        state = _associate(net, state, grids)
        levels = _populate(net, state)
        change = float(np.abs(levels - state.levels).max())
        state = state._replace(levels=state.levels + _WEIGHT * (levels - state.levels))
        if change <= tolerance:
            return _associate(net, state, grids), step + 1, change
    return _associate(net, state, grids), steps, change


def _coverage_by_type(
    net: TieredNetwork, state: _State, wait_s: FloatArray, target: FloatArray
) -> FloatArray:
    costs = _level_costs(net, wait_s)
    covered = np.zeros(net.num_types)
    seen = _seen(state)
    levels = wait_s.shape[1]
    for q in range(net.num_types):
        limits = target[q] + wait_s
        grid = _grid(net, costs[q], limits.ravel())
        hazard = net.tier_density[:, None] * np.einsum("sk,skj->sj", seen, grid.ahead)
        for s in np.flatnonzero((net.tier_density > 0) & np.isfinite(costs[q, :, 0])):
            slack = limits[s][:, None] - grid.cost
            fits = np.empty(slack.shape)
            slots = int(net.concurrency[s])
            wait_fits(slack, slots, levels, state.occupancy_s[s], state.radio_s[s], fits)
            free = _survival(net, state, grid, s, hazard) * grid.weight
            found = net.tier_density[s] * state.levels[s]
            inside = (free * (found @ (grid.slope[s] * fits))).sum(axis=1)
            covered[q] += state.factor[s] @ inside / len(inside)
    return covered / state.total


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
    state: _State,
    wait_s: FloatArray,
    variance: FloatArray,
    iterations: int,
    residual: float,
    converged: bool,
) -> LiveEquilibrium:
    rate = state.factor * np.einsum("sgk,sgk->sg", state.levels, state.rates)
    utilization = rate * (state.occupancy_s / net.concurrency)[:, None]
    seen = _seen(state)
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
        If an argument breaks its rule, a node has too many slots or there are no requests.
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
    given = None if relative_variance is None else _checked_variance(net, relative_variance)
    per_level = (net.occupancy_s @ net.type_probabilities) / net.concurrency
    zero_wait = type_costs(net, np.zeros(net.num_profiles))
    variance = cells_at_costs(net, zero_wait).relative_variance if given is None else given
    levels = _FIRST_LEVELS
    state = _first_state(net, _factors(variance), levels)
    iterations, change, settled = 0, np.inf, False
    for _ in range(_MOST_ROUNDS):
        wait = per_level[:, None] * np.arange(levels)
        goal = tolerance if settled else max(tolerance, _ROUGH)
        state, made, change = _settle(net, state, wait, goal, steps)
        iterations += made
        if _seen(state)[:, -1].max() > _LAST_LEVEL:
            if levels == _MOST_LEVELS:
                break
            levels *= 2
            state = _longer(state, levels)
        elif settled:
            break
        elif given is not None:
            settled = True
        else:
            mean_wait = (_seen(state) * wait).sum(axis=1)
            found = cells_at_costs(net, type_costs(net, mean_wait)).relative_variance
            settled = bool((np.abs(found - variance) <= _SAME_VARIANCE * (1.0 + variance)).all())
            if not settled:
                variance = found
                state = state._replace(factor=_factors(variance))
    wait = per_level[:, None] * np.arange(levels)
    converged = settled and change <= tolerance and _seen(state)[:, -1].max() <= _LAST_LEVEL
    return _described(net, state, wait, variance, iterations, change, bool(converged))
