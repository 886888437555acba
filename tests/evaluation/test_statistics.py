"""Statistics against values by hand, brute force and an independent bootstrap."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.evaluation.statistics import (
    Interval,
    coverage_interval,
    difference_interval,
    interquartile_mean,
    normalised_score,
    probability_of_improvement,
    ratio_of_sums,
)

finite = st.floats(-1e3, 1e3)


def test_ratio_of_sums_weights_seeds_by_their_requests():
    assert ratio_of_sums([1, 90], [10, 100]) == pytest.approx(91 / 110)
    assert ratio_of_sums([0], [0]) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5], 5),
        ([1, 2, 6], 3),  # too few to cut
        ([1, 2, 3, 100], 2.5),
        ([9, 1, 2, 3, 4, 5, 6, 100], 4.5),
        (range(10), 4.5),  # ⌊10/4⌋ = 2 cut at each end
    ],
)
def test_interquartile_mean_by_hand(values, expected):
    assert interquartile_mean(list(values)) == expected


@given(st.lists(finite, min_size=1, max_size=40))
def test_interquartile_mean_is_the_trimmed_mean(values):
    from scipy.stats import trim_mean

    assert interquartile_mean(values) == pytest.approx(trim_mean(values, 0.25), abs=1e-9)


def test_probability_of_improvement_by_hand():
    assert probability_of_improvement([3, 1, 2, 2], [1, 3, 2, 1]) == (1 + 0 + 0.5 + 1) / 4


@given(st.lists(st.tuples(finite, finite), min_size=1))
def test_probability_of_improvement_of_the_two_adds_up_to_one(pairs):
    mine, theirs = zip(*pairs, strict=True)
    assert probability_of_improvement(mine, theirs) == pytest.approx(
        1 - probability_of_improvement(theirs, mine)
    )


def test_normalised_score_by_hand():
    assert normalised_score(0.7, static=0.5, clairvoyant=0.9) == pytest.approx(0.5)
    assert normalised_score(1.0, static=0.5, clairvoyant=0.9) == pytest.approx(1.25)
    assert normalised_score(0.5, static=0.5, clairvoyant=0.5) is None


SEEDS = {
    "hits": [60, 75, 81, 40, 66, 90, 55, 72, 68, 77],
    "decided": [100, 110, 95, 90, 105, 100, 98, 102, 99, 101],
    "reference_hits": [50, 70, 80, 30, 60, 80, 50, 60, 70, 70],
    "reference_decided": [100, 110, 96, 90, 104, 100, 98, 102, 99, 101],
}


def _own_percentile_bootstrap(columns, resamples=40_000):
    rng = np.random.default_rng(1)
    picks = rng.integers(len(columns[0]), size=(resamples, len(columns[0])))
    hits, decided, reference_hits, reference_decided = (np.array(c)[picks].sum(1) for c in columns)
    differences = hits / decided - reference_hits / reference_decided
    return np.quantile(differences, [0.025, 0.975])


def test_difference_interval_agrees_with_a_bootstrap_by_hand():
    interval = difference_interval(**SEEDS)
    low, high = _own_percentile_bootstrap(list(SEEDS.values()))
    assert interval.method == "BCa"
    # Bias correction moves the ends, but by less than a fifth of the width here.
    assert abs(interval.low - low) < 0.2 * (high - low)
    assert abs(interval.high - high) < 0.2 * (high - low)
    assert interval.low > 0


def test_pairing_removes_what_makes_a_seed_hard_for_both():
    hard = [20, 80, 30, 90, 25, 85]
    decided = [100] * 6
    better = [value + 5 + number % 2 for number, value in enumerate(hard)]
    paired = difference_interval(better, decided, hard, decided)
    alone = coverage_interval(better, decided)
    assert 0.05 - 1e-9 <= paired.low <= paired.high <= 0.06 + 1e-9
    assert alone.high - alone.low > 0.3


def test_a_percentile_bootstrap_of_three_seeds_is_exact():
    # All 27 resamples of three seeds: the 2.5 % quantile is the smallest mean (3.7 % mass).
    hits, decided = [10, 20, 60], [100, 100, 100]
    means = sorted(sum(p) / 300 for p in itertools.product(hits, repeat=3))
    interval = coverage_interval(hits, decided)
    assert means[0] <= interval.low <= interval.high <= means[-1]


def test_repeating_gives_the_same_bits():
    assert difference_interval(**SEEDS) == difference_interval(**SEEDS)


def test_one_seed_has_no_interval():
    assert coverage_interval([5], [10]) == Interval(None, None, "one seed")


def test_a_seed_without_decided_requests_has_no_interval():
    assert coverage_interval([5, 0], [10, 0]) == Interval(None, None, "a seed decided no request")


def test_equal_policies_differ_by_exactly_nothing():
    interval = difference_interval(SEEDS["hits"], SEEDS["decided"], SEEDS["hits"], SEEDS["decided"])
    assert interval == Interval(0.0, 0.0, "constant")


def test_equal_seeds_give_a_point():
    assert coverage_interval([0, 0, 0], [10, 12, 11]) == Interval(0.0, 0.0, "constant")


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(st.integers(1, 200), st.floats(0, 1), st.integers(1, 200), st.floats(0, 1)),
        min_size=1,
        max_size=6,
    )
)
def test_any_counts_give_an_ordered_interval_or_a_reason(seeds):
    # Warnings are errors here: degenerate cases must be handled, not warned about.
    decided, share, other_decided, other_share = (np.array(c) for c in zip(*seeds, strict=True))
    hits, other_hits = np.floor(share * decided), np.floor(other_share * other_decided)
    interval = difference_interval(hits, decided, other_hits, other_decided)
    if len(seeds) == 1:
        assert interval.method == "one seed"
    else:
        assert -1 <= interval.low <= interval.high <= 1
