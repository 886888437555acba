"""The analytic model: association, queues and their equilibrium, coverage, placement."""

from edgegym.analytic.association import Association, association_law, nearest_association
from edgegym.analytic.cells import CellSizes, cell_size_moments
from edgegym.analytic.closed_form import association_alpha2, coverage_alpha2
from edgegym.analytic.critical import capacity_intensity, critical_intensity, lp_intensity
from edgegym.analytic.dispersed import DispersedPerformance, evaluate_dispersed
from edgegym.analytic.distances import DistanceLaw, decision_boundary, distance_law
from edgegym.analytic.equilibrium import Equilibrium, solve_equilibrium
from edgegym.analytic.fallback import (
    STUDY_TRAFFIC,
    FallbackRow,
    RobustPlacement,
    fallback_study,
    robust_placement,
    two_family_network,
)
from edgegym.analytic.fitted_delay import FittedDelayMap, QueueSweep
from edgegym.analytic.live import LiveEquilibrium, solve_live_equilibrium
from edgegym.analytic.multiperiod import plan_path
from edgegym.analytic.path_problem import PathPlan
from edgegym.analytic.path_search import PathEnumeration, PathExchange
from edgegym.analytic.performance import Performance, evaluate
from edgegym.analytic.placement import (
    Bayesian,
    Exchange,
    PlacementResult,
    ProjectedSpsa,
    SimplexGrid,
    minimum_density,
    optimize_placement,
)
from edgegym.analytic.planning import (
    EdgeAdvantage,
    FragmentationRow,
    FragmentationTable,
    LatencySaving,
    MigrationPlan,
    RouteLatency,
    Serving,
    edge_advantage,
    fragmentation_table,
    migration_plan,
    poisson_quantile,
    pool_slots,
)
from edgegym.analytic.queue_models import Delay, ErlangC, MixedService, QueueModel, Traffic
from edgegym.analytic.queueing import erlang_b, erlang_c, mean_wait, wait_cdf
from edgegym.analytic.robust import TrafficUncertainty
from edgegym.analytic.sampling import AssociationSample, sample_association
from edgegym.analytic.stability import damping_limit
from edgegym.world.network import TieredNetwork

__all__ = [
    "STUDY_TRAFFIC",
    "Association",
    "AssociationSample",
    "Bayesian",
    "CellSizes",
    "Delay",
    "DispersedPerformance",
    "DistanceLaw",
    "EdgeAdvantage",
    "Equilibrium",
    "ErlangC",
    "Exchange",
    "FallbackRow",
    "FittedDelayMap",
    "FragmentationRow",
    "FragmentationTable",
    "LatencySaving",
    "LiveEquilibrium",
    "MigrationPlan",
    "MixedService",
    "PathEnumeration",
    "PathExchange",
    "PathPlan",
    "Performance",
    "PlacementResult",
    "ProjectedSpsa",
    "QueueModel",
    "QueueSweep",
    "RobustPlacement",
    "RouteLatency",
    "Serving",
    "SimplexGrid",
    "TieredNetwork",
    "Traffic",
    "TrafficUncertainty",
    "association_alpha2",
    "association_law",
    "capacity_intensity",
    "cell_size_moments",
    "coverage_alpha2",
    "critical_intensity",
    "damping_limit",
    "decision_boundary",
    "distance_law",
    "edge_advantage",
    "erlang_b",
    "erlang_c",
    "evaluate",
    "evaluate_dispersed",
    "fallback_study",
    "fragmentation_table",
    "lp_intensity",
    "mean_wait",
    "migration_plan",
    "minimum_density",
    "nearest_association",
    "optimize_placement",
    "plan_path",
    "poisson_quantile",
    "pool_slots",
    "robust_placement",
    "sample_association",
    "solve_equilibrium",
    "solve_live_equilibrium",
    "two_family_network",
    "wait_cdf",
]
