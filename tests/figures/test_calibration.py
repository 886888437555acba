"""The study of the router's predictions: numbers, picture, words."""

import numpy as np
import pytest

from edgegym.figures import QUICK, Table, chosen_figures
from edgegym.figures.calibration import calibration
from tests.figures.studies import check_picture_and_words

(FIGURE,) = chosen_figures(["calibration"])
CASES = ("live", "every 5 s", "every 5 s, with predict-on-route")


@pytest.fixture(scope="module")
def table() -> Table:
    return FIGURE.compute(QUICK, lambda _: None)


def test_every_sample_stands_on_both_paths(table):
    assert FIGURE.study
    for case in CASES:
        taken, other = (table.where(telemetry=case, path=path) for path in ("taken", "not taken"))
        np.testing.assert_array_equal(taken["request"], other["request"])
        # The router takes what it expects to be faster.
        assert (taken["predicted_s"] <= other["predicted_s"]).all()
        assert np.isfinite(taken["realised_s"]).all()


def test_live_reports_predict_better_than_old_ones(table):
    live, late = (calibration(table, case, "taken") for case in CASES[:2])
    assert live.scatter_s < late.scatter_s


def test_picture_and_words_from_the_file(table):
    check_picture_and_words(FIGURE, table)
