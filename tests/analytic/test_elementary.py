import math

import numpy as np
import pytest

from edgegym.analytic.elementary import fast_exp, fast_power


@pytest.mark.twin
def test_exp():
    for y in np.random.default_rng(0).uniform(-690, 690, 300):
        assert fast_exp(y) == pytest.approx(math.exp(y), rel=1e-14)
    assert fast_exp(0.0) == 1.0
    assert fast_exp(-1e300) < 1e-300
    assert 1e300 < fast_exp(1e300) < math.inf


@pytest.mark.twin
def test_power():
    rng = np.random.default_rng(1)
    for x, power in zip(
        np.exp(rng.uniform(-640, 640, 300)), rng.uniform(0.02, 1, 300), strict=True
    ):
        assert fast_power(x, power) == pytest.approx(x**power, rel=2e-13)
    for x in (1.0, math.sqrt(0.5), math.nextafter(1.0, 0.0), math.sqrt(2.0), 1e-280, 1e292):
        assert fast_power(x, 0.4) == pytest.approx(x**0.4, rel=1e-13)
    assert fast_power(1e-200, 20.0) < 1e-300
