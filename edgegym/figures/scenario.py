"""The network that the paper's figures are drawn from, and sweeps over it."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic import Equilibrium, Performance, evaluate, solve_equilibrium
from edgegym.analytic.equilibrium import Policy
from edgegym.world.network import TieredNetwork
from edgegym.world.presets import preset

POLICIES: tuple[Policy, ...] = get_args(Policy)
LONG = 1
"""Index of the long request type."""


def paper_network(**changes: Any) -> TieredNetwork:
    """Return the ``paper`` preset's network, some fields changed."""
    return replace(preset("paper").tiered_network(), **changes)


def profile_names() -> tuple[str, ...]:
    """Return the names of its profiles."""
    return preset("paper").profile_names


def type_names() -> tuple[str, ...]:
    """Return the names of its request types."""
    return tuple(item.name for item in preset("paper").request_types)


def target_s() -> float:
    """Return its TTFT target."""
    return preset("paper").objective.ttft_target_s


def solved(net: TieredNetwork, policy: Policy = "load_aware") -> tuple[Equilibrium, Performance]:
    """Return the equilibrium of a network and what it delivers within the preset's target."""
    equilibrium = solve_equilibrium(net, policy=policy)
    return equilibrium, evaluate(net, equilibrium, ttft_target_s=target_s())


def coverage(net: TieredNetwork, policy: Policy = "load_aware") -> float:
    """Return the share of requests within the preset's target."""
    return solved(net, policy)[1].coverage


def prefill_load(net: TieredNetwork, eq: Equilibrium) -> NDArray[np.float64]:
    """Return the prefill that a node of each tier does, ``[S]`` in GPU-seconds per second."""
    filled = net.tier_density > 0
    per_node = net.request_intensity / np.where(filled, net.tier_density, 1.0)
    work = (eq.association * net.type_probabilities * net.prefill_s).sum(axis=1)
    return np.where(filled, per_node * work, 0.0)


def sweep(
    low: float, high: float, points: int, including: Iterable[float] = ()
) -> NDArray[np.float64]:
    """Return evenly spaced values from low to high, and those that must be among them, ascending.

    Rounded to 9 decimals, so that a value which is both appears once.
    """
    values = np.concatenate([np.linspace(low, high, points), np.array(list(including))])
    return np.unique(np.round(values, 9))
