"""The analytic model: association, queues and their equilibrium, coverage, placement.

A map of the package, from the ground up. `quadrature` cuts the cost of the best tier into pieces on
which integrands are smooth; `cost_integrals`, `distance_integrals` and `deadline_integrals` are the
compiled integrals over them, `association`, `distances`, `coverage` and `sampling` the laws that
users ask for, `closed_form` their check. `queueing` has the waits of one node, `queue_models` other
queues in its place. The fixed point of both: `tier_map` (the map, compiled) and `delay_map` (around
a queue of the user's), `sweeps`, `newton` and `saturation` (the steps), `fixed_point` (the solver),
`equilibrium` (what it found), `stability` and `critical` (where it ends). `performance` says what a
fleet delivers. On top of that `placement` searches mixes, `multiperiod` paths of them, `fallback`
mixes for the traffic of `robust` and `transient`, and `planning` counts slots, bytes and
milliseconds. Where nodes of a tier differ, `cells` has their sizes, `dispersed` what follows, and
`live` the fleet that sees backlogs.
"""

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
