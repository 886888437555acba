"""Who serves whom, by throwing dice: the Monte-Carlo twin of the association law [53]."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import check_network
from edgegym.analytic.association import type_costs
from edgegym.analytic.equilibrium import Equilibrium, assumed_wait
from edgegym.jit import kernel
from edgegym.world.network import TieredNetwork, checked_whole

FloatArray = NDArray[np.float64]

_BLOCK = 8192
_MOST_SAMPLES = 10**12
_MOST_SEED = 2**63 - 1


@dataclass(frozen=True, eq=False)
class AssociationSample:
    """Which tier served sampled requests of each type, and from how far.

    Attributes
    ----------
    samples : int
        Requests of each type.
    probability, standard_error : float64 [S, Q]
        Share of the type's requests that the tier served, and its standard error.
    mean_distance_km, distance_standard_error_km : float64 [S, Q]
        Mean distance of those requests, and its standard error; NaN where there are none, the
        error also where there is one.
    mean_radio_s, radio_standard_error_s : float64 [S, Q]
        The same of the radio latency without its fixed part.
    """

    samples: int
    probability: FloatArray
    standard_error: FloatArray
    mean_distance_km: FloatArray
    distance_standard_error_km: FloatArray
    mean_radio_s: FloatArray
    radio_standard_error_s: FloatArray


@kernel
def _tally(draws, cost, disc, xi, half, radio_half, tally):
    """Add a block of requests of one type to its tally.

    Parameters
    ----------
    draws : float64 [n, S]
        Standard exponential: the nodes expected within the nearest node's distance.
    cost, disc : float64 [S]
        Cost at no distance, infinite where the tier may not serve; and 1 / (pi * density).
    xi, half : float
        A node at distance r costs ``cost + xi * (r * r) ** half``; the least cost wins.
    radio_half : float
        Its radio latency is ``xi * (r * r) ** radio_half``.
    tally : float64 [S, 5]
        In and out: count, sums of distance, of its square, of radio latency, of its square.
    """
    for i in range(draws.shape[0]):
        best = -1
        best_square = 0.0
        least = np.inf
        for s in range(cost.size):
            if cost[s] == np.inf:
                continue
            square = draws[i, s] * disc[s]
            scaled = square if half == 1.0 else math.exp(half * math.log(square))
            value = cost[s] + xi * scaled
            if value < least or best < 0:
                best = s
                best_square = square
                least = value
        if best < 0:
            return
        radio = xi * math.exp(radio_half * math.log(best_square))
        tally[best, 0] += 1.0
        tally[best, 1] += math.sqrt(best_square)
        tally[best, 2] += best_square
        tally[best, 3] += radio
        tally[best, 4] += radio * radio


def sample_association(
    net: TieredNetwork,
    n: int,
    seed: int,
    wait_s: "Equilibrium | ArrayLike | None" = None,
) -> AssociationSample:
    """Sample who serves whom: the nearest node of every tier, and the cheapest of those.

    Nothing is cut off: the distance of a tier's nearest node is drawn from its law
    ``sqrt(-ln U / (pi * density))`` [53], independently for each request, tier and type. Memory
    does not grow with `n`.

    Parameters
    ----------
    net : TieredNetwork
    n : int
        Requests of each type, at least 1.
    seed : int
        At least 0; the same seed gives the same sample.
    wait_s : Equilibrium or array_like [S], optional
        Advertised waits in seconds, or an equilibrium, whose policy and assumed waits count. No
        waits by default.

    Returns
    -------
    AssociationSample

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    TypeError
        If `net` is no network.
    """
    check_network(net)
    count = checked_whole("n", n, 1, _MOST_SAMPLES)
    rng = np.random.default_rng(checked_whole("seed", seed, 0, _MOST_SEED))
    wait = assumed_wait(net, wait_s)
    radio_half = half = net.radio_alpha / 2.0
    costs = type_costs(net, wait)
    if isinstance(wait_s, Equilibrium) and wait_s.policy == "nearest":
        # Any cost that rises with the distance alone finds the nearest node.
        half = 1.0
        costs = np.where(np.isfinite(costs), 0.0, np.inf)
    filled = net.tier_density > 0
    costs[:, ~filled] = np.inf
    disc = 1.0 / (math.pi * np.where(filled, net.tier_density, 1.0))
    tally = np.zeros((net.num_types, net.num_profiles, 5))
    draws = np.empty((min(count, _BLOCK), net.num_profiles))
    for first in range(0, count, _BLOCK):
        block = draws[: min(_BLOCK, count - first)]
        for q in range(net.num_types):
            rng.standard_exponential(out=block)
            _tally(block, costs[q], disc, net.radio_xi, half, radio_half, tally[q])
    return _summary(tally, count)


def _summary(tally: FloatArray, count: int) -> AssociationSample:
    served, distance, distance_square, radio, radio_square = (
        np.ascontiguousarray(column.T) for column in np.moveaxis(tally, -1, 0)
    )
    probability = served / count
    mean_distance, distance_error = _mean_and_error(served, distance, distance_square)
    mean_radio, radio_error = _mean_and_error(served, radio, radio_square)
    return AssociationSample(
        samples=count,
        probability=probability,
        standard_error=np.sqrt(probability * (1.0 - probability) / count),
        mean_distance_km=mean_distance,
        distance_standard_error_km=distance_error,
        mean_radio_s=mean_radio,
        radio_standard_error_s=radio_error,
    )


def _mean_and_error(
    count: FloatArray, total: FloatArray, squares: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the means and their standard errors; NaN where there are too few."""
    mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
    several = count > 1
    spread = np.maximum(squares - count * mean**2, 0.0)
    below = np.where(several, count * (count - 1.0), 1.0)
    return mean, np.where(several, np.sqrt(spread / below), np.nan)
