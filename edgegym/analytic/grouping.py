"""A network as the solver sees it: equal profiles are one tier, empty ones none."""

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.tier_map import Tiers, knee_units
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]


@kernel
def _group_identical(prefill, occupancy, slots, density, group):
    """Fill the number of each non-empty tier, equal ones alike (-1: empty); return the count."""
    count = 0
    for s in range(slots.size):
        group[s] = -1
        if density[s] <= 0.0:
            continue
        for t in range(s):
            if group[t] >= 0 and slots[t] == slots[s]:
                same = True
                for q in range(prefill.shape[1]):
                    if prefill[s, q] != prefill[t, q] or occupancy[s, q] != occupancy[t, q]:
                        same = False
                        break
                if same:
                    group[s] = group[t]
                    break
        if group[s] < 0:
            group[s] = count
            count += 1
    return count


def build_tiers(
    net: TieredNetwork, density: FloatArray | None = None
) -> tuple[Tiers, NDArray[np.int64]]:
    """Return the compiled solver's view of a network, and which of its tiers each profile is in.

    Profiles with the same prefill times, occupancies and slots are one tier to the solver: their
    waits are equal, and rounding must not tell them apart (at ``radio_alpha >= 4`` the association
    is infinitely sensitive there).

    Parameters
    ----------
    net : TieredNetwork
    density : float64 [S], optional
        Tier densities to use instead of the network's.

    Returns
    -------
    tiers : Tiers
    group : int64 [S]
        Index of the solver's tier; -1 for empty tiers.
    """
    prefill, occupancy, shares = net.prefill_s, net.occupancy_s, net.type_probabilities
    if net.servable is not None:
        prefill = np.where(net.servable, prefill, np.inf)
    if not shares.all():
        present = shares > 0
        prefill, occupancy, shares = prefill[:, present], occupancy[:, present], shares[present]
    # Writable copies in one layout: the compiled functions are built for each kind of array.
    prefill, occupancy = np.array(prefill, order="C"), np.array(occupancy, order="C")
    all_density = np.array(net.tier_density if density is None else density)
    slots = net.concurrency.copy()
    group = np.empty(len(slots), np.int64)
    count = _group_identical(prefill, occupancy, slots, all_density, group)
    if count < len(slots):
        _, first = np.unique(group, return_index=True)
        first = first[-count:]
        prefill, occupancy = prefill[first], occupancy[first]
        slots = slots[first]
    tiers = Tiers(
        prefill=np.array(prefill.T, order="C"),
        occupancy=np.array(occupancy.T, order="C"),
        shares=shares.copy(),
        density=np.bincount(group[group >= 0], all_density[group >= 0], count),
        slots=slots,
        unit=occupancy.mean(axis=1) / slots,
        knee=knee_units(slots),
        intensity=net.request_intensity,
        xi=net.radio_xi,
        power=2.0 / net.radio_alpha,
        wait_scale=(1.0 + net.service_scv) / 2.0,
    )
    return tiers, group


def spread_to_profiles(tier_values: FloatArray, group: NDArray[np.int64]) -> FloatArray:
    """Return values of solver tiers as values per profile ``[S]``; 0 for empty ones."""
    return np.where(group >= 0, tier_values[group], 0.0)


def spread_to_tiers(profile_values: FloatArray, group: NDArray[np.int64]) -> FloatArray:
    """Return values per profile as values of the solver's tiers."""
    values = np.zeros(group.max() + 1)
    values[group[group >= 0]] = profile_values[group >= 0]
    return values
