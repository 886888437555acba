"""Choosing the node by the demand around it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgegym.interface.neighbourhood import neighbourhood_length_km
from edgegym.policies.base import CounterRandom

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


def own_weight(scenario: "Scenario") -> float:
    """Return the mean weight of a node in the ``near_*`` features of its own neighbourhood.

    The weights ``exp(-(r / l)^alpha)`` of Poisson nodes add up to ``density π l² Γ(1 + 2 / alpha)``
    on average, beside the node's own 1.
    """
    length_km = neighbourhood_length_km(scenario)
    alpha = scenario.radio.alpha
    others = scenario.density_per_km2 * math.pi * length_km**2 * math.gamma(1.0 + 2.0 / alpha)
    return 1.0 / (1.0 + others)


@dataclass(frozen=True, kw_only=True)
class LocalSettings:
    """How much the demand around a node counts against the mix, and when a move is worth it.

    Worths are in units of the fleet's mean local value: the prefill seconds per second that a node
    would save in the long run if it held all that its neighbourhood asks for.

    Attributes
    ----------
    crowding : float
        Each other node around that holds a family's state leaves ``exp(-crowding)`` of the demand
        for it; 0 counts all demand however many serve it.
    mix_weight : float
        Price of half the squared distance (in nodes) between the placement and the target mix.
    hysteresis : float
        A move must be worth more than this: it pays for the time in which the node has neither.
    """

    crowding: float = 1.0
    mix_weight: float = 0.02
    hysteresis: float = 0.02


class LocalDemand:
    """Makes the move that saves most prefill for the requests around its node.

    A move of node i from profile s to t is worth the prefill that it saves there,
    ``Σ_f unserved[i, f] (saving[t, f] - saving[s, f])``, plus what it brings the placement nearer to
    the target mix. Unserved is the nearby demand, discounted for the other nodes around that hold
    the same state. So profiles follow local demand even when the mix is right: the first half of a
    swap pays by what it saves, the second mends the mix.

    Parameters
    ----------
    scenario : Scenario
        Gives savings, slots and units.
    settings : LocalSettings
        Weights and threshold.
    """

    def __init__(self, scenario: "Scenario", settings: LocalSettings | None = None) -> None:
        world = scenario.compile()
        self.settings = settings or LocalSettings()
        self._savings_s = family_savings_s(scenario)
        best_s = self._savings_s.max(axis=0)
        self._saved_part = self._savings_s / np.maximum(best_s, 1e-12)
        self._slots = world.slots.astype(np.float64)
        self._own_weight = own_weight(scenario)
        per_node = world.mean_rate_per_s / world.mean_nodes * world.family_share
        self._unit = max(float(per_node @ best_s), 1e-12)

    def choose(
        self, view: "FleetView", mix: "NDArray[np.float64]", random: CounterRandom
    ) -> int:
        """Return the legal move that is worth most, or the no-op if none is worth its cost."""
        del random
        worth = np.where(view.legal, self.worth(view, mix), -np.inf)
        best = int(worth.argmax())
        return best if worth.flat[best] > self.settings.hysteresis else view.no_op

    def worth(self, view: "FleetView", mix: "NDArray[np.float64]") -> "NDArray[np.float64]":
        """Return what each move is worth in mean local values, ``[N, S]``."""
        held = view.profile
        local = self.unserved_demand_per_s(view) @ self._savings_s.T / self._unit
        gain = local - np.take_along_axis(local, held[:, None], axis=1)
        deficit = mix * int(view.up.sum()) - view.profile_counts
        nearer = deficit[None, :] - deficit[held][:, None] - 1.0
        return gain + self.settings.mix_weight * nearer

    def unserved_demand_per_s(self, view: "FleetView") -> "NDArray[np.float64]":
        """Return the nearby demand that other nodes leave to each node, requests/s ``[N, F]``."""
        holders = view.near_capacity / self._slots @ self._saved_part / self._own_weight
        others = np.maximum(holders - self._saved_part[view.profile], 0.0)
        return view.near_demand_per_s * np.exp(-self.settings.crowding * others)
