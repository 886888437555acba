"""Predictions beside what came of them."""

import math

import numpy as np
import pytest

from edgegym.simulator.calibration import RejectedPaths, calibrate, calibration_of
from edgegym.simulator.full.log import SOURCES
from edgegym.simulator.records import RecordTable


def test_bias_scatter_and_correlation_by_hand():
    found = calibration_of(
        "by hand", [1.0, 2.0, 3.0, math.nan, 5.0], [2.0, 2.0, 5.0, 1.0, math.nan]
    )
    assert (found.group, found.count) == ("by hand", 3)
    assert found.bias_s == 1.0  # errors 1, 0, 2
    assert found.scatter_s == pytest.approx(math.sqrt(2.0 / 3.0))
    assert found.correlation == pytest.approx(np.corrcoef([1, 2, 3], [2, 2, 5])[0, 1])


def test_too_few_to_compare():
    none = calibration_of("none", [], [])
    assert none.count == 0
    assert math.isnan(none.bias_s)
    assert math.isnan(none.scatter_s)
    one = calibration_of("one", [1.0], [3.0])
    assert (one.count, one.bias_s, one.scatter_s) == (1, 2.0, 0.0)
    assert math.isnan(one.correlation)
    assert math.isnan(calibration_of("constant", [1.0, 1.0], [2.0, 3.0]).correlation)


def test_records_are_compared_by_where_the_state_came_from():
    columns = {
        "redispatches": np.array([0, 0, 0, 1, 0]),
        "source": np.array([1, 1, 3, 1, 2]),
        "predicted_s": np.array([1.0, 2.0, 3.0, 100.0, np.nan]),
        "ttft_s": np.array([1.5, 2.5, 2.0, 1.0, 1.0]),
    }
    rows = calibrate(RecordTable(columns, {"source": SOURCES}))
    assert [(row.group, row.count) for row in rows] == [("all", 3), ("local", 2), ("origin", 1)]
    assert [row.bias_s for row in rows] == [0.0, 0.5, -1.0]


def test_samples_compare_both_paths_of_each_request():
    nodes, waits = np.array([3, 1, 7]), np.array([1.0, 2.0, 3.0])
    other_s = np.array([0.5, np.nan, 4.0])  # faster, not there by the end, slower
    paths = RejectedPaths(nodes, nodes, nodes, waits, waits + 0.25, waits, other_s, np.zeros(3))
    taken, not_taken = paths.calibrations
    assert (taken.group, taken.count, taken.bias_s) == ("taken", 3, 0.25)
    assert (not_taken.group, not_taken.count, not_taken.bias_s) == ("not taken", 2, 0.25)
    assert paths.regret_share == 1 / 3
