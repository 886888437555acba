"""Multi-server queues with Poisson arrivals: Erlang-B, Erlang-C, waits [17]-[20] (compiled)."""

import math

import numpy as np

from edgegym.jit import kernel
from edgegym.world.network import checked_number, checked_whole

# The recursion takes a step per server.
_MOST_SERVERS = 10**8
_LARGEST = 1e150


@kernel
def erlang_b_kernel(servers, load):
    """Return the Erlang-B blocking probability, by the recursion that never overflows."""
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = load * blocking / (k + load * blocking)
    return blocking


@kernel
def delay_probability(servers, load):
    """Return Erlang-C, the probability of waiting, and its derivative in the load.

    At and beyond saturation (load >= servers) the probability is 1 and the derivative 0.
    """
    if load >= servers:
        return 1.0, 0.0
    if load <= 0.0:
        return 0.0, (1.0 if servers == 1 else 0.0)
    b = erlang_b_kernel(servers, load)
    b_slope = b * (servers / load - 1.0 + b)
    rho = load / servers
    below = 1.0 - rho * (1.0 - b)
    below_slope = (b - 1.0) / servers + rho * b_slope
    return b / below, (b_slope * below - b * below_slope) / (below * below)


@kernel
def node_queue(slots, rate, load, wait_scale):
    """Return how long requests wait at one node [18]-[20].

    Parameters
    ----------
    slots : int
    rate, load : float
        Requests/s, and slots in use on average: rate times mean occupancy.
    wait_scale : float
        ``(1 + scv) / 2`` of the service time (Allen-Cunneen).

    Returns
    -------
    mean, waiting, decay : float
        Mean wait in seconds, and the probability of waiting: the wait exceeds w with probability
        ``waiting * exp(-decay * w)``. Infinite, 1 and 0 from saturation on; all 0 without requests.
    """
    if rate <= 0.0:
        return 0.0, 0.0, 0.0
    if load >= slots:
        return np.inf, 1.0, 0.0
    waiting = delay_probability(slots, load)[0]
    mean = wait_scale * (load / rate) * waiting / (slots - load)
    return mean, waiting, (slots - load) * rate / (load * wait_scale)


def _checked(servers: int, load: float, name: str) -> tuple[int, float]:
    servers = checked_whole("servers", servers, 1, _MOST_SERVERS)
    return servers, checked_number(name, load, 0.0, _LARGEST)


def _checked_rates(servers: int, arrival_rate: float, service_rate: float) -> tuple[int, float]:
    service_rate = checked_number("service_rate", service_rate, 0.0, _LARGEST, strict=True)
    servers, arrival_rate = _checked(servers, arrival_rate, "arrival_rate")
    return servers, arrival_rate / service_rate


def _wait_scale(service_scv: float) -> float:
    """Return the factor by which waits differ from those of exponential service (Allen-Cunneen)."""
    return (1.0 + checked_number("service_scv", service_scv, 0.0, _LARGEST)) / 2.0


def erlang_b(servers: int, load: float) -> float:
    """Return the probability that all servers are busy in a system without a queue.

    Parameters
    ----------
    servers : int
        From 1 to 1e8.
    load : float
        Offered load a = arrival rate / service rate, at least 0.

    Returns
    -------
    float
        ``B_0 = 1, B_k = a B_{k-1} / (k + a B_{k-1})``.

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    """
    return float(erlang_b_kernel(*_checked(servers, load, "load")))


def erlang_c(servers: int, load: float) -> float:
    """Return the probability of waiting in M/M/c [18]; 1 from ``load = servers`` on.

    Parameters
    ----------
    servers, load
        See :func:`erlang_b`.

    Returns
    -------
    float
        ``B / (1 - rho * (1 - B))`` with ``rho = load / servers``.

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    """
    return float(delay_probability(*_checked(servers, load, "load"))[0])


def mean_wait(
    servers: int, arrival_rate: float, service_rate: float, service_scv: float = 1.0
) -> float:
    """Return the mean wait before service [19], in seconds; infinite where the queue is unstable.

    Parameters
    ----------
    servers : int
        At least 1.
    arrival_rate : float
        Requests per second.
    service_rate : float
        Requests per second of one server.
    service_scv : float
        Squared coefficient of variation of the service time: the wait of M/M/c scales by
        ``(1 + scv) / 2``, exact for one server or for exponential service.

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    """
    servers, load = _checked_rates(servers, arrival_rate, service_rate)
    scale = _wait_scale(service_scv)
    if load >= servers:
        return math.inf
    waiting = float(delay_probability(servers, load)[0])
    return scale * waiting / (servers * service_rate - arrival_rate)


def wait_cdf(
    wait_s: float,
    servers: int,
    arrival_rate: float,
    service_rate: float,
    service_scv: float = 1.0,
) -> float:
    """Return P(wait <= wait_s) [20]; 0 where the queue is unstable or `wait_s` negative.

    Parameters
    ----------
    wait_s : float
        Seconds; may be infinite.
    servers, arrival_rate, service_rate, service_scv
        See :func:`mean_wait`. Other laws than the exponential keep the probability of waiting and
        scale the time of those who wait.

    Raises
    ------
    ValueError
        If an argument breaks its rule.
    """
    if not (isinstance(wait_s, float) and math.isinf(wait_s)):
        wait_s = checked_number("wait_s", wait_s, -_LARGEST, _LARGEST)
    servers, load = _checked_rates(servers, arrival_rate, service_rate)
    scale = _wait_scale(service_scv)
    if load >= servers or wait_s < 0:
        return 0.0
    waiting = float(delay_probability(servers, load)[0])
    decay = (servers * service_rate - arrival_rate) / scale
    return 1.0 - waiting * math.exp(-decay * wait_s)


__all__ = ["erlang_b", "erlang_c", "mean_wait", "wait_cdf"]
