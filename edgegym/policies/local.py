"""Choosing the node by the demand around it."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from edgegym.interface.layout import DEMAND_EWMA_S
from edgegym.interface.neighbourhood import neighbourhood_length_km
from edgegym.policies.base import CounterRandom
from edgegym.world.network import checked_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.analytic import Target
    from edgegym.policies.view import FleetView
    from edgegym.world.scenario import Scenario

_LARGEST = 1e9


def holding_savings_s(scenario: "Scenario") -> "NDArray[np.float64]":
    """Return the mean prefill time that each holding saves a request of each family, ``[H, F]``.

    Holdings are the profiles and, after them, what two profiles share: what a node keeps while the
    rest of a profile is on its way.
    """
    world = scenario.compile()
    saved_s = (world.cold_prefill_s - world.prefill_s) * world.type_share_in_family
    families = np.zeros((int(world.num_types), int(world.num_families)))
    families[np.arange(len(families)), world.type_family] = 1.0
    return saved_s @ families


def family_savings_s(scenario: "Scenario") -> "NDArray[np.float64]":
    """Return the mean prefill time that each profile saves a request of each family, ``[S, F]``."""
    return holding_savings_s(scenario)[: len(scenario.profiles)]


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
    prior_requests : float
        Requests around a node that count as much as the fleet's mean in judging its demand.
    crowding : float
        Each other node around that holds a family's state leaves ``exp(-crowding)`` of the demand
        for it; 0 counts all demand however many serve it.
    mix_tolerance : float
        Share of the nodes by which a profile may miss the target mix for nothing. The mix is the
        best for profiles at random places; where they follow local demand, others do better.
    mix_weight : float
        Price of half the squared miss beyond that, in nodes.
    hysteresis : float
        A move must be worth more than this: it pays for the time in which the node has neither.

    Raises
    ------
    ValueError
        If a value is negative or not finite.

    Notes
    -----
    The defaults were tuned on seeds 0 to 7 of the urban presets. Much mix weight or no crowding
    costs 2 to 8 points of coverage there; neighbouring values differ by less than their error.
    """

    prior_requests: float = 100.0
    crowding: float = 1.2
    mix_tolerance: float = 0.2
    mix_weight: float = 0.05
    hysteresis: float = 0.02

    def __post_init__(self) -> None:
        for field in ("prior_requests", "crowding", "mix_tolerance", "mix_weight", "hysteresis"):
            checked_number(field, getattr(self, field), 0.0, _LARGEST)


class LocalDemand:
    """Makes the move that saves most prefill for the requests around its node.

    A move of node i from profile s to t is worth the prefill that it saves there,
    ``Σ_f unserved[i, f] (saving[t, f] - saving[s, f])``, less what it takes the placement away from
    the target mix. Unserved is the nearby demand, discounted for the other nodes around that hold
    the same state. So profiles follow local demand even when the mix is right: the first half of a
    swap pays by what it saves, within the tolerance of the mix.

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
        self.unit_s = max(float(per_node @ best_s), 1e-12)
        """Mean local value: prefill seconds saved per second."""

    def choose(self, view: "FleetView", target: "Target", random: CounterRandom) -> int:
        """Return the legal move that is worth most, or the no-op if none is worth its cost."""
        del random
        worth = np.where(view.legal, self.worth(view, target), -np.inf)
        best = int(worth.argmax())
        return best if worth.flat[best] > self.settings.hysteresis else view.no_op

    def worth(
        self,
        view: "FleetView",
        target: "Target",
        nearby_per_s: "NDArray[np.float64] | None" = None,
    ) -> "NDArray[np.float64]":
        """Return what each move is worth in mean local values, ``[N, S]``.

        Parameters
        ----------
        view : FleetView
            The fleet now.
        target : Target
            What the fleet should look like, and for which demand.
        nearby_per_s : ndarray, shape [N, F], optional
            Demand around each node, by default :meth:`nearby_demand_per_s`.
        """
        held = view.profile
        unserved = self.unserved_demand_per_s(view, target, nearby_per_s)
        local = unserved @ self._savings_s.T / self.unit_s
        gain = local - np.take_along_axis(local, held[:, None], axis=1)
        nodes = int(view.up.sum())
        deficit = target.mix * nodes - view.profile_counts
        miss = self._miss(deficit, nodes)
        gaining = miss - self._miss(deficit - 1.0, nodes)
        losing = miss - self._miss(deficit + 1.0, nodes)
        return gain + self.settings.mix_weight * (gaining[None, :] + losing[held][:, None])

    def _miss(self, deficit: "NDArray[np.float64]", nodes: int) -> "NDArray[np.float64]":
        """Return half the squared deficits or surpluses beyond the tolerance, ``[S]``."""
        beyond = np.maximum(np.abs(deficit) - self.settings.mix_tolerance * nodes, 0.0)
        return 0.5 * beyond**2

    def unserved_demand_per_s(
        self,
        view: "FleetView",
        target: "Target",
        nearby_per_s: "NDArray[np.float64] | None" = None,
    ) -> "NDArray[np.float64]":
        """Return the nearby demand that other nodes leave to each node, requests/s ``[N, F]``."""
        if nearby_per_s is None:
            nearby_per_s = self.nearby_demand_per_s(view, target)
        holders = view.near_capacity / self._slots @ self._saved_part / self._own_weight
        others = np.maximum(holders - self._saved_part[view.profile], 0.0)
        return nearby_per_s * np.exp(-self.settings.crowding * others)

    def nearby_demand_per_s(self, view: "FleetView", target: "Target") -> "NDArray[np.float64]":
        """Return the demand around each node, requests/s ``[N, F]``.

        What was counted there, drawn towards the fleet's mean the more, the fewer requests were
        counted: few requests always look like a hotspot.
        """
        near = view.near_demand_per_s
        fleet = target.family_rates_per_s / max(int(view.up.sum()), 1)
        counted = 2.0 * DEMAND_EWMA_S / self._own_weight * near.sum(axis=1, keepdims=True)
        trust = counted / (counted + self.settings.prior_requests)
        return fleet + trust * (near - fleet)
