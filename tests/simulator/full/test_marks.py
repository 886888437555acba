"""The heap of finish marks against a sorted list."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.full.marks import MARK, NUM_LINKS, RANK, add_mark, without_first

pytestmark = pytest.mark.twin


@kernel
def add_and_remove(marks, links, adds, order):
    """Add the requests in order, or remove the first (where adds is false), and say which."""
    root, added, removed, size = -1, 0, 0, 0
    for k in range(len(adds)):
        if adds[k]:
            root = add_mark(marks, links, root, added)
            added += 1
            size += 1
        elif size > 0:
            order[removed] = root
            root = without_first(marks, links, root)
            removed += 1
            size -= 1
    while root >= 0:
        order[removed] = root
        root = without_first(marks, links, root)
        removed += 1
    return removed


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 5)), max_size=60), st.randoms())
def test_requests_leave_by_mark_and_then_by_rank(steps, random):
    adds = np.array([add for add, _ in steps], dtype=np.bool_)
    number = int(adds.sum())
    marks = np.array([[mark] for add, mark in steps if add], dtype=np.float64).reshape(-1, 1)
    links = np.full((number, NUM_LINKS), 99, dtype=np.int64)
    links[:, RANK] = random.sample(range(number), number)
    order = np.empty(number, dtype=np.int64)
    assert add_and_remove(marks, links, adds, order) == number

    held, expected, added = [], [], 0
    for add in adds.tolist() + [False] * number:
        if add:
            held.append((marks[added, MARK], links[added, RANK], added))
            added += 1
        elif held:
            held.sort()
            expected.append(held.pop(0)[2])
    assert order.tolist() == expected
