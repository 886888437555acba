import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.world.rounding import largest_remainder


@pytest.mark.parametrize(
    ("shares", "total", "counts"),
    [
        ([0.5, 0.5], 3, [2, 1]),
        ([0.2, 0.6, 0.2], 25, [5, 15, 5]),
        ([0.1, 0.45, 0.45], 5, [1, 2, 2]),
        ([0.05, 0.6, 0.35], 3, [0, 2, 1]),
        ([1 / 3, 1 / 3, 1 / 3], 25, [9, 8, 8]),
        ([0.7, 0.3], 0, [0, 0]),
    ],
)
def test_largest_remainder_by_hand(shares: list[float], total: int, counts: list[int]) -> None:
    assert largest_remainder(np.array(shares), total).tolist() == counts


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.integers(0, 60))
def test_largest_remainder_adds_up_and_stays_within_one(shares: list[float], total: int) -> None:
    mix = np.array(shares) + 1e-6
    mix /= mix.sum()
    counts = largest_remainder(mix, total)
    assert counts.sum() == total
    assert (np.abs(counts - mix * total) <= 1.0 + 1e-6).all()
