import numpy as np
import pytest

from edgegym.traces.target import CANDIDATES_S, IdleTtft


def idle(cold, best, share=(1.0,), holder_share=0.25):
    return IdleTtft(
        share=np.array(share),
        cold_prefill_s=np.array(cold),
        best_prefill_s=np.array(best),
        density_per_km2=2.0,
        holder_share=holder_share,
        radio_xi=0.5,
        radio_alpha=2.0,
    )


def test_attainment_by_hand():
    found = idle([1.0, 3.0], [1.0, 0.5], (0.5, 0.5)).attainment(2.0)
    # Slack 1 s reaches sqrt(2) km without hits for the first type, no distance for the second.
    cold = 0.5 * (1 - np.exp(-np.pi * 2.0 * 2.0))
    # Slack 1.5 s reaches sqrt(3) km, where a quarter of the nodes hold the profile.
    best = cold + 0.5 * (1 - np.exp(-np.pi * 0.5 * 3.0))
    assert found == pytest.approx((cold, best))


def test_target_lies_where_hits_decide_among_those_that_half_meet_without():
    # Hits bring the second type from 10 s to 5 s; the first needs 0.5 s either way.
    target_s = idle([0.5, 10.0], [0.5, 5.0], (0.6, 0.4)).most_telling_target_s()
    assert 5.0 < target_s <= 10.0
    # Hits matter most below 10 s, but there nobody is served without them.
    assert idle([10.0], [0.5]).most_telling_target_s() > 10.0
    # Nothing to gain: the least target that half of the requests meet.
    assert idle([1.0], [1.0]).most_telling_target_s() == 1.5
    assert idle([1e6], [1.0]).most_telling_target_s() == CANDIDATES_S[-1]


def test_candidates_are_round_and_ascending():
    assert list(CANDIDATES_S) == sorted(set(CANDIDATES_S))
    assert (CANDIDATES_S[0], CANDIDATES_S[-1]) == (0.1, 80.0)
