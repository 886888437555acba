from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.policies.transition import (
    assign_profiles,
    cheapest_transition,
    largest_remainder,
    planned_moves,
)
from edgegym.world import preset


@pytest.mark.parametrize(
    ("shares", "total", "counts"),
    [
        ([0.5, 0.5], 3, [2, 1]),
        ([0.2, 0.6, 0.2], 25, [5, 15, 5]),
        ([0.1, 0.45, 0.45], 5, [1, 2, 2]),
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


def test_assignment_is_the_cheapest_of_all() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        cost = rng.random((5, 3))
        counts = largest_remainder(rng.dirichlet(np.ones(3)), 5)
        places = np.repeat(np.arange(3), counts)
        best = min(
            sum(cost[node, profile] for node, profile in enumerate(order))
            for order in set(permutations(places.tolist()))
        )
        assigned = assign_profiles(counts, cost)
        assert np.bincount(assigned, minlength=3).tolist() == counts.tolist()
        assert cost[np.arange(5), assigned].sum() == pytest.approx(best)


def test_cheapest_transition_by_hand() -> None:
    # none, shallow, deep_1..6: to shallow from deep is free, to deep_2 from deep_1 costs 3 GiB.
    move_bytes = preset("stationary").compile().move_bytes
    current = np.array([2, 0, 2, 0, 0, 0, 0, 0])
    target = np.array([0, 2, 0, 2, 0, 0, 0, 0])
    plan = cheapest_transition(current, target, move_bytes)
    # 2 x (none -> shallow, 4 GiB) and 2 x (deep_1 -> deep_2, 3 GiB), not 2 x 0 + 2 x 7 = as much:
    # both plans cost 14 GiB, so only the balance and the cost are fixed.
    assert (plan.sum(axis=1) - plan.sum(axis=0)).tolist() == (current - target).tolist()
    assert (plan * move_bytes).sum() == 14 * 2**30
    assert np.diag(plan).sum() == 0
    assert plan.sum() == 4  # nothing moves that need not


def test_cheapest_transition_prefers_free_moves() -> None:
    move_bytes = preset("stationary").compile().move_bytes
    current = np.array([0, 0, 3, 0, 0, 0, 0, 0])
    target = np.array([1, 1, 1, 0, 0, 0, 0, 0])
    plan = cheapest_transition(current, target, move_bytes)
    assert (plan * move_bytes).sum() == 0
    assert plan[2, 0] == plan[2, 1] == 1


def test_cheapest_transition_pairs_by_bytes() -> None:
    move_bytes = np.zeros((4, 4), dtype=np.int64)
    move_bytes[:2, 2:] = [[1, 5], [1, 2]]
    plan = cheapest_transition(np.array([1, 1, 0, 0]), np.array([0, 0, 1, 1]), move_bytes)
    assert plan[0].tolist() == [0, 0, 1, 0]  # 1 + 2 bytes; the other way round 5 + 1
    assert plan[1].tolist() == [0, 0, 0, 1]


def test_planned_moves_are_legal_and_in_the_plan() -> None:
    plan = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    legal = np.array([[False, True, True], [False, True, True], [True, True, False]])
    wanted = planned_moves(plan, np.array([0, 0, 2]), legal)
    assert wanted.tolist() == [[False, True, False], [False, True, False], [False] * 3]
