"""How far away the serving node is: distance laws [26] and the decision boundary [46]."""

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.association import (
    Association,
    cost_association,
    nearest_association,
    nearest_density,
    type_costs,
)
from edgegym.analytic.distance_integrals import (
    cumulative_shares,
    relative_density,
    share_quantiles,
)
from edgegym.analytic.equilibrium import Equilibrium, assumed_wait
from edgegym.analytic.pieces import Pieces, all_panel_sums, build_pieces
from edgegym.world.network import TieredNetwork, checked_numbers, checked_whole

FloatArray = NDArray[np.float64]

_FARTHEST_KM = 1e12


class _PairLaw(Protocol):
    """Distance given the type and the tier that serves it; results are ``[N, S, Q]``."""

    def density(self, r_km: FloatArray) -> FloatArray: ...

    def cdf(self, r_km: FloatArray) -> FloatArray: ...

    def quantile(self, shares: FloatArray) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class _CostLaw:
    """Requests go to the node of least cost: each tier's law depends on all tiers' costs."""

    pieces: Pieces
    upto: FloatArray
    alpha: float

    @classmethod
    def at(cls, net: TieredNetwork, wait_s: FloatArray) -> "_CostLaw":
        cost = type_costs(net, wait_s)
        density = np.tile(net.tier_density, (len(cost), 1))
        pieces = build_pieces(cost, density, net.radio_xi, net.radio_alpha)
        return cls(pieces, all_panel_sums(pieces), net.radio_alpha)

    def _empty(self, count: int) -> FloatArray:
        types, tiers = self.pieces.cost.shape
        return np.full((count, tiers, types), np.nan)

    def density(self, r_km: FloatArray) -> FloatArray:
        result = self._empty(len(r_km))
        relative_density(self.pieces, self.upto, self._radio(r_km), result)
        tier_density = self.pieces.density.T
        return 2.0 * math.pi * tier_density * r_km[:, None, None] * result

    def cdf(self, r_km: FloatArray) -> FloatArray:
        result = self._empty(len(r_km))
        cumulative_shares(self.pieces, self.upto, self._radio(r_km), result)
        return result

    def quantile(self, shares: FloatArray) -> FloatArray:
        result = self._empty(len(shares))
        share_quantiles(self.pieces, self.upto, shares, result)
        return (result / self.pieces.xi) ** (1.0 / self.alpha)

    def _radio(self, r_km: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return self.pieces.xi * r_km**self.alpha


@dataclass(frozen=True, eq=False)
class _RayleighLaw:
    """Requests go to the nearest node that may serve them: all tiers have one law per type."""

    nodes_per_km2: FloatArray
    """Density of the nodes that may serve each type, as ``[S, Q]``."""

    def density(self, r_km: FloatArray) -> FloatArray:
        slope = 2.0 * math.pi * self.nodes_per_km2 * r_km[:, None, None]
        return slope * np.exp(-self._mean(r_km))

    def cdf(self, r_km: FloatArray) -> FloatArray:
        return -np.expm1(-self._mean(r_km))

    def quantile(self, shares: FloatArray) -> FloatArray:
        return np.sqrt(-np.log1p(-shares[:, None, None]) / (math.pi * self.nodes_per_km2))

    def _mean(self, r_km: FloatArray) -> FloatArray:
        return math.pi * self.nodes_per_km2 * r_km[:, None, None] ** 2


@dataclass(frozen=True, eq=False)
class DistanceLaw:
    """Distance between a request and the node that serves it [26].

    Laws of a pair are given the request's type and the tier that serves it; they are NaN for pairs
    that never occur. The overall laws are over all requests that are served.

    Attributes
    ----------
    probability : float64 [S, Q]
        Probability that a request of type q is served by tier s.
    mean_km : float64 [S, Q]
        Mean distance of each pair; NaN for pairs that never occur.
    overall_mean_km : float
        Mean over all requests that are served; 0 if none is.
    """

    probability: FloatArray
    mean_km: FloatArray
    overall_mean_km: float
    _weight: FloatArray = field(repr=False)
    _law: _PairLaw = field(repr=False)

    def density(self, r_km: ArrayLike) -> FloatArray:
        """Return the probability density of each pair's distance, per km.

        Parameters
        ----------
        r_km : array_like [...]
            Distances, from 0 to 1e12 km.

        Returns
        -------
        float64 [..., S, Q]
            NaN for pairs that never occur.

        Raises
        ------
        ValueError
            If a distance is out of range.
        """
        distance = _checked_distances("r_km", r_km)
        return self._spread(self._law.density(distance.ravel()), distance.shape)

    def cdf(self, r_km: ArrayLike) -> FloatArray:
        """Return the probability that each pair's distance is at most `r_km`.

        Parameters
        ----------
        r_km : array_like [...]
            Distances, from 0 to 1e12 km.

        Returns
        -------
        float64 [..., S, Q]
            NaN for pairs that never occur.

        Raises
        ------
        ValueError
            If a distance is out of range.
        """
        distance = _checked_distances("r_km", r_km)
        return self._spread(self._law.cdf(distance.ravel()), distance.shape)

    def quantile(self, share: ArrayLike) -> FloatArray:
        """Return the distance in km that this share of each pair's requests does not exceed.

        Parameters
        ----------
        share : array_like [...]
            Greater than 0 and less than 1.

        Returns
        -------
        float64 [..., S, Q]
            NaN for pairs that never occur.

        Raises
        ------
        ValueError
            If a share is not between 0 and 1.
        """
        shares, shape = _checked_shares(share)
        return self._spread(self._law.quantile(shares), shape)

    def overall_density(self, r_km: ArrayLike) -> FloatArray:
        """Return the density of the distance over all served requests, per km, ``[...]``.

        0 if no request is served; see :meth:`density`.
        """
        return self._mixed(self.density(r_km))

    def overall_cdf(self, r_km: ArrayLike) -> FloatArray:
        """Return the share of all served requests within `r_km`, ``[...]``.

        0 if no request is served; see :meth:`cdf`.
        """
        return self._mixed(self.cdf(r_km))

    def overall_quantile(self, share: ArrayLike) -> FloatArray:
        """Return the distance in km that this share of all served requests does not exceed.

        Shaped as `share`; NaN if no request is served; see :meth:`quantile`.
        """
        # Imported here: scipy.optimize would slow down every import of the analytic model.
        from scipy.optimize import root_scalar

        shares, shape = _checked_shares(share)
        if not self._weight.any():
            return np.full(shape, np.nan)
        used = self._weight > 0
        result = np.empty(len(shares))
        for i, pairs in enumerate(self._law.quantile(shares)):
            # The mixture's quantile is between those of its parts.
            low, high = float(pairs[used].min()), float(pairs[used].max())

            def excess(r_km: float, goal: float = shares[i]) -> float:
                return float(self.overall_cdf(r_km)) - goal

            if excess(low) >= 0:
                result[i] = low
            elif excess(high) <= 0:
                result[i] = high
            else:
                result[i] = root_scalar(excess, bracket=(low, high), xtol=1e-14, rtol=1e-14).root
        return result.reshape(shape)

    def _spread(self, pairs: FloatArray, shape: tuple[int, ...]) -> FloatArray:
        found = np.where(self.probability > 0, pairs, np.nan)
        return found.reshape(*shape, *self.probability.shape)

    def _mixed(self, pairs: FloatArray) -> FloatArray:
        return np.where(self._weight > 0, pairs * self._weight, 0.0).sum(axis=(-2, -1))


def _checked_distances(name: str, value: ArrayLike) -> FloatArray:
    distance = checked_numbers(name, value, "[...]")
    if not ((distance >= 0) & (distance <= _FARTHEST_KM)).all():
        raise ValueError(f"{name} is {value!r}: must be finite and at least 0, at most 1e12")
    return distance


def _checked_shares(share: ArrayLike) -> tuple[FloatArray, tuple[int, ...]]:
    shares = checked_numbers("share", share, "[...]")
    if not ((shares > 0) & (shares < 1)).all():
        raise ValueError(f"share is {share!r}: must be greater than 0 and less than 1")
    return shares.ravel(), shares.shape


def _cost_parts(net: TieredNetwork, wait_s: FloatArray) -> tuple[Association, _PairLaw]:
    return cost_association(net, wait_s), _CostLaw.at(net, wait_s)


def _nearest_parts(net: TieredNetwork) -> tuple[Association, _PairLaw]:
    density = np.broadcast_to(nearest_density(net), net.prefill_s.shape)
    law = _RayleighLaw(np.where(density > 0, density, np.nan))
    return nearest_association(net), law


def distance_law(net: TieredNetwork, wait_s: "Equilibrium | ArrayLike") -> DistanceLaw:
    """Return the laws of the distance to the serving node [26].

    Parameters
    ----------
    net : TieredNetwork
    wait_s : Equilibrium or array_like [S]
        Advertised waits in seconds, zeros for routing that does not look at queues; or an
        equilibrium, whose policy and assumed waits count.

    Returns
    -------
    DistanceLaw

    Raises
    ------
    ValueError
        If waits have another shape or are negative or not finite.
    TypeError
        If `net` is no network.
    """
    wait = assumed_wait(net, wait_s)
    nearest = isinstance(wait_s, Equilibrium) and wait_s.policy == "nearest"
    association, law = _nearest_parts(net) if nearest else _cost_parts(net, wait)
    joint = association.probability * net.type_probabilities
    used = joint > 0
    weight = joint / joint.sum() if used.any() else joint
    return DistanceLaw(
        probability=association.probability,
        mean_km=association.mean_distance_km,
        overall_mean_km=float((weight[used] * association.mean_distance_km[used]).sum()),
        _weight=weight,
        _law=law,
    )


def decision_boundary(
    net: TieredNetwork,
    distance_km: ArrayLike,
    *,
    request_type: int,
    profile: int,
    rival: int,
    wait_s: "Equilibrium | ArrayLike | None" = None,
) -> FloatArray:
    """Return how far a node of one profile may be to win against a node of another [46].

    A node of `profile` is preferred to a node of `rival` at ``distance_km`` up to the distance
    ``((distance_km ** alpha + (cost of rival - cost of profile) / xi)+) ** (1 / alpha)``, the
    costs being prefill plus wait.

    Parameters
    ----------
    net : TieredNetwork
    distance_km : array_like [...]
        Distances of the rival's node, from 0 to 1e12 km.
    request_type, profile, rival : int
        Indices of the type and of the two profiles.
    wait_s : Equilibrium or array_like [S], optional
        Advertised waits in seconds (of an equilibrium: those that it assumes); 0 by default.

    Returns
    -------
    float64 [...]
        In km. 0 where the rival wins even against a node at no distance, or `profile` may not
        serve the type; infinite where `rival` may not serve it.

    Raises
    ------
    ValueError
        If a distance or a wait is negative or not finite, an index is out of range, or neither
        profile may serve the type.
    TypeError
        If `net` is no network.
    """
    wait = assumed_wait(net, wait_s)
    q = checked_whole("request_type", request_type, 0, net.num_types - 1)
    own = checked_whole("profile", profile, 0, net.num_profiles - 1)
    other = checked_whole("rival", rival, 0, net.num_profiles - 1)
    distance = _checked_distances("distance_km", distance_km)
    if not net.can_serve[[own, other], q].any():
        raise ValueError(f"servable[[{own}, {other}], {q}] is false: neither profile may serve it")
    if not net.can_serve[own, q]:
        return np.zeros(distance.shape)
    if not net.can_serve[other, q]:
        return np.full(distance.shape, np.inf)
    lead = (net.prefill_s[other, q] - net.prefill_s[own, q]) + (wait[other] - wait[own])
    alpha = net.radio_alpha
    # In units of the rival's distance, which to a large power may be no number.
    with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
        gain = lead / net.radio_xi / distance**alpha
        scaled = distance * np.maximum(1.0 + gain, 0.0) ** (1.0 / alpha)
        alone = np.maximum(lead / net.radio_xi, 0.0) ** (1.0 / alpha)
    return np.where(np.isfinite(gain), scaled, alone)
