"""Policies that reach a fixed mix of profiles and hold it."""

from typing import TYPE_CHECKING

import numpy as np

from edgegym.policies.base import CounterRandom, Memory, Policy
from edgegym.world.rounding import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.world.scenario import Scenario


def close_largest_deficit(
    view: "FleetView",
    target: "NDArray[np.int64]",
    move_bytes: "NDArray[np.int64]",
    random: CounterRandom,
) -> int:
    """Return the move that closes the largest deficit of a placement, or the no-op.

    The cheapest migration to the target is planned; of its moves that are legal now, the one to
    the profile that lacks most nodes is made, at a random node of those that may give way.

    Parameters
    ----------
    view : FleetView
        The fleet now.
    target : ndarray of int64, shape [S]
        Nodes that should hold each profile; adds up to the up nodes.
    move_bytes : ndarray of int64, shape [S, S]
        Bytes of each move.
    random : CounterRandom
        Picks the node.
    """
    from edgegym.analytic.planning import migration_plan

    counts = view.profile_counts
    deficit = target - counts
    if not deficit.any():
        return view.no_op
    plan = migration_plan(counts, target, move_bytes)
    possible = view.legal & (plan.moves[view.profile] > 0)
    wanted = np.flatnonzero(possible.any(axis=0))
    if not len(wanted):
        return view.no_op
    profile = int(wanted[np.argmax(deficit[wanted])])
    node = random.choice(np.flatnonzero(possible[:, profile]))
    return view.action(node, profile)


class FixedMixPolicy(Policy):
    """Reaches a given mix by the cheapest moves, largest deficit first, and holds it.

    Parameters
    ----------
    scenario : Scenario
        The world.
    mix : ndarray, shape [S]
        Share of the up nodes that should hold each profile; adds up to 1.
    seed : int
        Picks the nodes that move.
    """

    def __init__(self, scenario: "Scenario", mix: "NDArray[np.float64]", seed: int = 0) -> None:
        super().__init__(scenario, seed)
        self.mix = np.asarray(mix, dtype=np.float64)
        self._move_bytes = scenario.compile().move_bytes

    def decide(
        self, view: "FleetView", memory: Memory, random: CounterRandom
    ) -> tuple[int, Memory]:
        """Return the next move towards the mix."""
        target = largest_remainder(self.mix, int(view.up.sum()))
        return close_largest_deficit(view, target, self._move_bytes, random), memory


def uniform_policy(scenario: "Scenario", seed: int = 0) -> FixedMixPolicy:
    """Return the policy that gives each profile the same number of nodes, and holds them."""
    shares = np.full(len(scenario.profiles), 1.0 / len(scenario.profiles))
    return FixedMixPolicy(scenario, shares, seed)


def static_optimal_policy(scenario: "Scenario", seed: int = 0) -> FixedMixPolicy:
    """Return the policy that reaches the analytic optimum of the long-run means, and holds it."""
    from edgegym.policies.estimate import PlacementModel

    model = PlacementModel(scenario)
    return FixedMixPolicy(scenario, model.optimum(model.long_run), seed)
