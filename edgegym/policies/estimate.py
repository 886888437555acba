"""The analytic model as a controller uses it: from observed rates to the best mix."""

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from edgegym.policies.aggregate import group_means, merge_types

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.world.network import TieredNetwork
    from edgegym.world.scenario import Scenario

# A search takes time in proportion to types, and a controller solves all the time.
_MOST_TYPES = 16
# Neighbours that a search may solve in vain: the first-order ranking is good, and the next
# re-solve goes on where this one ended.
_SCREEN = 4
# A quiet moment still has to be a network: the model needs some requests of every family's kind.
_LEAST_SHARE_OF_RATE = 1e-3


def _served_idle(
    network: "TieredNetwork", target_s: "NDArray[np.float64]"
) -> "NDArray[np.float64]":
    """Return the share of each type's requests that idle nodes of a profile serve in time, [S, Q].

    As if the profiles had equal shares of the nodes: the nearest holder is near enough (eq. 8).
    """
    slack_s = np.maximum(target_s - network.radio_base_s - network.prefill_s, 0.0)
    reach_km = (slack_s / network.radio_xi) ** (1.0 / network.radio_alpha)
    density_per_km2 = network.density_per_km2 / network.num_profiles
    return -np.expm1(-np.pi * density_per_km2 * reach_km**2)


class PlacementModel:
    """Best mix of profiles for given request rates of the families.

    Parameters
    ----------
    scenario : Scenario
        Gives the network, the target, and how a family's requests divide into types.
    """

    def __init__(self, scenario: "Scenario") -> None:
        world = scenario.compile()
        network = scenario.tiered_network()
        share, target_s = world.type_share, world.type_target_s
        served = _served_idle(network, target_s)
        group = merge_types(served, share, world.type_family, _MOST_TYPES)
        in_group = np.bincount(group, weights=share)
        self._base = replace(
            network,
            type_probabilities=in_group / in_group.sum(),
            input_tokens=group_means(world.input_tokens, share, group),
            hit_tokens=group_means(network.hit_tokens, share, group),
            decode_occupancy_s=group_means(world.decode_occupancy_s, share, group),
            prefill_s=group_means(network.prefill_s, share, group),
        )
        self._target_s = group_means(target_s, share, group)
        self._type_family = np.zeros(len(in_group), dtype=np.int64)
        self._type_family[group] = world.type_family
        self._type_share_in_family = in_group / world.family_share[self._type_family]
        self._area_km2 = scenario.region.area_km2
        self.mean_rate_per_s = float(world.mean_rate_per_s)
        """Long-run mean requests/s, whole region."""
        self._mean_nodes = float(world.mean_nodes)
        self.long_run: NDArray[np.float64] = world.mean_rate_per_s * world.family_share
        """Long-run mean requests/s of each family, whole region, ``[F]``."""

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
        from edgegym.analytic import optimize_placement

        nodes = self._mean_nodes if nodes is None else nodes
        result = optimize_placement(
            self.network(family_rates_per_s, nodes),
            ttft_target_s=self._target_s,
            start=start,
            step=1.0 / nodes,
            screen=_SCREEN,
        )
        return result.probabilities

    @cached_property
    def long_run_optimum(self) -> "NDArray[np.float64]":
        """Best mix for the long-run mean demand, ``[S]``."""
        return self.optimum(self.long_run)
