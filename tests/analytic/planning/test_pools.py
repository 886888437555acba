import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.analytic import fragmentation_table, poisson_quantile, pool_slots
from edgegym.analytic.planning.poisson import poisson_sides


def log_pmf(numbers, mean):
    """log P(N = k) by steps from the mode, whose probability Stirling's series gives."""
    mode = math.floor(mean)
    series = 1 / (12 * mode) - 1 / (360 * mode**3) + 1 / (1260 * mode**5)
    # k log(mean / k) + k - mean, without the cancellation.
    d = (mode - mean) / mean
    start = -mean * ((1 + d) * math.log1p(d) - d) - series - 0.5 * math.log(2 * math.pi * mode)
    up = numbers[numbers > mode]
    down = numbers[numbers <= mode]
    above = start + np.cumsum(-np.log1p((up - mean) / mean))
    below = start + np.concatenate(([0.0], np.cumsum(np.log1p((down[:0:-1] - mean) / mean))))
    return np.concatenate((below[::-1], above))


def summed_quantile(mean, quantile):
    """Smallest k whose upper tail, summed term by term, is at most 1 - quantile."""
    spread = 9.0 * math.sqrt(mean) + 60.0
    numbers = np.arange(max(0, math.floor(mean - spread)), math.ceil(mean + spread) + 1)
    tail = np.cumsum(np.exp(log_pmf(numbers.astype(np.float64), mean))[::-1])[::-1]
    # P(N > numbers[i]) = tail[i + 1]
    return int(numbers[np.argmax(np.append(tail[1:], 0.0) <= 1.0 - quantile)])


@pytest.mark.parametrize(
    "mean", [10.0, 37.3, 1000.0, 9990.0, 10_005.5, 123_456.7, 1e6, 33_333_333.3, 1e9]
)
@pytest.mark.parametrize("tail", [0.5, 0.1, 1e-3, 1e-6, 1e-11])
def test_quantiles_are_those_of_the_summed_probabilities(mean, tail):
    # SciPy's own gammainc is off by 8000 at the mean 1e9 and the tail 1e-6.
    assert poisson_quantile(mean, 1.0 - tail) == summed_quantile(mean, 1.0 - tail)


@pytest.mark.parametrize("mean", [300.0, 9990.0, 10_050.0, 1e5, 1e8])
@pytest.mark.parametrize("deviations", [-6.5, -4.6, -2.0, 0.0, 1.5, 4.4, 6.5])
def test_both_sides_are_accurate_far_out(mean, deviations):
    k = math.floor(mean + deviations * math.sqrt(mean))
    spread = 9.5 * math.sqrt(mean) + 60.0
    numbers = np.arange(max(0, math.floor(mean - spread)), math.ceil(mean + spread) + 1)
    terms = np.exp(log_pmf(numbers.astype(np.float64), mean))
    up_to, beyond = poisson_sides(k, mean)
    assert up_to == pytest.approx(math.fsum(terms[numbers <= k]), rel=1e-9)
    assert beyond == pytest.approx(math.fsum(terms[numbers > k]), rel=1e-9)


@pytest.mark.parametrize("quantile", [1e-12, 1e-6, 0.01, 0.3])
def test_low_quantiles(quantile):
    for mean in (50.0, 9000.0, 12_345.6, 1e9):
        k = poisson_quantile(mean, quantile)
        assert poisson_sides(k, mean)[0] >= quantile
        assert k == 0 or poisson_sides(k - 1, mean)[0] < quantile


@given(st.floats(1e-3, 30.0), st.floats(1e-6, 1 - 1e-6))
def test_small_quantiles_by_plain_summation(mean, quantile):
    found = poisson_quantile(mean, quantile)
    terms = [math.exp(-mean + k * math.log(mean) - math.lgamma(k + 1)) for k in range(found + 1)]
    slack = 1e-13
    assert math.fsum(terms) >= quantile - slack
    assert found == 0 or math.fsum(terms[:-1]) < quantile + slack


def test_quantiles_at_the_edges():
    assert poisson_quantile(0.0, 0.999) == 0
    # P(N = 0) = 0.5 exactly reaches a half.
    assert poisson_quantile(math.log(2.0), 0.4999999999) == 0
    assert poisson_quantile(math.log(2.0), 0.5000000001) == 1
    assert poisson_quantile(1e12, 0.999) == pytest.approx(1e12 + 3.0902 * 1e6, abs=1e3)
    assert pool_slots(0.0, 7) == 0


def test_the_same_traffic_in_more_pools_needs_more_slots():
    # A single pool for 1000 requests in progress: their 99.9 % quantile.
    single = pool_slots(1000.0, 1)
    assert single == summed_quantile(1000.0, 0.999) == 1099
    assert pool_slots(1000.0, 50) / single == pytest.approx(1.592, abs=5e-4)
    assert pool_slots(1000.0, 200) / single == pytest.approx(2.366, abs=5e-4)
    assert pool_slots(1000.0, 50) == 50 * summed_quantile(20.0, 0.999)


def test_fragmentation_table():
    table = fragmentation_table(
        1000.0,
        [1, 50, 200],
        runtime_bytes=2**30,
        model_weight_bytes=[16 * 2**30, 3 * 2**30],
        gpu_bytes=80 * 2**30,
    )
    one, fifty, many = table.rows
    assert (one.slots, one.slots_ratio, one.memory_ratio) == (1099, 1.0, 1.0)
    assert fifty.slots == 1750
    assert many.slots == 2600
    assert many.runtime_bytes == 2600 * 2**30
    assert many.weight_bytes == 200 * 19 * 2**30
    assert many.memory_bytes == (2600 + 200 * 19) * 2**30
    assert many.memory_ratio == pytest.approx((2600 + 3800) / (1099 + 19))
    assert one.gpus == 14  # 1118 GiB over 80
    assert many.gpus == 200  # 13 + 19 GiB at each site: one
    assert fifty.gpus == 50  # 35 + 19 GiB
    assert table.as_dicts()[1]["slots"] == 1750
    lines = str(table).splitlines()
    assert len(lines) == 4
    assert len({len(line) for line in lines}) == 1
    assert lines[3].split() == [
        "200",
        "2600",
        "2.366",
        "2600.0",
        "3800.0",
        "6400.0",
        "5.725",
        "200",
    ]


def test_fragmentation_table_without_weights_and_without_load():
    (row,) = fragmentation_table(0.0, [3], runtime_bytes=10).rows
    assert row.slots == row.memory_bytes == 0
    assert math.isnan(row.slots_ratio)
    assert math.isnan(row.memory_ratio)
    assert row.gpus is None
    (row,) = fragmentation_table(10.0, [4], runtime_bytes=10).rows
    assert row.weight_bytes == 0
    assert row.memory_ratio == row.slots_ratio


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("load", -1.0),
        ("load", math.nan),
        ("load", "5"),
        ("pools", [0]),
        ("pools", [1.5]),
        ("pools", []),
        ("pools", None),
        ("pools", 5),
        ("pools", "12"),
        ("pools", b"12"),
        ("model_weight_bytes", 5),
        ("model_weight_bytes", "12"),
        ("runtime_bytes", 0),
        ("model_weight_bytes", [1, -1]),
        ("gpu_bytes", 0),
        ("quantile", 1.0),
        ("quantile", 0.0),
        ("quantile", True),
    ],
)
def test_wrong_arguments_are_refused_by_name(field, value):
    arguments = {"load": 10.0, "pools": [1], "runtime_bytes": 1} | {field: value}
    with pytest.raises(ValueError, match=rf"^{field}.*must"):
        fragmentation_table(**arguments)
