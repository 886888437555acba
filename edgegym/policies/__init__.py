"""Policies that need no training: from doing nothing to the analytic controllers."""

from edgegym.policies.base import Policy
from edgegym.policies.registry import make_policy, policies, world_of
from edgegym.policies.routing import LeastPredicted

__all__ = ["LeastPredicted", "Policy", "make_policy", "policies", "world_of"]
