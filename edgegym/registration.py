"""Registration of the environments with Gymnasium, by strings only."""

import gymnasium

_ENTRY_POINTS = {
    "EdgeGym/Placement-v0": (
        "edgegym.envs.placement:PlacementEnv",
        "edgegym.envs.vector:PlacementVectorEnv",
    ),
    "EdgeGym/RegionalMix-v0": ("edgegym.envs.regional_mix:RegionalMixEnv", None),
    "EdgeGym/Routing-v0": ("edgegym.envs.routing:RoutingEnv", None),
}
"""By name: the environment, and many of it as one where there is such a class."""


def register() -> None:
    """Register every edgegym environment; calling it again changes nothing.

    ``import edgegym`` does it. Worker processes that are spawned without that import find the
    environments through the module prefix: ``gymnasium.make("edgegym:EdgeGym/Placement-v0")``.
    """
    for name, (entry_point, vector_entry_point) in _ENTRY_POINTS.items():
        if name not in gymnasium.registry:
            # No max_episode_steps: the environment itself truncates at its horizon.
            gymnasium.register(
                id=name, entry_point=entry_point, vector_entry_point=vector_entry_point
            )
