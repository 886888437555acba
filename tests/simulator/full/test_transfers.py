"""Schedules of transfers by hand."""

import numpy as np
import pytest

from edgegym.simulator.full.transfers import imposed_delays_s, transfer_ends_s
from tests.simulator.full.links import params

SCHEDULE = ([0.0, 1.0, 2.0], [0, 0, 1], [300, 100, 200])


@pytest.mark.twin
def test_ends_of_a_staggered_schedule():
    np.testing.assert_allclose(transfer_ends_s(params(), *SCHEDULE), [5.5, 3.5, 6.0], rtol=1e-15)
    assert transfer_ends_s(params(), [], [], []).shape == (0,)


@pytest.mark.twin
def test_delay_of_the_others_by_hand():
    """The second comes when the first has 200 bytes left, which then end at 4 instead of 3.

    The third comes when they have 150 and 50 left: they end at 5.5 and 3.5 instead of 4 and 3.
    """
    delays = imposed_delays_s(params(), *SCHEDULE, [1, 0, 2])
    np.testing.assert_allclose(delays, [1.0, 0.0, 2.0], rtol=1e-12)
    assert (imposed_delays_s(params(shared=False), *SCHEDULE, [0, 1, 2]) == 0.0).all()


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (([0.0, 1.0], [0], [1]), "same length"),
        (([1.0, 0.0], [0, 0], [1, 1]), "ascending"),
        (([np.nan], [0], [1]), "finite"),
        (([0.0], [-1], [1]), "from -1"),
        (([0.0], [0], [0]), "size_bytes from 0"),
    ],
)
def test_impossible_schedules_are_refused(schedule, message):
    with pytest.raises(ValueError, match=message):
        transfer_ends_s(params(), *schedule)
