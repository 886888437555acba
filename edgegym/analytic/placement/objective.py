"""How good a mix of profiles is: its coverage at the load-association equilibrium [39], [49]."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import fixed_point
from edgegym.analytic.coverage import cost_coverage
from edgegym.analytic.grouping import build_tiers, spread_to_profiles, spread_to_tiers
from edgegym.analytic.newton import newton_step
from edgegym.analytic.quadrature import rule
from edgegym.analytic.queueing import node_queue
from edgegym.analytic.solver_map import COARSE_NODES
from edgegym.analytic.tier_map import Tiers, evaluate_map, tier_loads
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]

# A search compares mixes: it can do with less than the accuracy of a published value.
_SEARCH_NODES = 24
_SCORE_NODES = 16
_PROBE_NODES = 8
_SEARCH_TOLERANCE = 1e-7
_ROUNDS = 20
# Share that an empty profile gets while neighbours are compared: its queue is then well defined.
SEED_SHARE = 1e-6


@kernel
def mix_grade(tiers, wait, target, points, weights):
    """Return the coverage at these assumed waits, and the load beyond the slots over all slots."""
    count = wait.size
    rate = np.empty(count)
    load = np.empty(count)
    delay = np.empty(count)
    decay = np.empty(count)
    empty = np.empty((0, 0))
    tier_loads(tiers, wait, points, weights, rate, load, empty, empty)
    excess = 0.0
    capacity = 0.0
    for s in range(count):
        capacity += tiers.density[s] * tiers.slots[s]
        if load[s] >= tiers.slots[s]:
            excess += tiers.density[s] * (load[s] - tiers.slots[s])
        _, delay[s], decay[s] = node_queue(tiers.slots[s], rate[s], load[s], tiers.wait_scale)
    costs = np.empty(tiers.prefill.shape)
    for q in range(costs.shape[0]):
        for s in range(count):
            costs[q, s] = tiers.prefill[q, s] + wait[s]
    value = cost_coverage(
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
    return value, excess / capacity


class Settled(NamedTuple):
    """An equilibrium as a search solves it.

    Attributes
    ----------
    status : int
        How the solver ended: see :func:`edgegym.analytic.fixed_point.solve`.
    tiers, group
        The solver's view of the mix; see :func:`edgegym.analytic.grouping.build_tiers`.
    tier_wait : float64 [solver's tiers]
    wait : float64 [S]
        Waits of the profiles. Empty ones keep the wait that was given: a good start for when they
        get nodes.
    """

    status: int
    tiers: Tiers
    group: NDArray[np.int64]
    tier_wait: FloatArray
    wait: FloatArray


class Objective(Protocol):
    """What a search maximises.

    Waits are whatever array the objective solves a mix from; searches only pass them on.
    """

    def first_wait(self) -> FloatArray:
        """Return the waits to start from where none are known."""
        ...

    def assess(self, mix: FloatArray, wait: FloatArray) -> tuple[float, FloatArray]:
        """Return the score of a mix ``[S]`` and its waits, solved from these waits.

        Below 0 for a mix that does not carry the load, and the lower, the less it does;
        ``-inf`` where nothing was found.
        """
        ...

    def probe(self, mix: FloatArray, wait: FloatArray, profile: int, change: float) -> float:
        """Return about the score after a change of one share, the others held."""
        ...


@dataclass(frozen=True, eq=False)
class CoverageObjective:
    """Coverage at the load-association equilibrium, less a penalty beyond saturation.

    A saturated mix scores below every stable one (-1), and the lower, the larger the part of its
    load that exceeds its slots: searches find their way back to stability over this slope.

    Attributes
    ----------
    net : TieredNetwork
    target : float64 [present types]
        TTFT targets of the types that occur, less the fixed radio latency, in seconds.
    """

    net: TieredNetwork
    target: FloatArray

    @classmethod
    def for_network(cls, net: TieredNetwork, target_s: FloatArray) -> "CoverageObjective":
        """Return the objective for targets of all types ``[Q]``."""
        return cls(net, target_s[net.type_probabilities > 0] - net.radio_base_s)

    def first_wait(self) -> FloatArray:
        """Return no waits ``[S]``."""
        return np.zeros(self.net.num_profiles)

    def tiers(self, mix: FloatArray) -> tuple[Tiers, NDArray[np.int64]]:
        """Return the solver's view of the network with this mix."""
        return build_tiers(self.net, self.net.density_per_km2 * mix)

    def settle(self, mix: FloatArray, wait: FloatArray) -> "Settled":
        """Return the equilibrium of a mix ``[S]``, solved from these waits ``[S]``."""
        tiers, group = self.tiers(mix)
        tier_wait = spread_to_tiers(wait, group)
        status, _ = fixed_point.solve(
            tiers,
            tier_wait,
            warm=True,
            coarse=rule(self.net.radio_alpha, COARSE_NODES),
            fine=rule(self.net.radio_alpha, _SEARCH_NODES),
            tolerance=_SEARCH_TOLERANCE,
            rounds=_ROUNDS,
        )
        settled = np.where(group >= 0, spread_to_profiles(tier_wait, group), wait)
        return Settled(status, tiers, group, tier_wait, settled)

    def grade(self, tiers: Tiers, tier_wait: FloatArray) -> tuple[float, float]:
        """Return the coverage if requests are routed by these waits, and the excess load."""
        return mix_grade(tiers, tier_wait, self.target, *rule(self.net.radio_alpha, _SCORE_NODES))

    def assess(self, mix: FloatArray, wait: FloatArray) -> tuple[float, FloatArray]:
        """Return the score of a mix and its waits ``[S]``, solved from these waits."""
        settled = self.settle(mix, wait)
        if settled.status == fixed_point.FAILED:
            return -np.inf, wait
        value, excess = self.grade(settled.tiers, settled.tier_wait)
        if settled.status == fixed_point.OVERLOADED or excess > 0.0:
            value -= 1.0 + excess
        return value, settled.wait

    def probe(self, mix: FloatArray, wait: FloatArray, profile: int, change: float) -> float:
        """Return the score after a change of one share and one Newton step of the waits."""
        changed = mix.copy()
        changed[profile] = max(changed[profile] + change, SEED_SHARE)
        tiers, group = self.tiers(changed)
        points, weights = rule(self.net.radio_alpha, _PROBE_NODES)
        old = spread_to_tiers(wait, group)
        moved, gap, jacobian = old.copy(), np.empty(len(old)), np.empty((len(old), len(old)))
        evaluate_map(tiers, old, points, weights, gap, jacobian)
        newton_step(tiers, old, gap, jacobian, moved)
        value, excess = mix_grade(tiers, moved, self.target, points, weights)
        return value - 1.0 - excess if excess > 0.0 else value
