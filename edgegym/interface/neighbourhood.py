"""Which nodes count as near which: weights that fall with radio cost, as a sparse matrix."""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegym.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.world.scenario import Scenario

LEAST_WEIGHT = 0.02
"""Weights below this (relative to the node itself) are left out."""


class Neighbourhood(NamedTuple):
    """Rows of weights that sum to one, compressed (CSR): row i averages over the nodes around i.

    Padding nodes have empty rows.
    """

    row_start: "NDArray[np.int64]"  # (N + 1,)
    node: "NDArray[np.int64]"  # (entries,)
    weight: "NDArray[np.float64]"  # (entries,)


def neighbourhood_length_km(scenario: "Scenario") -> float:
    """Return the distance l of the weights ``exp(-(r / l)^alpha)``.

    At l, radio latency ``xi l^alpha`` equals the mean prefill time that the best profile saves: a
    request goes no further for a prefix. Kept between one and two mean node spacings
    ``1 / sqrt(density)``, so that a neighbourhood is neither a single node nor the whole fleet.
    """
    world = scenario.compile()
    saving_s = float(world.type_share @ (world.cold_prefill_s - world.min_prefill_s))
    spacing_km = 1.0 / math.sqrt(scenario.density_per_km2)
    length_km = (max(saving_s, 0.0) / float(world.radio_xi)) ** (1.0 / float(world.radio_alpha))
    return min(max(length_km, spacing_km), 2.0 * spacing_km)


@kernel
def _weigh(
    x_km: "NDArray[np.float64]",  # (nodes,)
    y_km: "NDArray[np.float64]",  # (nodes,)
    width_km: float,
    height_km: float,
    periodic: bool,
    length_km: float,
    alpha: float,
    reach_km: float,
    row_start: "NDArray[np.int64]",  # (N + 1,)
    node: "NDArray[np.int64]",  # (entries,) or empty in the counting pass
    weight: "NDArray[np.float64]",  # same
) -> int:
    """Count the entries when `node` is empty, else write them; return their number."""
    nodes = len(x_km)
    entries = 0
    for i in range(nodes):
        row_start[i] = entries
        total = 0.0
        for j in range(nodes):
            dx = abs(x_km[i] - x_km[j])
            dy = abs(y_km[i] - y_km[j])
            if periodic:
                dx = min(dx, width_km - dx)
                dy = min(dy, height_km - dy)
            distance_km = math.sqrt(dx * dx + dy * dy)
            if distance_km <= reach_km:
                if len(node):
                    w = math.exp(-((distance_km / length_km) ** alpha))
                    node[entries] = j
                    weight[entries] = w
                    total += w
                entries += 1
        if len(node):
            for e in range(row_start[i], entries):
                weight[e] /= total
    row_start[nodes:] = entries
    return entries


def build_neighbourhood(
    world: Any,
    length_km: float,
    x_km: "NDArray[np.float64]",
    y_km: "NDArray[np.float64]",
    max_nodes: int,
) -> Neighbourhood:
    """Weigh the nodes around each node.

    Parameters
    ----------
    world : World
        Region and radio exponent.
    length_km : float
        Of :func:`neighbourhood_length_km`.
    x_km, y_km : ndarray, shape [nodes]
        Positions of the real nodes.
    max_nodes : int
        N, rows of the matrix.

    Returns
    -------
    Neighbourhood
    """
    alpha = float(world.radio_alpha)
    reach_km = length_km * (-math.log(LEAST_WEIGHT)) ** (1.0 / alpha)
    row_start = np.zeros(max_nodes + 1, dtype=np.int64)
    node = np.empty(0, dtype=np.int64)
    weight = np.empty(0)
    where = (x_km, y_km, float(world.width_km), float(world.height_km), bool(world.periodic))
    entries = _weigh(*where, length_km, alpha, reach_km, row_start, node, weight)
    node = np.empty(entries, dtype=np.int64)
    weight = np.empty(entries)
    _weigh(*where, length_km, alpha, reach_km, row_start, node, weight)
    return Neighbourhood(row_start=row_start, node=node, weight=weight)
