"""The study of late reports draws and speaks from its numbers."""

import io

import numpy as np
import pytest
from PIL import Image

from edgegym.figures import herding
from edgegym.figures.herding import FIGURE
from edgegym.figures.spec import Effort
from edgegym.figures.style import picture_png
from edgegym.figures.table import Table

COVERAGE = {
    "load_aware": (0.6, 0.5, 0.3),
    "load_aware, predicting": (0.6, 0.59, 0.58),
    "lmetric": (0.5, 0.3, 0.1),
    "lmetric, predicting": (0.5, 0.5, 0.45),
    "power_of_two": (0.2, 0.18, 0.15),
    "prefix_aware": (0.4, 0.4, 0.4),
}


@pytest.fixture
def table() -> Table:
    return Table(
        {
            "router": [name for name in COVERAGE for _ in range(3)],
            "telemetry_period_s": [0.0, 1.0, 4.0] * 6,
            "coverage": [value for values in COVERAGE.values() for value in values],
            "coverage_error": np.full(18, 0.004),
            "mean_wait_s": np.linspace(0.0, 2.0, 18),
        }
    )


def test_words_are_about_the_numbers(table):
    words = FIGURE.caption(table)
    assert "0.60 to 0.30 with `load_aware` and from 0.50 to 0.10 with `lmetric`" in words.here
    assert "with reports 4 s apart it covers less than `prefix_aware`" in words.here
    assert "from 0.60 to 0.58 and 0.50 to 0.45" in words.here
    assert "at most 0.004" in words.difference


def test_words_where_old_reports_are_better_than_none(table):
    columns = {name: table[name].copy() for name in table.names}
    columns["coverage"][2] = 0.45
    assert "even with the oldest reports it covers more" in FIGURE.caption(Table(columns)).here


def test_picture(table):
    picture = Image.open(io.BytesIO(picture_png(FIGURE, table, "stamp")))
    assert picture.width > picture.height > 300
    assert np.asarray(picture.convert("L")).std() > 10


def test_it_is_a_study_on_values_of_its_own():
    assert FIGURE.study
    assert not FIGURE.fitted


@pytest.mark.slow
def test_late_reports_cost_coverage_and_predicting_saves_most_of_it():
    table = herding.compute(
        Effort(points=2, samples=10, requests=1_500_000, mix_step=0.5), lambda _: None
    )
    for router in ("load_aware", "lmetric", "power_of_two"):
        coverage = table.where(router=router)["coverage"]
        error = table.where(router=router)["coverage_error"]
        assert (np.diff(coverage) < 3.0 * (error[1:] + error[:-1])).all(), router
        assert coverage[-1] < 0.75 * coverage[0], router
    for router in ("load_aware", "lmetric"):
        kept = table.where(router=f"{router}, predicting")["coverage"]
        assert kept.min() > 0.93 * kept[0], router
    blind = table.where(router="prefix_aware")["coverage"]
    assert (blind == blind[0]).all()
