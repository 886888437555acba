"""The study of fleets draws and speaks from its numbers."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from edgegym.figures.fleet import FIGURE
from edgegym.figures.style import picture_png
from edgegym.figures.table import Table

PROFILES = ("uncached", "shallow", "deep")


@pytest.fixture
def table() -> Table:
    rows = 4
    columns: dict[str, Any] = {
        "advertised_wait": ["tier", "tier", "backlog", "backlog"],
        "request_intensity_per_s_km2": [3.0, 4.0, 3.0, 4.0],
        "coverage_simulated": [0.5, 0.4, 0.7, 0.6],
        "coverage_error": np.full(rows, 0.01),
        "coverage_mean_field": [0.6, 0.6, 0.6, 0.7],
        "coverage_corrected": [0.51, 0.41, 0.68, 0.6],
        "topologies": np.full(rows, 7),
    }
    for number, name in enumerate(PROFILES):
        value = np.full(rows, 0.2 + 0.1 * number)
        for column in ("busy_{}", "busy_{}_mean_field", "busy_{}_corrected", "prefill_load_{}"):
            columns[column.format(name)] = value
        columns[f"deviation_{name}"] = columns[f"deviation_{name}_corrected"] = value / 2
    return Table(columns)


def test_words_are_about_the_numbers(table):
    words = FIGURE.caption(table)
    assert "off by 0.150 in the mean and 0.200 at most" in words.here
    assert "0.010 and 0.010 (0.07 of the gap)" in words.here
    assert "0.010 and 0.020 (0.10 of the gap)" in words.here
    assert "0.40 ± 0.20" in words.here
    assert "400 nodes, 7 of them" in words.difference


def test_picture(table):
    picture = Image.open(io.BytesIO(picture_png(FIGURE, table, "stamp")))
    assert picture.width > picture.height > 300
    assert np.asarray(picture.convert("L")).std() > 10


def test_it_is_a_study_on_fitted_values():
    assert FIGURE.study
    assert FIGURE.fitted
