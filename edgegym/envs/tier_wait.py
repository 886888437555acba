"""The analytic waits that a router may advertise."""

from typing import TYPE_CHECKING

import numpy as np

from edgegym.world.errors import ScenarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario


def advertised_tier_wait_s(scenario: "Scenario") -> "NDArray[np.float64] | None":
    """Return the analytic wait of each profile if the router advertises it, ``[S]``.

    Raises
    ------
    ScenarioError
        If it does, and the long-run load is more than the fleet can serve.
    """
    routing = scenario.routing
    if routing.kind != "load_aware" or routing.advertised_wait != "tier":
        return None
    from edgegym.analytic import solve_equilibrium

    wait_s = np.asarray(solve_equilibrium(scenario.tiered_network()).mean_wait_s, dtype=np.float64)
    if not np.isfinite(wait_s).all():
        demand = scenario.demand
        name = "request_intensity" if demand.rate_per_node is None else "rate_per_node"
        raise ScenarioError(
            f"routing.advertised_wait = 'tier': the long-run load of demand.{name} = "
            f"{getattr(demand, name):g} has no stable equilibrium, so tier waits do not exist; "
            "lower the rate, or advertise backlog or measured"
        )
    return wait_s
