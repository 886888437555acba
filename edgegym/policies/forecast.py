"""Forecasting the demand around each node from what was observed so far, and from nothing else."""

import math
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.interface.layout import DEMAND_EWMA_S
from edgegym.world.network import checked_number

FloatArray = NDArray[np.float64]

_LARGEST = 1e9
_SIGNALS = 3  # of the regression: middle mean, fast level, fast slope
# Load is taken as at least this part of its mean: a quiet moment makes no pattern.
_LEAST_LOAD = 0.05
# Where the coefficients of middle mean, fast level and slope start: half way from a slow mean to
# following every trend.
_START = np.array([0.5, 0.25, 0.25])


@dataclass(frozen=True, kw_only=True)
class ForecastSettings:
    """Time scales of the forecast.

    Attributes
    ----------
    fast_s, middle_s, slow_s : float
        Time constants, in seconds, of the trend's level and slope, of the middle mean, and of the
        slow mean that the other three correct.
    lead_s : float
        What the regression learns to foresee: the mean demand from now until so many seconds
        ahead.
    memory_s : float
        Time constant with which the regression forgets.
    doubt : float
        Weight of the regression's start, in epochs of a demand that changes by its own size.
    prior_s : float
        Seconds of the fleet's mean demand with which every node starts.

    Raises
    ------
    ValueError
        If a value is not positive and finite.

    Notes
    -----
    Tuned by the error of forecasts against the true demand of seeds 0 to 5 of the urban presets,
    then by the coverage of ``analytic_mpc`` on seeds 0 to 11.
    """

    fast_s: float = 20.0
    middle_s: float = 45.0
    slow_s: float = 300.0
    lead_s: float = 30.0
    memory_s: float = 200.0
    doubt: float = 0.1
    prior_s: float = 10.0

    def __post_init__(self) -> None:
        for field in fields(self):
            checked_number(field.name, getattr(self, field.name), 0.0, _LARGEST, strict=True)


class ForecastState(NamedTuple):
    """What a forecaster remembers; all shapes are fixed."""

    near: FloatArray  # [N, F] the observation before
    total: FloatArray  # [] requests/s of all, as observed before
    load: FloatArray  # [2] single and double mean of the requests/s of all
    slow: FloatArray  # [N, F] sum behind the slow mean
    middle: FloatArray  # [N, F]
    seconds: FloatArray  # [2] weight of the slow and of the middle sum
    trend: FloatArray  # [2, N, F] single and double mean
    signals: FloatArray  # [L, 1 + 3, N, F] slow mean and signals after the last L epochs
    patterns: FloatArray  # [L, N, F] what came in the last L epochs
    seen: FloatArray  # [] epochs since the start
    moments: FloatArray  # [3, 4] sums of signal times signal, and of signal times outcome


class DemandForecaster:
    """Foresees the demand around every node by family.

    Observed rates are exponential means over 30 s, and so run late. What came in each epoch is
    recovered from two observations, and divided by the fleet's load into a pattern. Three signals
    correct the pattern's slow mean: a faster mean, the level of a trend without lag (double
    exponential smoothing), and its slope. How much of each to believe is learned by least squares
    from how the pattern went on after earlier epochs, over all nodes and families together: where
    nothing changes, signals are noise and get no weight; where demand moves, they do. The load is
    foreseen by its own trend.

    Parameters
    ----------
    epoch_s : float
        Time between two observations.
    warmup_s : float
        Time that the first observation has seen.
    start_rate_per_s : float
        Rate at which the observed means start, per node and family.
    mean_rate_per_s : float
        Long-run requests/s of the whole region.
    value : ndarray, shape [F]
        How much an error counts for each family.
    settings : ForecastSettings
        Time scales.
    """

    def __init__(
        self,
        *,
        epoch_s: float,
        warmup_s: float,
        start_rate_per_s: float,
        mean_rate_per_s: float,
        value: FloatArray,
        settings: ForecastSettings | None = None,
    ) -> None:
        self.settings = settings or ForecastSettings()
        self._epoch_s = epoch_s
        self._warmup_s = warmup_s
        self._start_rate = start_rate_per_s
        self._mean_rate = mean_rate_per_s
        self._value = value / max(float(np.abs(value).max()), 1e-12)
        self._epochs = max(1, round(self.settings.lead_s / epoch_s))
        self._ridge = self.settings.doubt * np.column_stack([np.eye(_SIGNALS), _START])
        self._middle_lead_s = 0.5 * (self._epochs + 1) * epoch_s

    def begin(self, near: FloatArray, total: float, up: NDArray[np.bool_]) -> ForecastState:
        """Return the memory after an episode's first observation.

        Parameters
        ----------
        near : ndarray, shape [N, F]
            Observed requests/s around each node.
        total : float
            Observed requests/s of all families in the whole region.
        up : ndarray of bool, shape [N]
            Nodes whose rows mean anything.
        """
        settings = self.settings
        # The observer's means started at one rate for all: this is what came in meanwhile.
        kept = math.exp(-self._warmup_s / DEMAND_EWMA_S)
        start = np.full_like(near, self._start_rate)
        first = near if kept >= 1.0 else np.maximum((near - kept * start) / (1.0 - kept), 0.0)
        started = kept * self._start_rate * near.shape[1] * int(up.sum())
        came = total if kept >= 1.0 else max((total - started) / (1.0 - kept), 0.0)
        load = np.full(2, came)
        pattern = first / self._load_factor(load)
        fleet = pattern[up].mean(axis=0) if up.any() else pattern.mean(axis=0)
        scales = np.array([settings.slow_s, settings.middle_s])
        weights = -scales * np.expm1(-self._warmup_s / scales)
        sums = weights[:, None, None] * pattern + settings.prior_s * fleet
        mean = sums[0] / (weights[0] + settings.prior_s)
        state = ForecastState(
            near=near,
            total=np.asarray(total, dtype=np.float64),
            load=load,
            slow=sums[0],
            middle=sums[1],
            seconds=weights + settings.prior_s,
            trend=np.stack([mean, mean]),
            signals=np.zeros((self._epochs, 1 + _SIGNALS, *near.shape)),
            patterns=np.zeros((self._epochs, *near.shape)),
            seen=np.asarray(0.0),
            moments=self._ridge,
        )
        state.signals[-1] = self._signals(state)
        return state

    def update(
        self, state: ForecastState, near: FloatArray, total: float, up: NDArray[np.bool_]
    ) -> ForecastState:
        """Return the memory after one more observation; parameters as of :meth:`begin`."""
        settings = self.settings
        kept = math.exp(-self._epoch_s / DEMAND_EWMA_S)
        came = max((total - kept * float(state.total)) / (1.0 - kept), 0.0)
        load = self._smoothed(state.load, came, settings.fast_s)
        arrived = np.maximum((near - kept * state.near) / (1.0 - kept), 0.0)
        pattern = arrived / self._load_factor(load)
        scales = np.array([settings.slow_s, settings.middle_s])
        fade = np.exp(-self._epoch_s / scales)
        gained = scales * (1.0 - fade)
        state = state._replace(
            near=near,
            total=np.asarray(total, dtype=np.float64),
            load=load,
            slow=fade[0] * state.slow + gained[0] * pattern,
            middle=fade[1] * state.middle + gained[1] * pattern,
            seconds=fade * state.seconds + gained,
            trend=self._smoothed(state.trend, pattern, settings.fast_s),
            patterns=np.concatenate([state.patterns[1:], pattern[None]]),
            seen=state.seen + 1.0,
        )
        if state.seen >= self._epochs:
            state = state._replace(moments=self._learned(state, up))
        signals = np.concatenate([state.signals[1:], self._signals(state)[None]])
        return state._replace(signals=signals)

    def pattern(self, state: ForecastState, ahead_s: float) -> FloatArray:
        """Return where demand will be: requests/s around each node at the mean load ``[N, F]``.

        Parameters
        ----------
        state : ForecastState
            The memory now.
        ahead_s : float
            Seconds from now, at least 0. Trends are damped: beyond some minutes a longer time
            makes no difference.
        """
        mean, *signals = state.signals[-1]
        middle, level, slope = self.coefficients(state)
        reach = self._reach_s(ahead_s) / self._reach_s(self._middle_lead_s)
        pattern = mean + middle * signals[0] + level * signals[1] + reach * slope * signals[2]
        return np.maximum(pattern, 0.0)

    def forecast(self, state: ForecastState, ahead_s: float) -> FloatArray:
        """Return the requests/s of each family per node around each node, ``[N, F]``.

        Parameters as of :meth:`pattern`.
        """
        return self.pattern(state, ahead_s) * (self.load(state, ahead_s) / self._mean_rate)

    def load(self, state: ForecastState, ahead_s: float) -> float:
        """Return the requests/s of the whole region so many seconds from now."""
        level = 2.0 * state.load[0] - state.load[1]
        change = (state.load[0] - state.load[1]) / self.settings.fast_s
        least = _LEAST_LOAD * self._mean_rate
        return max(float(level + change * self._reach_s(ahead_s)), least)

    def coefficients(self, state: ForecastState) -> FloatArray:
        """Return how much of each signal is believed: middle mean, trend's level, its slope."""
        solved = np.linalg.solve(state.moments[:, :_SIGNALS], state.moments[:, _SIGNALS])
        return np.asarray(solved, dtype=np.float64)

    def _reach_s(self, ahead_s: float) -> float:
        """Return the seconds over which a trend goes on, damped."""
        damping_s = 3.0 * self.settings.fast_s
        return -damping_s * math.expm1(-ahead_s / damping_s)

    def _load_factor(self, load: FloatArray) -> float:
        """Return the load now relative to the long run."""
        return max(float(2.0 * load[0] - load[1]) / self._mean_rate, _LEAST_LOAD)

    def _smoothed(
        self, means: FloatArray, newest: FloatArray | float, scale_s: float
    ) -> FloatArray:
        """Return single and double exponential mean with one more value."""
        fade = math.exp(-self._epoch_s / scale_s)
        single = fade * means[0] + (1.0 - fade) * newest
        return np.stack([single, fade * means[1] + (1.0 - fade) * single])

    def _signals(self, state: ForecastState) -> FloatArray:
        """Return the slow mean and what may correct it, ``[1 + 3, N, F]``."""
        slow = state.slow / state.seconds[0]
        middle = state.middle / state.seconds[1]
        single, double = state.trend
        # (single - double) / fast_s is the slope per second: this is the rise within fast_s.
        return np.stack([slow, middle - slow, 2.0 * single - double - slow, single - double])

    def _learned(self, state: ForecastState, up: NDArray[np.bool_]) -> FloatArray:
        """Return the sums of the regression with what the oldest signals led to."""
        mean, *signals = state.signals[0]
        outcome = state.patterns.mean(axis=0) - mean
        rows = np.stack([*signals, outcome]) * (self._value * up[:, None])
        flat = rows.reshape(_SIGNALS + 1, -1)
        size = np.square(mean * self._value * up[:, None]).sum()
        if size <= 0.0:
            return state.moments
        fade = math.exp(-self._epoch_s / self.settings.memory_s)
        old = state.moments - self._ridge
        return self._ridge + fade * old + (flat[:_SIGNALS] @ flat.T) / size
