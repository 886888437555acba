"""The analytic model: association, queues and their equilibrium, coverage, placement."""

from edgegym.analytic.equilibrium import Equilibrium, solve_equilibrium
from edgegym.world.network import TieredNetwork

__all__ = ["Equilibrium", "TieredNetwork", "solve_equilibrium"]
