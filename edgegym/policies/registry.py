"""Policies by name."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from edgegym.policies.analytic import AnalyticPolicy, LargestDeficit
from edgegym.policies.base import Policy
from edgegym.policies.basic import RandomPolicy, StaticPolicy
from edgegym.policies.clairvoyant import ClairvoyantPolicy
from edgegym.policies.local import LocalDemand
from edgegym.policies.lookahead import GreedyLookaheadPolicy
from edgegym.policies.lru import LruPolicy, lru_world
from edgegym.policies.mix import static_optimal_policy, uniform_policy
from edgegym.policies.mpc import MpcPolicy
from edgegym.world.resolve import resolve_scenario

if TYPE_CHECKING:
    import os

    from edgegym.world.scenario import Scenario


def _analytic(scenario: "Scenario", seed: int) -> AnalyticPolicy:
    return AnalyticPolicy(scenario, LargestDeficit(scenario), seed=seed)


def _analytic_local(scenario: "Scenario", seed: int) -> AnalyticPolicy:
    return AnalyticPolicy(scenario, LocalDemand(scenario), seed=seed)


def _analytic_mpc(scenario: "Scenario", seed: int) -> MpcPolicy:
    return MpcPolicy(scenario, seed=seed)


def _greedy_lookahead(scenario: "Scenario", seed: int) -> GreedyLookaheadPolicy:
    return GreedyLookaheadPolicy(scenario, seed=seed)


def _clairvoyant(scenario: "Scenario", seed: int) -> ClairvoyantPolicy:
    return ClairvoyantPolicy(scenario, seed=seed)


_BUILDERS: dict[str, Callable[["Scenario", int], Policy]] = {
    "random": RandomPolicy,
    "static": StaticPolicy,
    "uniform": uniform_policy,
    "static_optimal": static_optimal_policy,
    "analytic": _analytic,
    "analytic_local": _analytic_local,
    "analytic_mpc": _analytic_mpc,
    "lru": LruPolicy,
    "greedy_lookahead": _greedy_lookahead,
    "clairvoyant": _clairvoyant,
}

_WORLDS: dict[str, Callable[["Scenario"], "Scenario"]] = {"lru": lru_world}


def policies() -> tuple[str, ...]:
    """Return the names of the built-in policies."""
    return tuple(_BUILDERS)


def make_policy(name: str, scenario: "str | os.PathLike[str] | Scenario", seed: int = 0) -> Policy:
    """Return a built-in policy.

    ``greedy_lookahead`` and ``clairvoyant`` see more than the observation: before they play, they
    must be shown the environment by their ``bind(env)``, as ``compare`` does by itself.

    Parameters
    ----------
    name : str
        One of :func:`policies`.
    scenario : str, path or Scenario
        The world that the policy will act in.
    seed : int
        Seed of the policy's own random choices.

    Raises
    ------
    ValueError
        If no policy has that name (the message lists them), or the seed is out of range.
    ScenarioError
        If there is no such scenario.
    """
    if not isinstance(name, str) or name not in _BUILDERS:
        raise ValueError(f"policy is {name!r}: it must be one of {', '.join(_BUILDERS)}")
    return _BUILDERS[name](resolve_scenario(scenario), seed)


def world_of(name: str, scenario: "Scenario") -> "Scenario":
    """Return the world in which a built-in policy plays when it is compared with others.

    Parameters
    ----------
    name : str
        One of :func:`policies`.
    scenario : Scenario
        The world of the comparison.

    Returns
    -------
    Scenario
        The same for policies that only place; other caches and routing for ``lru``. Nodes, requests
        and the sizes of observation and action never differ.
    """
    return _WORLDS[name](scenario) if name in _WORLDS else scenario
