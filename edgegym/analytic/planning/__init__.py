"""Planning a deployment: pools, memory, migration, and what an edge is good for."""

from edgegym.analytic.planning.edge import (
    EdgeAdvantage,
    LatencySaving,
    RouteLatency,
    Serving,
    edge_advantage,
)
from edgegym.analytic.planning.migration import MigrationPlan, migration_plan
from edgegym.analytic.planning.pools import (
    FragmentationRow,
    FragmentationTable,
    fragmentation_table,
    poisson_quantile,
    pool_slots,
)

__all__ = [
    "EdgeAdvantage",
    "FragmentationRow",
    "FragmentationTable",
    "LatencySaving",
    "MigrationPlan",
    "RouteLatency",
    "Serving",
    "edge_advantage",
    "fragmentation_table",
    "migration_plan",
    "poisson_quantile",
    "pool_slots",
]
