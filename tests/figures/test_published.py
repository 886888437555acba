"""The fitted values give what the framework paper prints, through the figures' own numbers."""

import dataclasses

import numpy as np
import pytest

from edgegym.figures import QUICK, Table, chosen_figures
from edgegym.figures.published import PUBLISHED, published
from edgegym.figures.scenario import coverage, paper_network

TOLERANCE = 0.025


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    names = sorted({point.figure for point in PUBLISHED})
    return {figure.name: figure.compute(QUICK, lambda _: None) for figure in chosen_figures(names)}


@pytest.mark.parametrize(
    "point", PUBLISHED, ids=lambda point: f"{point.figure} {point.column} at {point.at:g}"
)
def test_printed_value(point, tables):
    ours = tables[point.figure].value(point.column, **{point.figure_axis: point.at})
    assert ours == pytest.approx(point.value, abs=TOLERANCE)


def test_prefix_aware_policies_are_almost_identical_at_light_load(tables):
    row = tables["fig08"].where(request_intensity_per_s_km2=1.0)
    np.testing.assert_allclose(row["coverage_load_aware"], row["coverage_queue_unaware"], atol=1e-3)


def test_the_nearest_node_saturates(tables):
    dense = tables["fig12"]["density_per_km2"] >= 1.0
    nearest = tables["fig12"]["coverage_nearest"][dense]
    assert nearest.max() - nearest.min() < 0.01
    assert nearest == pytest.approx(0.52, abs=TOLERANCE)


def test_every_printed_value_belongs_to_a_figure_that_marks_it():
    assert {point.figure for point in PUBLISHED} == {"fig08", "fig12"}
    assert len(published("fig08")) + len(published("fig12")) == len(PUBLISHED)
    assert published("fig10") == ()


# Coverage of two mixes (uncached, shallow, deep) by load: where ours differs from the paper's.
KNOWN_DIFFERENCE = [
    (3.0, 0.6889, 0.6715),
    (7.0, 0.5150, 0.5213),
    (9.0, 0.371, 0.466),
]


@pytest.mark.parametrize(("load", "shallow", "uncached"), KNOWN_DIFFERENCE)
def test_mass_moves_from_shallow_to_uncached_under_load(load, shallow, uncached):
    net = paper_network(request_intensity=load)
    assert coverage(net.with_mix(np.array([0.2, 0.6, 0.2]))) == pytest.approx(shallow, abs=6e-4)
    assert coverage(net.with_mix(np.array([0.8, 0.0, 0.2]))) == pytest.approx(uncached, abs=6e-4)


def test_the_figures_keep_the_preset_but_for_what_they_vary():
    changed = paper_network(request_intensity=9.0)
    again = dataclasses.replace(changed, request_intensity=3.0)
    assert coverage(again) == coverage(paper_network())
