"""The analytic model as a controller uses it: from observed rates to the best mix."""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.world.network import TieredNetwork
    from edgegym.world.scenario import Scenario

# Neighbours that a search may solve in vain: the first-order ranking is good, and the next
# re-solve goes on where this one ended.
_SCREEN = 4
# A quiet moment still has to be a network: the model needs some requests of every family's kind.
_LEAST_SHARE_OF_RATE = 1e-3


class PlacementModel:
    """Best mix of profiles for given request rates of the families.

    Parameters
    ----------
    scenario : Scenario
        Gives the network, the target, and how a family's requests divide into types.
    """

    def __init__(self, scenario: "Scenario") -> None:
        world = scenario.compile()
        self._base = scenario.tiered_network()
        self.target_s: NDArray[np.float64] = world.type_target_s
        """TTFT target of each request type, ``[Q]``."""
        self._type_family = world.type_family
        self._type_share_in_family = world.type_share_in_family
        self._area_km2 = scenario.region.area_km2
        self.mean_rate_per_s = float(world.mean_rate_per_s)
        """Long-run mean requests/s, whole region."""
        self._mean_nodes = float(world.mean_nodes)
        self.long_run: NDArray[np.float64] = world.mean_rate_per_s * world.family_share
        """Long-run mean requests/s of each family, whole region, ``[F]``."""
        self.size = self._base.num_profiles * self._base.num_types
        """Pairs of profile and type; a search takes time about in proportion."""

    def observed(self, view: "FleetView") -> "NDArray[np.float64]":
        """Return the observed requests/s of each family, whole region, ``[F]``."""
        return view.relative_family_demand * self.mean_rate_per_s

    def network(self, family_rates_per_s: "NDArray[np.float64]", nodes: float) -> "TieredNetwork":
        """Return the network with these requests/s of each family, ``[F]``, and so many nodes."""
        rates = family_rates_per_s + _LEAST_SHARE_OF_RATE * self.long_run
        total = float(rates.sum())
        shares = (rates / total)[self._type_family] * self._type_share_in_family
        return replace(
            self._base,
            density_per_km2=nodes / self._area_km2,
            request_intensity=total / self._area_km2,
            type_probabilities=shares / shares.sum(),
        )

    def optimum(
        self,
        family_rates_per_s: "NDArray[np.float64]",
        nodes: float | None = None,
        start: "NDArray[np.float64] | None" = None,
    ) -> "NDArray[np.float64]":
        """Return the mix with the best coverage at the load-association equilibrium.

        Parameters
        ----------
        family_rates_per_s : ndarray, shape [F]
            Requests/s over the whole region.
        nodes : float, optional
            Nodes that serve, by default the mean number.
        start : ndarray, shape [S], optional
            Mix from which the search starts.

        Returns
        -------
        ndarray, shape [S]
            Share of the nodes that should hold each profile.
        """
        from edgegym.analytic import Exchange, optimize_placement

        nodes = self._mean_nodes if nodes is None else nodes
        result = optimize_placement(
            self.network(family_rates_per_s, nodes),
            ttft_target_s=self.target_s,
            method=Exchange(step=1.0 / nodes, screen=_SCREEN),
            start=start,
        )
        return result.probabilities

    @cached_property
    def long_run_optimum(self) -> "NDArray[np.float64]":
        """Best mix for the long-run mean demand, ``[S]``."""
        return self.optimum(self.long_run)
