"""Marks that stand together: the statistic by brute force, and the swaps that reach it."""

import numpy as np
import pytest

from edgegym.simulator.marks import clustering_of, neighbours_of, rearrange
from edgegym.world import Scenario
from tests.world.documents import minimal


def world_of(side_km=10.0):
    document = minimal()
    document["region"] = {"width_km": side_km, "height_km": side_km}
    return Scenario(**document).compile()


def fleet(count, seed=0, shares=(0.5, 0.3, 0.2)):
    rng = np.random.default_rng(seed)
    x, y = rng.random(count) * 10, rng.random(count) * 10
    marks = rng.permutation(
        np.repeat(np.arange(len(shares)), (count * np.array(shares)).astype(int))
    )
    return marks, neighbours_of(world_of(), x, y), np.ones((count, len(shares)), dtype=np.bool_)


def test_the_statistic_by_hand():
    # Four nodes in a row of two kinds, each with one neighbour: 2 of 4 pairs are equal, and the
    # chance of two equal marks is (2 * 1 + 2 * 1) / (4 * 3).
    neighbours = np.array([[1], [0], [1], [2]])
    assert clustering_of(np.array([0, 0, 1, 1]), neighbours) == pytest.approx((3 / 4 - 1 / 3) * 1.5)
    assert clustering_of(np.array([0, 1, 0, 1]), neighbours) == -1.0
    assert clustering_of(np.zeros(4, dtype=np.int64), neighbours) == 0.0
    assert clustering_of(np.arange(4), neighbours) == 0.0


def test_random_marks_are_not_clustered_on_average():
    marks, neighbours, _ = fleet(40)
    rng = np.random.default_rng(3)
    equal = np.array(
        [(one[:, None] == one[neighbours]).mean() for one in rng.permuted([marks] * 4000, axis=1)]
    )
    numbers = np.bincount(marks)
    expected = (numbers * (numbers - 1)).sum() / (40 * 39)
    assert equal.mean() == pytest.approx(expected, abs=4 * equal.std() / np.sqrt(4000))


@pytest.mark.parametrize("clustering", [-0.4, -0.2, 0.3, 0.6])
@pytest.mark.parametrize("count", [40, 400])
def test_swaps_reach_the_clustering_that_is_asked_for(count, clustering):
    marks, neighbours, allowed = fleet(count)
    before = np.bincount(marks)
    rearrange(marks, neighbours, allowed, clustering, np.random.default_rng(7))
    np.testing.assert_array_equal(np.bincount(marks), before)
    # Within a pair or two of the 4 N: a swap changes several at once.
    assert clustering_of(marks, neighbours) == pytest.approx(clustering, abs=0.6 / count + 0.01)


def test_swaps_go_as_far_as_they_can():
    marks, neighbours, allowed = fleet(200)
    rearrange(marks, neighbours, allowed, 1.0, np.random.default_rng(7))
    assert clustering_of(marks, neighbours) > 0.7
    rearrange(marks, neighbours, allowed, -1.0, np.random.default_rng(7))
    # Half of the nodes have one mark: it can't avoid itself everywhere.
    assert -0.75 < clustering_of(marks, neighbours) < -0.55
    marks, neighbours, allowed = fleet(200, shares=(0.2, 0.2, 0.2, 0.2, 0.2))
    rearrange(marks, neighbours, allowed, -1.0, np.random.default_rng(7))
    assert clustering_of(marks, neighbours) < -0.95


def test_nodes_get_only_marks_that_they_may_have():
    marks, neighbours, allowed = fleet(100)
    fixed = np.flatnonzero(marks == 0)[:25]
    allowed[fixed, 1:] = False
    rearrange(marks, neighbours, allowed, 0.5, np.random.default_rng(7))
    assert (marks[fixed] == 0).all()
    assert clustering_of(marks, neighbours) > 0.3


@pytest.mark.parametrize("count", [1, 2, 3])
def test_small_fleets_have_fewer_neighbours(count):
    rng = np.random.default_rng(0)
    neighbours = neighbours_of(world_of(), rng.random(count), rng.random(count))
    assert neighbours.shape == (count, count - 1)
    rearrange(np.arange(count) % 2, neighbours, np.ones((count, 2), dtype=np.bool_), 0.5, rng)


@pytest.mark.twin
def test_swaps_of_a_few_nodes():
    marks, neighbours, allowed = fleet(20)
    rearrange(marks, neighbours, allowed, -0.5, np.random.default_rng(7))
    assert clustering_of(marks, neighbours) < -0.3
