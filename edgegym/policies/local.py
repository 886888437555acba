"""Choosing the node by the demand around it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgegym.policies.base import CounterRandom
from edgegym.policies.transition import assign_profiles, largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.world.scenario import Scenario


def family_savings_s(scenario: "Scenario") -> "NDArray[np.float64]":
    """Return the mean prefill time that each profile saves a request of each family, ``[S, F]``."""
    world = scenario.compile()
    profiles = int(world.num_profiles)
    saved_s = (world.cold_prefill_s - world.prefill_s[:profiles]) * world.type_share_in_family
    families = np.zeros((int(world.num_types), int(world.num_families)))
    families[np.arange(len(families)), world.type_family] = 1.0
    return saved_s @ families


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """How much the demand around a node counts against the mix, and when a move is worth it.

    All are in units of the fleet's mean local value: the prefill seconds per second that a node
    saves in the long run if it holds what its neighbourhood's requests need.

    Attributes
    ----------
    mix_weight : float
        Price of half the squared distance (in nodes) between the placement and the target mix.
    hysteresis : float
        A move must be worth more than this.
    byte_weight : float
        Price of transferring as many bytes as the bucket can hold.
    """

    mix_weight: float = 0.1
    hysteresis: float = 0.1
    byte_weight: float = 0.0


class LocalDemand:
    """Makes the move that saves most prefill for the requests around its node.

    A move from profile s to t at node i is worth the prefill that it saves there,
    ``Σ_f near_demand[i, f] (saving[t, f] - saving[s, f])``, plus what it brings the placement nearer
    to the target mix, less what its transfer costs. So profiles follow local demand even when the
    mix is right: the first half of a swap pays by what it saves, the second mends the mix.

    Parameters
    ----------
    scenario : Scenario
        Gives savings, bytes and units.
    settings : LocalSettings
        Weights and threshold.
    """

    def __init__(self, scenario: "Scenario", settings: LocalSettings | None = None) -> None:
        world = scenario.compile()
        self.settings = settings or LocalSettings()
        self._savings_s = family_savings_s(scenario)
        self._move_share = world.move_bytes / world.burst_bytes
        per_node = world.mean_rate_per_s / world.mean_nodes * world.family_share
        self._unit = max(float(per_node @ self._savings_s.max(axis=0)), 1e-9)

    def choose(
        self, view: "FleetView", mix: "NDArray[np.float64]", random: CounterRandom
    ) -> int:
        """Return the legal move that is worth most, or the no-op if none is worth its cost."""
        del random
        if not view.legal.any():
            return view.no_op
        worth = np.where(view.legal, self.worth(view, mix), -np.inf)
        best = int(worth.argmax())
        if worth.flat[best] <= self.settings.hysteresis:
            return view.no_op
        return best

    def worth(self, view: "FleetView", mix: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return what each move is worth in mean local values, ``[N, S]``."""
        held = view.profile
        nodes = np.arange(len(held))
        local = view.near_demand_per_s @ self._savings_s.T / self._unit
        gain = local - local[nodes, held][:, None]
        deficit = mix * int(view.up.sum()) - view.profile_counts
        nearer = deficit[None, :] - deficit[held][:, None] - 1.0
        settings = self.settings
        return (
            gain + settings.mix_weight * nearer - settings.byte_weight * self._move_share[held]
        )
