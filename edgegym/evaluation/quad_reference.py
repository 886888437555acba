"""Association and coverage by general-purpose quadrature over the distance: what ours is timed by.

Written as one would from the equations: a nested loop over tiers and types, each an adaptive
``scipy.integrate.quad`` of (25), (26) and (39), told where the integrand has kinks and jumps.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import Equilibrium
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]

# Nodes further off than this mean number are left out: exp(-36) is below every tolerance here.
_TAIL = 36.0
_TOLERANCE = 1e-9


class QuadValues(NamedTuple):
    """The quantities that both ways compute."""

    association: FloatArray
    """Probability that a type is served by a tier, ``[S, Q]``."""
    mean_distance_km: float
    """Mean distance to the serving node."""
    coverage: float
    """Share of the requests within the target."""


def quad_values(net: TieredNetwork, eq: Equilibrium, ttft_target_s: float) -> QuadValues:
    """Return association, mean distance and coverage of cost-based routing, by adaptive quadrature.

    Parameters
    ----------
    net : TieredNetwork
        Without a mask of what may be served where.
    eq : Equilibrium
        Load-aware or queue-unaware, stable.
    ttft_target_s : float

    Returns
    -------
    QuadValues
        With absolute errors below 1e-8.
    """
    from scipy.integrate import quad

    density = [float(value) for value in net.tier_density]
    xi, alpha = net.radio_xi, net.radio_alpha
    association = np.zeros(net.prefill_s.shape)
    distance = 0.0
    coverage = 0.0
    for q, share in enumerate(net.type_probabilities):
        costs = [float(value) for value in net.prefill_s[:, q] + eq.assumed_wait_s]
        for s, tier_density in enumerate(density):
            if tier_density == 0.0:
                continue
            others = [
                (other, (costs[s] - cost) / xi)
                for other, cost in zip(density, costs, strict=True)
                if other > 0.0
            ]

            def won(r: float, tier_density: float = tier_density, others: list = others) -> float:
                path = r**alpha
                total = 0.0
                for other, ahead in others:
                    reach = path + ahead
                    if reach > 0.0:
                        total += other * reach ** (2.0 / alpha)
                return 2.0 * math.pi * tier_density * r * math.exp(-math.pi * total)

            slack = ttft_target_s - net.radio_base_s - float(net.prefill_s[s, q])
            delay, decay = float(eq.erlang_c[s]), float(eq.wait_decay_per_s[s])

            def covered(
                r: float, won=won, slack: float = slack, delay: float = delay, decay: float = decay
            ) -> float:
                left = slack - xi * r**alpha
                return won(r) * (1.0 - delay * math.exp(-decay * left)) if left >= 0.0 else 0.0

            farthest = math.sqrt(_TAIL / (math.pi * tier_density))
            kinks = sorted({(-ahead) ** (1.0 / alpha) for _, ahead in others if ahead < 0.0})
            kinks = [r for r in kinks if r < farthest]
            served = _integral(quad, won, kinks, farthest)
            association[s, q] = served
            distance += share * _integral(quad, lambda r, won=won: r * won(r), kinks, farthest)
            if slack > 0.0:
                limit = min((slack / xi) ** (1.0 / alpha), farthest)
                inside = [r for r in kinks if r < limit]
                coverage += share * _integral(quad, covered, inside, limit)
    return QuadValues(association, float(distance), float(coverage))


def _integral(quad, integrand, kinks: list[float], end: float) -> float:
    """Return the integral from 0 to `end` of a function with these kinks."""
    options = {"epsabs": _TOLERANCE, "epsrel": _TOLERANCE, "limit": 200}
    return quad(integrand, 0.0, end, points=kinks or None, **options)[0]
