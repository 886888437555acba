"""The iteration behind the live equilibrium: levels give rates, rates give levels."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.association import type_costs
from edgegym.analytic.live_states import level_law, log_room, wait_fits
from edgegym.analytic.quadrature import rule
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]

_NODES = 8
_TAIL = 40.0
# Of the new levels; all at once can cycle.
_WEIGHT = 0.5


class LiveState(NamedTuple):
    """What an iteration changes; G factors."""

    factor: FloatArray  # [S, G] mean 1
    levels: FloatArray  # [S, G, K] probability of each level
    rates: FloatArray  # [S, G, K] requests/s at a node, before its factor
    occupancy_s: FloatArray  # [S]
    radio_s: FloatArray  # [S]
    association: FloatArray  # [S, Q]
    total: float  # share of the requests that can be served that the tiers take together


class CostGrid(NamedTuple):
    """Costs at which the integrals of one type are taken, J of them; levels of S tiers."""

    cost: FloatArray  # [J]
    weight: FloatArray  # [J]
    ahead: FloatArray  # [S, K, J] pi r^2 of what a node at each level may be away
    slope: FloatArray  # [S, K, J] its derivative in the cost
    radio_s: FloatArray  # [S, K, J] radio latency beyond the fixed part


def _grid(net: TieredNetwork, costs: FloatArray, breaks: FloatArray) -> CostGrid:
    """Return the grid for levels of these costs ``[S, K]`` with a panel between any two breaks.

    Empty for a type that no tier of the fleet may serve.
    """
    finite = costs[np.isfinite(costs)]
    density = float(net.tier_density @ np.isfinite(costs[:, 0]))
    if density == 0.0:
        nothing = np.empty((*costs.shape, 0))
        return CostGrid(np.empty(0), np.empty(0), nothing, nothing, nothing)
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
    return CostGrid(cost, weight, ahead, slope, beyond)


def _level_costs(net: TieredNetwork, wait_s: FloatArray) -> FloatArray:
    """Return prefill plus advertised wait, ``[Q, S, K]``; infinite where not servable."""
    return type_costs(net, np.zeros(net.num_profiles))[:, :, None] + wait_s


def seen_levels(state: LiveState) -> FloatArray:
    """Return the levels that requests find in each tier, ``[S, K]``."""
    return np.einsum("sg,sgk->sk", state.factor, state.levels) / state.factor.shape[1]


def _survival(
    net: TieredNetwork, state: LiveState, grid: CostGrid, s: int, seen_hazard: FloatArray
) -> FloatArray:
    """Return P(no node is at most this dear) around the nodes of tier s, by factor ``[G, J]``."""
    own = net.tier_density[s] * (state.levels[s] @ grid.ahead[s])
    return np.exp(-(seen_hazard.sum(axis=0) - seen_hazard[s] + own))


def _associate(net: TieredNetwork, state: LiveState, grids: list[CostGrid]) -> LiveState:
    """Return the state with the rates, and what follows from them, that its levels imply."""
    tiers, types = net.num_profiles, net.num_types
    rates = np.zeros(state.rates.shape)
    association = np.zeros((tiers, types))
    radio = np.zeros(tiers)
    share_of_factor = state.factor / state.factor.shape[1]
    seen = seen_levels(state)
    for q, grid in enumerate(grids):
        intensity = net.request_intensity * net.type_probabilities[q]
        hazard = net.tier_density[:, None] * np.einsum("sk,skj->sj", seen, grid.ahead)
        for s in np.flatnonzero(net.tier_density > 0).tolist():
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
    served = float(net.type_probabilities @ (net.tier_density @ net.can_serve > 0))
    total = float(chosen.sum()) / served
    mean_occupancy = np.divide(work, chosen, out=state.occupancy_s.copy(), where=used)
    mean_radio = np.divide(radio, chosen, out=np.zeros(tiers), where=used)
    return state._replace(
        rates=rates / total,
        occupancy_s=mean_occupancy,
        radio_s=mean_radio + net.radio_base_s * used,
        association=association / total,
        total=total,
    )


def _populate(net: TieredNetwork, state: LiveState) -> FloatArray:
    """Return the levels ``[S, G, K]`` that the rates of a state imply."""
    levels, count = np.zeros(state.levels.shape), state.rates.shape[-1]
    levels[net.tier_density == 0, :, 0] = 1.0
    for s in np.flatnonzero(net.tier_density > 0).tolist():
        slots = int(net.concurrency[s])
        room = log_room(slots, count, state.occupancy_s[s], state.radio_s[s])
        for g, factor in enumerate(state.factor[s]):
            level_law(state.rates[s, g], factor, room, slots, levels[s, g])
    return levels


def first_state(net: TieredNetwork, factor: FloatArray, levels: int) -> LiveState:
    """Return an idle fleet whose nodes have these factors ``[S, G]``."""
    shape = (*factor.shape, levels)
    start = np.zeros(shape)
    start[:, :, 0] = 1.0
    occupancy = net.occupancy_s @ net.type_probabilities
    association = np.zeros(net.prefill_s.shape)
    return LiveState(
        factor, start, np.zeros(shape), occupancy, np.zeros(len(occupancy)), association, 1.0
    )


def with_more_levels(state: LiveState, levels: int) -> LiveState:
    """Return the state with room for more levels, empty ones."""
    more = ((0, 0), (0, 0), (0, levels - state.levels.shape[2]))
    return state._replace(levels=np.pad(state.levels, more), rates=np.pad(state.rates, more))


def settle(
    net: TieredNetwork, state: LiveState, wait_s: FloatArray, tolerance: float, steps: int
) -> tuple[LiveState, int, float]:
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


def coverage_by_type(
    net: TieredNetwork, state: LiveState, wait_s: FloatArray, target: FloatArray
) -> FloatArray:
    """Return the share of each type within its target, less the fixed radio latency, ``[Q]``."""
    costs = _level_costs(net, wait_s)
    covered = np.zeros(net.num_types)
    seen = seen_levels(state)
    levels = wait_s.shape[1]
    for q in range(net.num_types):
        limits = target[q] + wait_s
        grid = _grid(net, costs[q], limits.ravel())
        hazard = net.tier_density[:, None] * np.einsum("sk,skj->sj", seen, grid.ahead)
        for s in np.flatnonzero((net.tier_density > 0) & np.isfinite(costs[q, :, 0])).tolist():
            slack = limits[s][:, None] - grid.cost
            fits = np.empty(slack.shape)
            slots = int(net.concurrency[s])
            wait_fits(slack, slots, levels, state.occupancy_s[s], state.radio_s[s], fits)
            free = _survival(net, state, grid, s, hazard) * grid.weight
            found = net.tier_density[s] * state.levels[s]
            inside = (free * (found @ (grid.slope[s] * fits))).sum(axis=1)
            covered[q] += state.factor[s] @ inside / len(inside)
    return covered / state.total
