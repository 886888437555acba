"""Forecasts of demands whose future is known."""

import numpy as np
import pytest

from edgegym.interface.layout import DEMAND_EWMA_S
from edgegym.policies.forecast import DemandForecaster, ForecastSettings, ForecastState

EPOCH_S, WARMUP_S, START = 5.0, 20.0, 0.5
NODES, FAMILIES = 12, 3


def forecaster(**settings: float) -> DemandForecaster:
    return DemandForecaster(
        epoch_s=EPOCH_S,
        warmup_s=WARMUP_S,
        start_rate_per_s=START,
        mean_rate_per_s=NODES * FAMILIES * START,
        value=np.ones(FAMILIES),
        settings=ForecastSettings(**settings),
    )


def watched(
    model: DemandForecaster, rate, epochs: int, up: np.ndarray | None = None
) -> ForecastState:
    """Return the memory after epochs of demand ``rate(t) [N, F]``, as the observer averages it."""
    up = np.ones(NODES, dtype=bool) if up is None else up
    kept = np.exp(-WARMUP_S / DEMAND_EWMA_S)
    near = kept * START + (1.0 - kept) * rate(-0.5 * WARMUP_S)
    state = model.begin(near, near.sum(), up)
    kept = np.exp(-EPOCH_S / DEMAND_EWMA_S)
    for epoch in range(epochs):
        near = kept * near + (1.0 - kept) * rate((epoch + 0.5) * EPOCH_S)
        state = model.update(state, near, near.sum(), up)
    return state


def level(noise: float = 0.0, seed: int = 0):
    """Return a demand that differs between nodes and families and changes by noise alone."""
    rng = np.random.default_rng(seed)
    mean = rng.uniform(0.2, 1.0, (NODES, FAMILIES))
    return mean, lambda t: mean * (1.0 + noise * rng.standard_normal(mean.shape))


def rotating(period_s: float):
    """Return a demand that circles the nodes, each family at its own phase."""

    def rate(t: float) -> np.ndarray:
        phase = np.arange(NODES)[:, None] / NODES + np.arange(FAMILIES) / FAMILIES - t / period_s
        return START * (1.0 + 0.8 * np.cos(2.0 * np.pi * phase))

    return rate


def test_a_constant_demand_is_known_without_the_observers_start() -> None:
    mean, rate = level()
    for epochs in (0, 1, 10):
        state = watched(forecaster(prior_s=1e-6), rate, epochs)
        np.testing.assert_allclose(forecaster().forecast(state, 20.0), mean, rtol=1e-4)


def test_noise_is_not_followed() -> None:
    mean, rate = level(noise=0.5)
    model = forecaster()
    state = watched(model, rate, 100)
    middle, trend, slope = model.coefficients(state)
    assert abs(middle + trend) < 0.25
    assert abs(slope) < 0.3
    error = np.abs(model.forecast(state, 20.0) / mean - 1.0).mean()
    assert error < 0.6 * np.abs(state.near / mean - 1.0).mean()


def test_a_rotation_is_foreseen() -> None:
    rate = rotating(600.0)
    model = forecaster()
    state = watched(model, rate, 100)
    now = 100 * EPOCH_S
    for ahead in (0.0, 15.0, 30.0):
        truth = rate(now + ahead)
        foreseen = np.abs(model.forecast(state, ahead) - truth).mean()
        assert foreseen < 0.5 * np.abs(state.near - truth).mean()
    assert model.coefficients(state)[1] > 0.5


def test_a_ramp_of_one_node_is_extrapolated() -> None:
    def rate(t: float) -> np.ndarray:
        demand = np.full((NODES, FAMILIES), START)
        demand[0, 0] += 0.004 * max(t, 0.0)
        demand[1, 0] -= 0.0008 * max(t, 0.0)
        return demand

    model = forecaster()
    state = watched(model, rate, 80)
    for ahead in (0.0, 20.0):
        truth = rate(400.0 + ahead)[0, 0]
        assert model.forecast(state, ahead)[0, 0] == pytest.approx(truth, rel=0.06)
    assert model.forecast(state, 20.0)[0, 0] > model.forecast(state, 0.0)[0, 0]


def test_a_load_that_swings_leaves_the_pattern_alone() -> None:
    mean, _ = level()

    def rate(t: float) -> np.ndarray:
        return mean * (1.0 + 0.6 * np.sin(2.0 * np.pi * t / 600.0))

    model = forecaster(prior_s=1e-6)
    state = watched(model, rate, 60)
    pattern = model.pattern(state, 20.0)
    np.testing.assert_allclose(pattern / pattern.sum(), mean / mean.sum(), rtol=0.02)
    for ahead, tolerance in ((0.0, 0.05), (30.0, 0.15)):  # half way down; trends are damped
        truth = rate(300.0 + ahead)
        assert model.load(state, ahead) == pytest.approx(truth.sum(), rel=tolerance)
        np.testing.assert_allclose(model.forecast(state, ahead), truth, rtol=tolerance + 0.02)


def test_rows_that_are_down_teach_nothing() -> None:
    _, rate = level(noise=0.3)
    up = np.arange(NODES) < 8
    model = forecaster()
    plain = watched(model, rate, 30, up)

    _, again = level(noise=0.3)

    def spoiled(t: float) -> np.ndarray:
        demand = again(t)
        demand[8:] = 0.0
        return demand

    other = watched(model, spoiled, 30, up)
    # The load differs, what is learned from the rows that count hardly does.
    np.testing.assert_allclose(model.coefficients(other), model.coefficients(plain), atol=0.15)


def test_silence_is_finite() -> None:
    model = forecaster()
    state = watched(model, lambda t: np.zeros((NODES, FAMILIES)), 30)
    assert np.isfinite(model.forecast(state, 20.0)).all()
    assert all(np.isfinite(part).all() for part in state)
    assert (model.forecast(state, 20.0) >= 0.0).all()


def test_the_memory_keeps_its_shapes() -> None:
    _, rate = level(noise=0.2)
    model = forecaster()
    first, last = watched(model, rate, 0), watched(model, rate, 20)
    assert [part.shape for part in first] == [part.shape for part in last]
    assert [part.dtype for part in first] == [part.dtype for part in last]


@pytest.mark.parametrize("field", ["fast_s", "middle_s", "slow_s", "lead_s", "memory_s", "doubt"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_wrong_settings_are_named(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} is {value}"):
        ForecastSettings(**{field: value})
