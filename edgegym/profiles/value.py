"""What a vertex is worth: the path score, the additive value, and the value of what expires."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.profiles.demand import LEAST_LIFETIME_S, ForestDemand, check_demand
from edgegym.world.network import checked_number, checked_numbers

FloatArray = NDArray[np.float64]

_HIGHEST_RATE_PER_S = 1e12


def path_score(demand: ForestDemand) -> FloatArray:
    """Return the score of each vertex, seconds saved per request and byte, ``[V]`` [48].

    The prefill that the whole path down to the vertex saves for the types through it, weighted by
    their shares, over the bytes of the whole path. It ranks vertices by themselves: scores of
    nested vertices count their common ancestors twice and don't add up. Infinite for a path that
    saves time and has no bytes, 0 for one that saves nothing.
    """
    check_demand(demand)
    saved = np.zeros(demand.num_vertices)
    for q, (path, share) in enumerate(zip(demand.type_paths, demand.share, strict=True)):
        times = demand.path_prefill_s(q)
        saved[path] += share * (times[0] - times[1:])
    size = demand.bytes.astype(np.float64)
    for vertex, above in enumerate(demand.parent.tolist()):
        if above >= 0:
            size[vertex] += size[above]
    return density(saved, size)


def density(value_s: FloatArray, size: FloatArray | NDArray[np.int64]) -> FloatArray:
    """Return value per byte; infinite where value takes no bytes, 0 where there is no value."""
    free = np.where(value_s > 0, np.inf, 0.0)
    return np.divide(value_s, size, out=free, where=size > 0)


def checked_value_s(value_s: ArrayLike, demand: ForestDemand) -> FloatArray:
    """Return values of the vertices as float64 ``[V]``, or say what is wrong with them."""
    check_demand(demand)
    value = checked_numbers("value_s", value_s, "[V]")
    if value.shape != (demand.num_vertices,):
        raise ValueError(
            f"value_s has shape {value.shape}: must be [V] with shape ({demand.num_vertices},)"
        )
    accepted = (value >= 0) & np.isfinite(value)
    if not accepted.all():
        at = int(np.argmin(accepted))
        raise ValueError(f"value_s[{at}] is {value[at]:g}: must be finite and at least 0")
    return value


def additive_value_s(demand: ForestDemand) -> FloatArray:
    """Return each vertex's own value, seconds of prefill saved per request, ``[V]``.

    What the vertex saves beyond its parent, summed over the types through it, weighted by their
    shares. The values of an ancestor-closed set add up to what the set saves, so it is the value to
    fill a knapsack by.
    """
    check_demand(demand)
    return _summed_increments_s(demand, np.ones(demand.num_vertices))


def _summed_increments_s(demand: ForestDemand, weight: FloatArray) -> FloatArray:
    value = np.zeros(demand.num_vertices)
    for q, (path, share) in enumerate(zip(demand.type_paths, demand.share, strict=True)):
        value[path] += share * -np.diff(demand.path_prefill_s(q))
    return value * weight


def hit_share(requests_per_s: ArrayLike, lifetime_s: ArrayLike) -> FloatArray:
    """Return the share of requests that find content which expires still there.

    Requests come as a Poisson process of rate λ; the one that finds the content expired makes it
    anew, for a lifetime of mean m. From one making to the next there is that one request and all
    that come within the lifetime, on average λm of them *whatever the law of the lifetime* (it is
    independent of the requests, so E N(L) = λ E L). By the renewal-reward theorem the share is::

        λm / (1 + λm)

    for fixed and for exponential lifetimes alike. For exponential ones there is a second way to it,
    which :func:`valid_share` uses for nested vertices: the last request was Exp(λ) ago, and no
    change came since with probability E exp(-A/m) = λ / (λ + 1/m).

    Parameters
    ----------
    requests_per_s : array_like
        λ at one node, at least 0.
    lifetime_s : array_like
        m, at least 1e-12; infinite for what never expires. The two broadcast.

    Returns
    -------
    ndarray of float64
        From 0 to 1; 1 for what never expires, however rarely it is asked for.

    Raises
    ------
    ValueError
        If a rate or a lifetime is out of range.
    """
    rate = checked_numbers("requests_per_s", requests_per_s, "of any shape")
    lifetime = checked_numbers("lifetime_s", lifetime_s, "of any shape")
    if not ((rate >= 0) & (rate <= _HIGHEST_RATE_PER_S)).all():
        raise ValueError(
            f"requests_per_s is {requests_per_s!r}: must be at least 0, at most "
            f"{_HIGHEST_RATE_PER_S:g}"
        )
    if not (lifetime >= LEAST_LIFETIME_S).all():
        raise ValueError(f"lifetime_s is {lifetime_s!r}: must be at least {LEAST_LIFETIME_S:g}")
    return _kept_share(rate, 1.0 / lifetime)


def _kept_share(rate: FloatArray, change_rate: FloatArray) -> FloatArray:
    rate, change_rate = np.broadcast_arrays(rate, change_rate)
    share = np.ones(rate.shape)
    np.divide(rate, rate + change_rate, out=share, where=change_rate > 0)
    return share


def valid_share(demand: ForestDemand, requests_per_s: float) -> FloatArray:
    """Return the share of the requests through each held vertex that find it valid, ``[V]``.

    The state of a vertex is computed from all tokens before it, so it is void as soon as the
    content of the vertex *or of an ancestor* changes. The last request through v made the whole
    path valid. It was Exp(λ_v) ago, and the path changes at the rate Σ 1/m_u over its vertices u,
    so the share is λ_v / (λ_v + Σ 1/m_u). That is exact when contents change at memoryless times;
    with lifetimes of another law, where nothing above v expires (see :func:`hit_share`).
    A vertex is valid only together with its ancestors.

    Parameters
    ----------
    demand : ForestDemand
        Gives the lifetimes and the shares of the requests.
    requests_per_s : float
        All requests at one node that holds the vertices.

    Raises
    ------
    ValueError
        If the rate is not a finite number of at least 0.
    """
    check_demand(demand)
    rate = checked_number("requests_per_s", requests_per_s, 0.0, _HIGHEST_RATE_PER_S)
    change_rate = 1.0 / demand.lifetime_s
    for vertex, above in enumerate(demand.parent.tolist()):
        if above >= 0:
            change_rate[vertex] += change_rate[above]
    return _kept_share(rate * demand.through_share, change_rate)


def lifetime_value_s(demand: ForestDemand, requests_per_s: float) -> FloatArray:
    """Return each vertex's additive value less what expiry takes from it, seconds ``[V]``.

    The additive value times :func:`valid_share`: a request saves the increment of every vertex
    of its path that is held and still valid, so these values of an ancestor-closed set add up to
    what it saves on average as well.

    Parameters
    ----------
    demand : ForestDemand
        With lifetimes.
    requests_per_s : float
        All requests at one node that holds the vertices.

    Raises
    ------
    ValueError
        If the rate is not a finite number of at least 0.
    """
    return _summed_increments_s(demand, valid_share(demand, requests_per_s))
