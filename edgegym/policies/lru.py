"""What serving engines do today: no placement at all, caches that fill by themselves."""

from typing import TYPE_CHECKING

import numpy as np

from edgegym.policies.basic import StaticPolicy
from edgegym.world.serving import LruCache

if TYPE_CHECKING:
    from edgegym.world.scenario import Scenario


class LruPolicy(StaticPolicy):
    """Never moves anything: its nodes have radix caches and a cache-aware router.

    It says so by :func:`lru_world`, which ``compare`` asks: the policy itself sees observations
    only. In a world with profiles it is the static policy.
    """


def lru_world(scenario: "Scenario") -> "Scenario":
    """Return the world as it is with serving engines' own caches.

    Parameters
    ----------
    scenario : Scenario
        Any world.

    Returns
    -------
    Scenario
        With ``cache.kind = lru`` and ``routing.kind = cache_aware``; the budget of each cache is
        the mean state of the scenario's initial mix of profiles, so that as much memory is left
        to run requests; where that mix holds nothing, the mean of all profiles. The same world if
        it has such caches already. Nodes, requests and all that is random stay as they are.
    """
    if isinstance(scenario.cache, LruCache):
        return scenario
    sizes = np.array(scenario.state_bytes)
    budget = float(scenario.initial_mix @ sizes) or float(sizes.mean())
    return scenario.with_overrides(
        {
            "cache": {"kind": "lru", "budget_bytes": max(1, round(budget))},
            # The fewest candidates: this router does not look at the distance.
            "routing": {"kind": "cache_aware", "candidates_per_profile": 1},
            "fetch.controller": "never",
        }
    )
