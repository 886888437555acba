"""The analytic model: association, queues and their equilibrium, coverage, placement."""

from edgegym.analytic.association import Association, association_law, nearest_association
from edgegym.analytic.equilibrium import Equilibrium, solve_equilibrium
from edgegym.analytic.performance import Performance, evaluate
from edgegym.analytic.placement import PlacementResult, optimize_placement
from edgegym.analytic.queueing import erlang_b, erlang_c, mean_wait, wait_cdf
from edgegym.world.network import TieredNetwork

__all__ = [
    "Association",
    "Equilibrium",
    "Performance",
    "PlacementResult",
    "TieredNetwork",
    "association_law",
    "erlang_b",
    "erlang_c",
    "evaluate",
    "mean_wait",
    "nearest_association",
    "optimize_placement",
    "solve_equilibrium",
    "wait_cdf",
]
