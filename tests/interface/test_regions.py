import numpy as np
import pytest

from edgegym.interface.regions import RegionGrid
from edgegym.world import preset


def grid(rows, columns):
    return RegionGrid(rows=rows, columns=columns, width_km=6.0, height_km=4.0)


def test_regions_are_counted_from_the_lower_left():
    regions = grid(2, 3)
    assert regions.size == 6
    x_km = np.array([0.0, 1.9, 2.0, 5.9, 6.0, 0.5, 6.0])
    y_km = np.array([0.0, 1.9, 0.1, 1.9, 0.0, 2.0, 4.0])
    np.testing.assert_array_equal(regions.of(x_km, y_km), [0, 0, 1, 2, 2, 3, 5])


def test_every_place_belongs_to_the_rectangle_around_it():
    regions = grid(3, 4)
    rng = np.random.default_rng(0)
    x_km, y_km = rng.uniform(0.0, 6.0, 500), rng.uniform(0.0, 4.0, 500)
    for x, y, region in zip(x_km, y_km, regions.of(x_km, y_km), strict=True):
        row, column = divmod(int(region), 4)
        assert column * 1.5 <= x <= (column + 1) * 1.5
        assert row * 4 / 3 <= y <= (row + 1) * 4 / 3


def test_the_area_is_the_scenarios():
    scenario = preset("moving-hotspot")
    regions = RegionGrid.from_scenario(scenario)
    assert (regions.rows, regions.columns) == (2, 2)
    assert (regions.width_km, regions.height_km) == (
        scenario.region.width_km,
        scenario.region.height_km,
    )


@pytest.mark.parametrize("regions", [2, (2,), (1, 2, 3), (1.5, 2), (True, 1), "22", None])
def test_what_is_not_two_whole_numbers_is_refused(regions):
    with pytest.raises(TypeError, match=r"regions is .*: it must be two whole numbers"):
        RegionGrid.from_scenario(preset("toy"), regions)


@pytest.mark.parametrize("regions", [(0, 2), (2, -1), (1025, 1)])
def test_too_few_or_too_many_regions_are_refused(regions):
    with pytest.raises(ValueError, match=r"regions is .*: rows and columns must be at least 1"):
        RegionGrid.from_scenario(preset("toy"), regions)
