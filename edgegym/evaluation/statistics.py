"""Statistics of paired runs: pure functions of one number, or one pair of counts, per seed."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

CONFIDENCE = 0.95
"""Level of every interval."""

_RESAMPLES = 9999
_BOOTSTRAP_SEED = 0

Floats = NDArray[np.float64]
_Statistic = Callable[..., Floats]


@dataclass(frozen=True)
class Interval:
    """A confidence interval at the level ``CONFIDENCE``, or the reason why there is none."""

    low: float | None
    """Lower end; None if there is no interval."""
    high: float | None
    """Upper end; None if there is no interval."""
    method: str
    """``BCa`` or ``percentile`` (bootstraps), ``constant``, or why there is no interval."""

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"none ({self.method})"
        return f"[{self.low:.4f}, {self.high:.4f}]"


def ratio_of_sums(numerators: ArrayLike, denominators: ArrayLike) -> float | None:
    """Return Σ numerators / Σ denominators over seeds, ``[n]`` each; None if the latter is 0."""
    below = float(np.sum(denominators))
    return float(np.sum(numerators)) / below if below else None


def coverage_interval(hits: ArrayLike, decided: ArrayLike) -> Interval:
    """Return the bootstrap interval of a policy's coverage.

    Parameters
    ----------
    hits, decided : array_like
        ``[n]`` requests within target and decided, by seed.

    Returns
    -------
    Interval
        Of the ratio of sums, seeds resampled.
    """
    return _bootstrap(_ratio, hits, decided)


def difference_interval(
    hits: ArrayLike,
    decided: ArrayLike,
    reference_hits: ArrayLike,
    reference_decided: ArrayLike,
) -> Interval:
    """Return the paired bootstrap interval of a difference in coverage.

    Parameters
    ----------
    hits, decided, reference_hits, reference_decided : array_like
        ``[n]`` by seed, both policies on the same seeds in the same order.

    Returns
    -------
    Interval
        Of the difference of ratios of sums. Whole seeds are resampled, so what makes a seed hard
        for both policies cancels.
    """
    return _bootstrap(_ratio_difference, hits, decided, reference_hits, reference_decided)


def interquartile_mean(values: ArrayLike) -> float:
    """Return the mean of the middle half.

    Parameters
    ----------
    values : array_like
        ``[n]`` one value per seed, n at least 1.

    Returns
    -------
    float
        Mean without the ⌊n/4⌋ lowest and highest values.
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def probability_of_improvement(values: ArrayLike, reference: ArrayLike) -> float:
    """Return how often a policy beats the reference on the same seed.

    Parameters
    ----------
    values, reference : array_like
        ``[n]`` by seed, in the same order, n at least 1.

    Returns
    -------
    float
        Share of the seeds with a larger value; a tie counts half.
    """
    difference = np.asarray(values, dtype=np.float64) - np.asarray(reference, dtype=np.float64)
    return float(np.mean((np.sign(difference) + 1.0) / 2.0))


def normalised_score(value: float, static: float, clairvoyant: float) -> float | None:
    """Return where a value lies between never moving (0) and knowing the future (1).

    Parameters
    ----------
    value, static, clairvoyant : float
        Coverages.

    Returns
    -------
    float or None
        May exceed 1, as knowing the future is a strong reference and not a bound. None if the two
        ends are equal.
    """
    return (value - static) / (clairvoyant - static) if clairvoyant != static else None


def _ratio(above: Floats, below: Floats, axis: int = -1) -> Floats:
    return above.sum(axis=axis) / below.sum(axis=axis)


def _ratio_difference(
    above: Floats, below: Floats, other_above: Floats, other_below: Floats, axis: int = -1
) -> Floats:
    return _ratio(above, below, axis=axis) - _ratio(other_above, other_below, axis=axis)


def _bootstrap(statistic: _Statistic, *samples: ArrayLike) -> Interval:
    """Return the interval of a statistic of paired ``[n]`` (numerators, denominators, …)."""
    arrays = tuple(np.asarray(sample, dtype=np.float64) for sample in samples)
    if any((below == 0).any() for below in arrays[1::2]):
        return Interval(None, None, "a seed decided no request")
    if len(arrays[0]) < 2:
        return Interval(None, None, "one seed")
    for method in ("BCa", "percentile"):
        low, high = _scipy_bootstrap(statistic, arrays, method)
        if np.isfinite(low) and np.isfinite(high):
            return Interval(low, high, "constant" if low == high else method)
    raise ArithmeticError("the percentile bootstrap of finite values is finite")


def _scipy_bootstrap(
    statistic: _Statistic, arrays: tuple[Floats, ...], method: str
) -> tuple[float, float]:
    """Return the ends of the interval; NaN where BCa has no answer."""
    from scipy.stats import bootstrap

    with warnings.catch_warnings():
        # Few seeds can leave BCa without an answer: the percentile bootstrap takes over.
        warnings.simplefilter("ignore")
        interval = bootstrap(
            arrays,
            statistic,
            paired=True,
            vectorized=True,
            confidence_level=CONFIDENCE,
            n_resamples=_RESAMPLES,
            method=method,
            # SciPy before 1.15 knows this name only, later ones know both.
            random_state=np.random.default_rng(_BOOTSTRAP_SEED),  # pyright: ignore[reportCallIssue]
        ).confidence_interval
    return float(interval.low), float(interval.high)
