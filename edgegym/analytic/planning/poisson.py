"""Poisson probabilities and quantiles, exact for small means and for very large ones."""

import math

from edgegym.world.network import checked_number

MOST_LOAD = 1e12
"""Largest mean."""

_LEAST_QUANTILE, _LARGEST_QUANTILE = 1e-12, 1.0 - 1e-12
# From here on the incomplete gamma function of SciPy is a series that may stop too early.
_LARGE = 1e4
# Coefficients of powers of eta in Temme's expansion.
_C0 = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600)
_C1 = (-1 / 540, -1 / 288, 1 / 378)


def poisson_quantile(mean: float, quantile: float) -> int:
    """Return the smallest whole number k with P(N <= k) >= quantile for a Poisson number N.

    Found by bisection on the probabilities themselves, on the smaller one of P(N <= k) and
    P(N > k). At the mean 1e12 one more k still changes a tail by some 1e-6 of itself, far more than
    the error of :func:`poisson_sides`.

    Parameters
    ----------
    mean : float
        From 0 to 1e12.
    quantile : float
        From 1e-12 to 1 - 1e-12.

    Raises
    ------
    ValueError
        If a number is out of range.
    """
    mean = checked_number("mean", mean, 0.0, MOST_LOAD)
    quantile = checked_number("quantile", quantile, _LEAST_QUANTILE, _LARGEST_QUANTILE)

    def reached(k: int) -> bool:
        up_to, beyond = poisson_sides(k, mean)
        return up_to >= quantile if quantile < 0.5 else beyond <= 1.0 - quantile

    if mean == 0.0 or reached(0):
        return 0
    # Eight standard deviations below the mean nothing is reached.
    step = math.ceil(math.sqrt(mean)) + 1
    low = max(0, math.floor(mean) - 8 * step)
    high = math.ceil(mean) + 1
    while not reached(high):
        low, high = high, high + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def poisson_sides(k: int, mean: float) -> tuple[float, float]:
    """Return P(N <= k) and P(N > k) of a Poisson number, to a relative 1e-9 above 1e-15.

    They are the two regularised incomplete gamma functions of k + 1 at the mean. For large k these
    are taken from Temme's uniform expansion, about a normal tail and a correction::

        P(N <= k) = erfc(eta sqrt(a / 2)) / 2 + R,   a = k + 1,   eta^2 / 2 = m - ln(1 + m),
        R = exp(-a eta^2 / 2) / sqrt(2 pi a) (c0(eta) + c1(eta) / a + ...),   m = mean / a - 1,

    of which two terms are enough where the mean is within a tenth of k. Further away, ten
    standard deviations and more, the smaller of the two is below every quantile allowed here.

    Parameters
    ----------
    k : int
        At least 0.
    mean : float
        Positive.
    """
    from scipy.special import erfc, gammainc, gammaincc

    a = k + 1.0
    offset = (mean - a) / a
    if a <= _LARGE or abs(offset) > 0.1:
        return float(gammaincc(a, mean)), float(gammainc(a, mean))
    half_square = _log_defect(offset)
    eta = math.copysign(math.sqrt(2.0 * half_square), offset)
    scaled = math.sqrt(a * half_square) * (1.0 if offset >= 0 else -1.0)
    correction = math.exp(-a * half_square) / math.sqrt(2.0 * math.pi * a)
    correction *= _polynomial(_C0, eta) + _polynomial(_C1, eta) / a
    return 0.5 * float(erfc(scaled)) + correction, 0.5 * float(erfc(-scaled)) - correction


def _log_defect(m: float) -> float:
    """Return m - ln(1 + m) for |m| <= 0.1, without cancellation."""
    total, power, order = 0.0, m * m, 2
    while True:
        term = power / order if order % 2 == 0 else -power / order
        total += term
        if abs(term) <= 1e-17 * total:
            return total
        power *= m
        order += 1


def _polynomial(coefficients: tuple[float, ...], x: float) -> float:
    value = 0.0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value
