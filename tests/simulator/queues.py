"""Queueing theory computed for itself, and means with their errors."""

import math

import numpy as np


def mean_and_error(values: np.ndarray, batches: int = 50) -> tuple[float, float]:
    """Return the mean of a dependent sequence and its standard error, by batch means."""
    length = len(values) // batches
    means = values[: length * batches].reshape(batches, length).mean(axis=1)
    return float(values.mean()), float(means.std(ddof=1) / math.sqrt(batches))


def check_mean(values: np.ndarray, expected: float, relative_error: float) -> None:
    """Assert that a mean is within four standard errors, themselves a small part of it."""
    mean, error = mean_and_error(np.asarray(values, dtype=np.float64))
    assert error < relative_error * expected, f"error {error:.3g} of {mean:.5g}: too few samples"
    assert abs(mean - expected) < 4.0 * error, f"{mean:.6g} ± {error:.2g}, expected {expected:.6g}"


def md1_wait_cdf(rate: float, service_s: float, wait_s: float) -> float:
    """Return P(W <= wait) in M/D/1 (Crommelin 1932, c = 1)."""
    terms = []
    for k in range(int(wait_s / service_s) + 1):
        mean = rate * (wait_s - k * service_s)
        terms.append((-mean) ** k / math.factorial(k) * math.exp(mean))
    return (1.0 - rate * service_s) * math.fsum(terms)


class MDc:
    """M/D/c from its numbers in system D apart: N(t + D) = max(N(t) - c, 0) + Poisson(rate D)."""

    def __init__(self, servers: int, load: float, service_s: float = 1.0, most: int = 400) -> None:
        self.servers, self.service_s = servers, service_s
        self.rate = load * servers / service_s
        arrivals = self._poisson(most)
        step = np.zeros((most, most))
        for number in range(most):
            left = max(number - servers, 0)
            step[number, left:] = arrivals[: most - left]
            step[number, -1] += 1.0 - step[number].sum()
        balance = step.T - np.eye(most)
        balance[-1] = 1.0
        ones = np.zeros(most)
        ones[-1] = 1.0
        self.number = np.linalg.solve(balance, ones)

    def _poisson(self, most: int) -> np.ndarray:
        mean = self.rate * self.service_s
        return np.exp([k * math.log(mean) - mean - math.lgamma(k + 1) for k in range(most)])

    @property
    def mean_wait_s(self) -> float:
        """Mean wait, by Little's law."""
        waiting = np.maximum(np.arange(len(self.number)) - self.servers, 0)
        return float(self.number @ waiting) / self.rate

    def wait_cdf(self, wait_s: float) -> float:
        """Return P(W <= wait) (Franx 2001, "A simple solution for the M/D/c waiting time")."""
        k = int(wait_s / self.service_s) + 1
        queue = np.cumsum(self.number)[self.servers :]
        mean = self.rate * (k * self.service_s - wait_s)
        places = k * self.servers
        terms = [
            queue[places - 1 - j] * math.exp(j * math.log(mean) - mean - math.lgamma(j + 1))
            for j in range(places)
        ]
        return math.fsum(terms)


def erlang_c(servers: int, offered: float) -> float:
    """Return the share that waits in M/M/c."""
    blocking = 1.0
    for k in range(1, servers + 1):
        blocking = offered * blocking / (k + offered * blocking)
    load = offered / servers
    return blocking / (1.0 - load * (1.0 - blocking))
