"""How much ground each node serves: means and second moments of the cells.

The cell of a node for type q is the region whose requests of type q go to it. The association law
gives its mean area, ``association / density``. Nodes of one tier differ, as their surroundings do,
and what a node has to do is set by its own cell: this module gives the second moments.

Put a node of tier s at the origin (by Slivnyak's theorem the others are still Poisson). A request
at u, r = |u|, goes to it if no node of any tier t lies within

    reach_t(r) = ((r ** alpha + (b_s - b_t) / xi)+) ** (1 / alpha)

of u, where b is prefill plus advertised wait. Two requests, at u of type q and at v of type q', are
both its own if the union of the discs of each tier around the two points is empty, so

    E[|C_q| |C_q'|] = integral du dv exp(-sum_t density_t * |disc_t(u) union disc_t(v)|),

and the area of a union is that of the discs less that of their lens. Rotation leaves a
three-dimensional integral: both radii and the angle between them. The inner two give, on the way,
the mean area of the cell given that it serves a request at distance r.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.association import type_costs
from edgegym.analytic.equilibrium import Equilibrium, check_solved_for
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]

# Points per pair of radii: relative error of a second moment below 4e-4 (one tier, known exactly).
_RADII = 40
_FEWEST_RADII = 6
_ANGLES = 16
# A place this unlikely to be served by the node adds nothing.
_TAIL = 28.0


class Rings(NamedTuple):
    """The ground around a node of one tier, for requests of one type, as n rings."""

    radius_km: FloatArray  # [n]
    area_km2: FloatArray  # [n] quadrature weight: 2 pi r dr
    hazard: FloatArray  # [n] mean number of nodes that would be preferred to this one
    reach_km: FloatArray  # [n, S]

    @property
    def served_km2(self) -> FloatArray:
        """Mean area of the ring that the node serves, ``[n]``."""
        return self.area_km2 * np.exp(-self.hazard)


@dataclass(frozen=True, eq=False)
class CellSizes:
    """What a typical node of each tier serves, and how much that differs between nodes.

    Attributes
    ----------
    mean_area_km2 : float64 [S, Q]
        Mean area of the cell for each type; 0 for empty tiers.
    area_product_km4 : float64 [S, Q, Q]
        Mean of the product of the areas for two types.
    mean_load : float64 [S]
        Mean offered load of a node, in busy slots.
    load_variance : float64 [S]
        Its variance between nodes.
    """

    mean_area_km2: FloatArray
    area_product_km4: FloatArray
    mean_load: FloatArray
    load_variance: FloatArray

    @classmethod
    def of_areas(
        cls, net: TieredNetwork, mean_area_km2: FloatArray, area_product_km4: FloatArray
    ) -> "CellSizes":
        """Return the loads, too, that these moments mean in a network."""
        work = net.request_intensity * net.type_probabilities * net.occupancy_s
        load = (work * mean_area_km2).sum(axis=1)
        square = np.einsum("sq,sqp,sp->s", work, area_product_km4, work)
        variance = np.maximum(square - load**2, 0.0)
        return cls(mean_area_km2, area_product_km4, load, variance)

    @property
    def relative_variance(self) -> FloatArray:
        """Variance of the load over its mean squared, ``[S]``; 0 where a tier has no load.

        0.2802 for one tier: that of the area of a Poisson-Voronoi cell.
        """
        used = self.mean_load > 0
        square = np.where(used, self.mean_load, 1.0) ** 2
        return np.where(used, self.load_variance / square, 0.0)


@dataclass(frozen=True, eq=False)
class NodeCells:
    """Moments of the cells of one node, and how they depend on who looks.

    Attributes
    ----------
    rings : tuple of Rings, [Q]
        The ground for each type.
    mean_area_km2 : float64 [Q]
    area_product_km4 : float64 [Q, Q]
    seen_area_km2 : tuple of float64 [n, Q]
        For each type: the mean area for every type of the cell of a node that serves a request of
        the type at each of its radii.
    """

    rings: tuple[Rings, ...]
    mean_area_km2: FloatArray
    area_product_km4: FloatArray
    seen_area_km2: tuple[FloatArray, ...]


@kernel
def lens_area(small, large, distance):
    """Return the area that two discs have in common.

    Parameters
    ----------
    small, large : float
        Radii, in any order.
    distance : float
        Between the centres.
    """
    if small > large:
        small, large = large, small
    if small <= 0.0 or distance >= small + large:
        return 0.0
    if distance <= large - small:
        return math.pi * small * small
    near = (distance * distance + small * small - large * large) / (2.0 * distance * small)
    far = (distance * distance + large * large - small * small) / (2.0 * distance * large)
    product = (
        (small + large - distance)
        * (distance + small - large)
        * (distance - small + large)
        * (distance + small + large)
    )
    return (
        small * small * math.acos(min(1.0, max(-1.0, near)))
        + large * large * math.acos(min(1.0, max(-1.0, far)))
        - 0.5 * math.sqrt(max(product, 0.0))
    )


@kernel
def _pair_areas(one, other, density, cosines, angle_weights, seen_one, seen_other):
    """Fill the mean cell for one type given a request of the other at a radius, both ways.

    Parameters
    ----------
    one, other : Rings
        Of n and m radii.
    density : float64 [S]
    cosines, angle_weights : float64 [a]
        Angles between the two places; the weights sum to 1.
    seen_one, seen_other : float64 [n], [m]
        Out: the area of the other's cell given a request of the first type at each radius, and the
        reverse.
    """
    seen_one[:] = 0.0
    seen_other[:] = 0.0
    for i in range(one.radius_km.size):
        for j in range(other.radius_km.size):
            squares = one.radius_km[i] ** 2 + other.radius_km[j] ** 2
            twice = 2.0 * one.radius_km[i] * other.radius_km[j]
            both = 0.0
            for k in range(cosines.size):
                apart = math.sqrt(max(squares - twice * cosines[k], 0.0))
                shared = 0.0
                for t in range(density.size):
                    shared += density[t] * lens_area(
                        one.reach_km[i, t], other.reach_km[j, t], apart
                    )
                both += angle_weights[k] * math.exp(shared - one.hazard[i] - other.hazard[j])
            seen_one[i] += other.area_km2[j] * both
            seen_other[j] += one.area_km2[i] * both
    for i in range(one.radius_km.size):
        seen_one[i] *= math.exp(one.hazard[i])
    for j in range(other.radius_km.size):
        seen_other[j] *= math.exp(other.hazard[j])


def advertised_costs(net: TieredNetwork, eq: Equilibrium) -> FloatArray:
    """Return what the routing adds to the radio latency, ``[Q, S]``; infinite if not servable."""
    if eq.policy == "nearest":
        return np.ascontiguousarray(np.where(net.can_serve, 0.0, np.inf).T)
    return type_costs(net, eq.assumed_wait_s)


def _reach(net: TieredNetwork, costs: FloatArray, own: float, radius_km: FloatArray) -> FloatArray:
    """Return how near a node of each tier must be to a place to win it, ``[n, S]``."""
    alpha = net.radio_alpha
    ahead = (own - costs) / net.radio_xi
    return np.maximum(radius_km[:, None] ** alpha + ahead, 0.0) ** (1.0 / alpha)


def _hazard(net: TieredNetwork, reach_km: FloatArray) -> FloatArray:
    return math.pi * (reach_km**2 @ net.tier_density)


def _last_radius(net: TieredNetwork, costs: FloatArray, own: float) -> float:
    """Return the radius beyond which the node serves nobody (0 if it serves nobody at all)."""
    low, high = 0.0, 1.0
    while _hazard(net, _reach(net, costs, own, np.array([high])))[0] < _TAIL:
        high *= 2.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        if _hazard(net, _reach(net, costs, own, np.array([middle])))[0] > _TAIL:
            high = middle
        else:
            low = middle
    return low


def _rings(net: TieredNetwork, costs: FloatArray, own: float, breaks_km: list[float]) -> Rings:
    """Return rings that resolve where other tiers begin to compete, and the given radii."""
    if not math.isfinite(own):
        nobody = np.empty(0)
        return Rings(nobody, nobody, nobody, np.empty((0, len(costs))))
    last = _last_radius(net, costs, own)
    dearer = costs[(costs > own) & np.isfinite(costs) & (net.tier_density > 0)]
    starts = ((dearer - own) / net.radio_xi) ** (1.0 / net.radio_alpha)
    inner = [r for r in (*starts, *breaks_km) if 0.0 < r < last]
    ends = np.unique([0.0, *inner, last])
    lengths = np.diff(ends)
    radii, widths = [np.empty(0)], [np.empty(0)]
    for start, length in zip(ends[:-1], lengths, strict=True):
        count = max(_FEWEST_RADII, round(_RADII * length / last))
        x, w = np.polynomial.legendre.leggauss(count)
        radii.append(start + length * (x + 1.0) / 2.0)
        widths.append(length * w / 2.0)
    radius = np.concatenate(radii)
    reach = _reach(net, costs, own, radius)
    return Rings(
        radius_km=radius,
        area_km2=2.0 * math.pi * radius * np.concatenate(widths),
        hazard=_hazard(net, reach),
        reach_km=reach,
    )


def node_cells(
    net: TieredNetwork,
    costs: FloatArray,
    own: FloatArray,
    breaks_km: list[list[float]] | None = None,
) -> NodeCells:
    """Return the moments of the cells of one node among the others.

    Parameters
    ----------
    net : TieredNetwork
    costs : float64 [Q, S]
        Prefill plus advertised wait of the others.
    own : float64 [Q]
        The same of the node.
    breaks_km : list of list of float, optional
        For each type, radii that should lie between rings.
    """
    types = net.num_types
    breaks = breaks_km or [[] for _ in range(types)]
    rings = tuple(_rings(net, costs[q], own[q], breaks[q]) for q in range(types))
    # Close together at small angles, where the two places share most.
    x, w = np.polynomial.legendre.leggauss(_ANGLES)
    part = (x + 1.0) / 2.0
    cosines, angle_weights = np.cos(math.pi * part**2), w * part
    density = net.tier_density.copy()
    seen = tuple(np.zeros((len(ring.radius_km), types)) for ring in rings)
    for q in range(types):
        for p in range(q, types):
            one, other = np.zeros(len(seen[q])), np.zeros(len(seen[p]))
            _pair_areas(rings[q], rings[p], density, cosines, angle_weights, one, other)
            seen[q][:, p] = one
            seen[p][:, q] = other
    product = np.array([ring.served_km2 @ seen[q] for q, ring in enumerate(rings)])
    return NodeCells(
        rings=rings,
        mean_area_km2=np.array([ring.served_km2.sum() for ring in rings]),
        area_product_km4=(product + product.T) / 2.0,
        seen_area_km2=seen,
    )


def cells_at_costs(net: TieredNetwork, costs: FloatArray) -> CellSizes:
    """Return the moments of the cells when routing adds ``costs`` ``[Q, S]`` to the radio."""
    tiers, types = net.num_profiles, net.num_types
    mean = np.zeros((tiers, types))
    product = np.zeros((tiers, types, types))
    for s in np.flatnonzero(net.tier_density > 0):
        cells = node_cells(net, costs, costs[:, s])
        mean[s], product[s] = cells.mean_area_km2, cells.area_product_km4
    return CellSizes.of_areas(net, mean, product)


def cell_size_moments(net: TieredNetwork, eq: Equilibrium) -> CellSizes:
    """Return first and second moments of what a typical node of each tier serves.

    Means are those of the association law; the second moments say how unequal the nodes of a tier
    are although they advertise the same wait. Takes about 0.1 s for three tiers and two types, and
    grows with the squares of the numbers of tiers and of types.

    Parameters
    ----------
    net : TieredNetwork
        The network that `eq` was solved for.
    eq : Equilibrium
        Its assumed waits are what the nodes advertise.

    Returns
    -------
    CellSizes
        Variances within about 0.2 % of the squared mean.

    Raises
    ------
    ValueError
        If `eq` has the shape or the loads of another network.
    TypeError
        If `net` is no network or `eq` no equilibrium.
    """
    check_solved_for(net, eq)
    return cells_at_costs(net, advertised_costs(net, eq))
