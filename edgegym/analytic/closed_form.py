"""Exact laws for ``radio_alpha = 2``, where every integral is elementary: a check of the others.

With this exponent the nodes that cost at most j number ``m_t(j) = rate_t * (j - cost_t)+`` with
``rate_t = pi * density_t / xi``: between the tiers' own costs everything is an exponential.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.arguments import checked_target, checked_wait
from edgegym.analytic.association import Association, type_costs
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]


class _Stretch(NamedTuple):
    """Costs between which the same tiers compete, of one type."""

    start: float
    length: float
    active: NDArray[np.intp]
    rate: FloatArray
    """Nodes per second of cost of each active tier."""
    left: float
    """Probability that nothing cheaper has won."""


def _stretches(cost: FloatArray, rate: FloatArray) -> Iterator[_Stretch]:
    present = np.flatnonzero((rate > 0) & np.isfinite(cost))
    order = present[np.argsort(cost[present], kind="stable")]
    for k, tier in enumerate(order):
        start = float(cost[tier])
        length = float(cost[order[k + 1]]) - start if k + 1 < len(order) else math.inf
        if length > 0:
            active = order[: k + 1]
            left = math.exp(-float(rate[active] @ (start - cost[active])))
            yield _Stretch(start, length, active, rate[active], left)


def _check_alpha(net: TieredNetwork) -> None:
    if net.radio_alpha != 2.0:
        raise ValueError(f"radio_alpha is {net.radio_alpha:g}: the closed form holds for 2 only")


def association_alpha2(net: TieredNetwork, wait_s: ArrayLike) -> Association:
    """Return the association law of a network with ``radio_alpha = 2`` in closed form.

    What :func:`edgegym.analytic.association_law` integrates, without an integral.

    Parameters
    ----------
    net : TieredNetwork
    wait_s : array_like [S]
        Advertised waits in seconds.

    Returns
    -------
    Association

    Raises
    ------
    ValueError
        If ``net.radio_alpha`` is not 2, or `wait_s` has another shape or is negative or not finite.
    TypeError
        If `net` is no network.
    """
    # Imported here: it would slow down every import of the analytic model.
    from scipy.special import erfcx

    wait = checked_wait(net, wait_s)
    _check_alpha(net)
    rate = math.pi * net.tier_density / net.radio_xi
    share, distance, radio = (np.zeros(net.prefill_s.shape) for _ in range(3))
    for q, cost in enumerate(type_costs(net, wait)):
        for part in _stretches(cost, rate):
            total = float(part.rate.sum())
            # The radio cost at both ends, times the total rate; the upper end may be infinite.
            low = total * (part.start - cost[part.active])
            high = low + total * part.length
            fading = math.exp(-total * part.length)
            weight = part.left * part.rate / total
            share[part.active, q] += weight * -math.expm1(-total * part.length)
            upper = np.where(fading > 0, high, 0.0)
            # exp(y) times the upper incomplete gamma function of 3/2, and of 2.
            root_low = np.sqrt(low) + math.sqrt(math.pi) / 2.0 * erfcx(np.sqrt(low))
            root_high = np.sqrt(upper) + math.sqrt(math.pi) / 2.0 * erfcx(np.sqrt(upper))
            moved = (root_low - fading * root_high) / math.sqrt(total * net.radio_xi)
            distance[part.active, q] += weight * moved
            radio[part.active, q] += weight * ((low + 1.0) - fading * (upper + 1.0)) / total
    used = share > 0
    nothing = np.full(share.shape, np.nan)
    return Association(
        probability=share,
        mean_distance_km=np.divide(distance, share, out=nothing.copy(), where=used),
        mean_radio_s=np.divide(radio, share, out=nothing, where=used),
    )


def coverage_alpha2(
    net: TieredNetwork,
    wait_s: ArrayLike,
    ttft_target_s: ArrayLike,
    *,
    delay: ArrayLike,
    decay_per_s: ArrayLike,
) -> FloatArray:
    """Return who is served in time in a network with ``radio_alpha = 2``, in closed form [39].

    Parameters
    ----------
    net : TieredNetwork
    wait_s : array_like [S]
        Advertised waits in seconds, which requests choose by.
    ttft_target_s : float or array_like [Q]
        TTFT target, for all types or for each.
    delay, decay_per_s : array_like [S]
        The actual wait at tier s exceeds w with probability ``delay * exp(-decay_per_s * w)``.

    Returns
    -------
    float64 [S, Q]
        Probability that a request of type q is served by tier s in time.

    Raises
    ------
    ValueError
        If ``net.radio_alpha`` is not 2, or an argument breaks its rule.
    TypeError
        If `net` is no network.
    """
    wait = checked_wait(net, wait_s)
    _check_alpha(net)
    target = checked_target(net, ttft_target_s) - net.radio_base_s
    late = checked_wait(net, delay, "delay")
    if late.max() > 1:
        raise ValueError(f"delay is {delay!r}: must be probabilities")
    fall = checked_wait(net, decay_per_s, "decay_per_s")
    rate = math.pi * net.tier_density / net.radio_xi
    result = np.zeros(net.prefill_s.shape)
    for q, cost in enumerate(type_costs(net, wait)):
        for part in _stretches(cost, rate):
            total = float(part.rate.sum())
            for s, own in zip(part.active, part.rate, strict=True):
                slack = float(target[q] + wait[s]) - part.start
                length = min(part.length, slack)
                if length <= 0:
                    continue
                won = -math.expm1(-total * length) / total
                lost = late[s] * _overlap(total, float(fall[s]), length, slack - length)
                result[s, q] += part.left * own * (won - lost)
    return result


def _overlap(rate: float, fall: float, length: float, rest: float) -> float:
    """Return the integral of ``exp(-rate * z - fall * (length + rest - z))`` over 0 to length."""
    gap = abs(rate - fall) * length
    mean = -math.expm1(-gap) / gap if gap > 0 else 1.0
    return length * math.exp(-min(rate, fall) * length - fall * rest) * mean
