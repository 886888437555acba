"""Environments of our own on top of edgegym, registered by ``import campus``.

``gymnasium.make("campus:Campus/Placement-v0")`` imports this module first, in worker processes too.
Registration is by strings, so nothing else is imported before an environment is made.
"""

import gymnasium

# Our scenario in edgegym's own environment, single and as many at once.
gymnasium.register(
    id="Campus/Placement-v0",
    entry_point="campus.environments:campus_placement",
    vector_entry_point="campus.environments:campus_placements",
)
# Our own environment.
gymnasium.register(id="Campus/Thrifty-v0", entry_point="campus.environments:ThriftyPlacementEnv")
