"""Draws by name: the same everywhere, uniform, independent."""

import numpy as np
import pytest

from edgegym.jit import kernel
from edgegym.simulator.full.random import uniform_of
from tests.simulator.full.test_routers import drawn


@kernel
def _fill(key, first, draw, out):
    for index in range(len(out)):
        out[index] = uniform_of(key, first + index, draw)


def draws(key, count, draw=0, first=0):
    """Return the draws of consecutive requests."""
    out = np.empty(count)
    _fill(key, first, draw, out)
    return out


@pytest.mark.twin
@pytest.mark.parametrize("key", [0, 1, 2**62 + 12345, -1, -(2**63)])
def test_draws_are_what_the_definition_says(key):
    for draw in (0, 1, 7):
        expected = [drawn(key & (2**64 - 1), index, draw) for index in (0, 1, 2, 10**12)]
        found = [draws(key, 1, draw, index)[0] for index in (0, 1, 2, 10**12)]
        assert found == expected


@pytest.mark.parametrize("key", [0, 5, 2**63 - 1])
@pytest.mark.parametrize("draw", [0, 1])
def test_draws_are_uniform(key, draw):
    values = draws(key, 400_000, draw)
    assert values.min() >= 0.0
    assert values.max() < 1.0
    counts = np.histogram(values, bins=200, range=(0.0, 1.0))[0]
    chi_squared = ((counts - 2000.0) ** 2 / 2000.0).sum()
    # 199 degrees of freedom: standard deviation 20
    assert 199 - 100 < chi_squared < 199 + 100
    # The low bits are as good as the high ones.
    low = np.histogram((values * 2.0**20) % 1.0, bins=200, range=(0.0, 1.0))[0]
    assert ((low - 2000.0) ** 2 / 2000.0).sum() < 299


def test_draws_of_different_names_are_independent():
    count = 400_000
    base = draws(7, count + 1)
    others = {
        "next request": base[1:],
        "next draw": draws(7, count, 1),
        "next key": draws(8, count),
        "another draw": draws(7, count, 2),
    }
    for name, other in others.items():
        cells = np.histogram2d(base[:count], other, bins=16, range=[[0, 1], [0, 1]])[0]
        mean = count / 256
        chi_squared = ((cells - mean) ** 2 / mean).sum()
        # 255 degrees of freedom: standard deviation 22.6
        assert 255 - 113 < chi_squared < 255 + 113, name
        assert abs(np.corrcoef(base[:count], other)[0, 1]) < 5 / np.sqrt(count), name
