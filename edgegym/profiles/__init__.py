"""Which prefixes to keep together: the value of a vertex, and profiles made from a forest."""

from edgegym.profiles.candidates import CandidateProfile, candidate_profile, without_dominated
from edgegym.profiles.demand import ForestDemand, forest_demand, scenario_demand
from edgegym.profiles.greedy import Fill, Greedy
from edgegym.profiles.knapsack import Knapsack
from edgegym.profiles.make import LEVELS, Cluster, family_clusters, make_profiles, root_clusters
from edgegym.profiles.value import (
    additive_value_s,
    hit_share,
    lifetime_value_s,
    path_score,
    valid_share,
)

__all__ = [
    "LEVELS",
    "CandidateProfile",
    "Cluster",
    "Fill",
    "ForestDemand",
    "Greedy",
    "Knapsack",
    "additive_value_s",
    "candidate_profile",
    "family_clusters",
    "forest_demand",
    "hit_share",
    "lifetime_value_s",
    "make_profiles",
    "path_score",
    "root_clusters",
    "scenario_demand",
    "valid_share",
    "without_dominated",
]
