"""Placement: searching the mix of profiles, and the density that it needs [49]-[52]."""

from edgegym.analytic.placement.bayesian import Bayesian
from edgegym.analytic.placement.density import minimum_density
from edgegym.analytic.placement.exchange import Exchange
from edgegym.analytic.placement.grid import SimplexGrid
from edgegym.analytic.placement.optimize import METHODS, optimize_placement
from edgegym.analytic.placement.result import PlacementResult
from edgegym.analytic.placement.spsa import ProjectedSpsa

__all__ = [
    "METHODS",
    "Bayesian",
    "Exchange",
    "PlacementResult",
    "ProjectedSpsa",
    "SimplexGrid",
    "minimum_density",
    "optimize_placement",
]
