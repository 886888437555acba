"""Local stability of the damped iteration [33]."""

import numpy as np

from edgegym.analytic.equilibrium import Equilibrium, check_solved_for
from edgegym.analytic.grouping import spread_to_tiers
from edgegym.analytic.solver_map import build_map
from edgegym.analytic.tier_map import from_wait, wait_slope
from edgegym.world.network import TieredNetwork


def damping_limit(net: TieredNetwork, eq: Equilibrium) -> float:
    """Return the damping up to which the damped iteration is locally stable at an equilibrium.

    With eigenvalues mu of the derivative of the map from assumed to induced waits, a step of
    damping eta multiplies small deviations by ``1 + eta * (mu - 1)``: these must all be less than 1
    in absolute value.

    Parameters
    ----------
    net : TieredNetwork
        The network that `eq` was solved for.
    eq : Equilibrium
        Load-aware, converged and stable; its own queue module counts.

    Returns
    -------
    float
        The limit of eta: above 1 where even undamped steps converge (2 where waits do not react),
        0 where no damping helps. Equal profiles count as one, as they do in the iteration.

    Raises
    ------
    ValueError
        If `eq` is no stable load-aware equilibrium, or that of another network.
    TypeError
        If `net` is no network or `eq` no equilibrium.
    """
    check_solved_for(net, eq)
    if eq.policy != "load_aware" or not (eq.converged and eq.stable):
        raise ValueError(
            f"eq has policy {eq.policy!r}, converged {eq.converged}, stable {eq.stable}: "
            "must be a converged and stable load-aware equilibrium"
        )
    solver_map, group = build_map(net, eq.queue)
    tiers = solver_map.tiers
    wait = spread_to_tiers(eq.assumed_wait_s, group)
    induced = solver_map.induced(wait)
    if np.max(np.abs(induced - wait) / (1.0 + wait)) > 1e-6:
        raise ValueError(
            f"eq.assumed_wait_s is {eq.assumed_wait_s}: the network's tiers have other waits; "
            "eq must be solved for this network"
        )
    # The map's derivative in y = P at the fixed point, turned into one of the waits.
    by_y = np.array(
        [
            wait_slope(from_wait(w, unit, knee), unit, knee)
            for w, unit, knee in zip(wait, tiers.unit, tiers.knee, strict=True)
        ]
    )
    rates = np.linalg.eigvals(by_y[:, None] * solver_map.jacobian(wait))
    if (rates.real <= 0.0).any():
        return 0.0
    return float((2.0 * rates.real / np.abs(rates) ** 2).min())


__all__ = ["damping_limit"]
