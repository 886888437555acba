"""The best mix among a grid of feasible candidates, by load; Figs. 10 and 11 share it."""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from edgegym.figures.scenario import profile_names, solved
from edgegym.figures.spec import Report
from edgegym.world.network import TieredNetwork

_LEAST_BETTER = 1e-9


@dataclass(frozen=True, eq=False)
class BestMix:
    """The winner at one load."""

    load: float
    """Requests/s/km²."""
    mix: NDArray[np.float64]
    """Share of each profile, ``[S]``."""
    coverage: float
    """Its coverage."""
    stable: bool
    """Whether it carries the load; if not, no candidate does."""
    candidates: int
    """How many mixes were compared."""


def candidate_mixes(step: float, deep_cap: float) -> list[NDArray[np.float64]]:
    """Return all mixes whose shares are multiples of a step, with at most this share deep."""
    parts = round(1.0 / step)
    names = profile_names()
    deep = names.index("deep")
    mixes = []
    for head in product(range(parts + 1), repeat=len(names) - 1):
        counts = np.array([*head, parts - sum(head)])
        if counts[-1] >= 0 and counts[deep] <= deep_cap * parts + 1e-9:
            mixes.append(counts / parts)
    return mixes


def best_mixes(
    net: TieredNetwork, loads: NDArray[np.float64], step: float, deep_cap: float, report: Report
) -> list[BestMix]:
    """Return the mix with the largest coverage at each load; a stable one if there is any.

    Parameters
    ----------
    net : TieredNetwork
        The fleet; its load and mix don't count.
    loads : float64 [K]
        Requests/s/km².
    step : float
        Distance of neighbouring mixes, a whole part of 1.
    deep_cap : float
        Largest share of deep nodes.
    report : callable
        Called with a few words after each load.

    Returns
    -------
    list of BestMix
        One per load.
    """
    mixes = candidate_mixes(step, deep_cap)
    found = []
    for number, load in enumerate(loads, 1):
        loaded = replace(net, request_intensity=float(load))
        best = None
        for mix in mixes:
            equilibrium, performance = solved(loaded.with_mix(mix))
            rank = (equilibrium.stable, performance.coverage)
            if best is None or rank > (best.stable, best.coverage + _LEAST_BETTER):
                best = BestMix(
                    float(load), mix, performance.coverage, equilibrium.stable, len(mixes)
                )
        assert best is not None
        found.append(best)
        report(f"{len(mixes)} mixes at {load:.2f} requests/s/km², load {number} of {len(loads)}")
    return found
