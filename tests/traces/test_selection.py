import numpy as np
import pytest

from edgegym.traces import read_trace
from edgegym.traces.selection import SelectionLimits, select_prefixes
from edgegym.traces.trie import SharedPrefixes, block_trie, shared_prefixes
from edgegym.world.hardware import Prefill, prefill_s

PREFILL = Prefill(linear_s=1e-4, quadratic_s=1e-9, attention="context")
PLENTY = SelectionLimits(vertices=1000, total_tokens=10**9, path_tokens=10**9)


def shared(parent, depth, deepest):
    """Shared prefixes whose request counts follow from each request's deepest one."""
    parent, deepest = np.array(parent), np.array(deepest)
    requests = np.bincount(deepest[deepest >= 0], minlength=len(parent))
    for child in range(len(parent) - 1, -1, -1):
        if parent[child] >= 0:
            requests[parent[child]] += requests[child]
    return SharedPrefixes(
        parent=parent,
        depth_tokens=np.array(depth),
        requests=requests,
        first_request=np.zeros(len(parent), dtype=np.int64),
        deepest=deepest,
    )


def test_the_point_where_two_prefixes_part_becomes_a_vertex():
    # Root 0 of 1000 tokens, which nobody ends at; 1 and 2 continue it.
    found = select_prefixes(
        shared([-1, 0, 0], [1000, 5000, 6000], [1] * 20 + [2] * 20 + [-1]),
        np.full(41, 8000),
        PREFILL,
        PLENTY,
    )
    assert found.num_vertices == 3
    np.testing.assert_array_equal(found.parent, [-1, 0, 0])
    np.testing.assert_array_equal(found.depth_tokens, [1000, 5000, 6000])
    assert found.deepest[-1] == -1


def test_tokens_of_a_common_part_are_paid_once():
    # Both need 1000 + 4000 + 5000 tokens: exactly the limit, only if the root counts once.
    candidates = shared([-1, 0, 0], [1000, 5000, 6000], [1] * 20 + [2] * 20)
    lengths = np.full(40, 8000)
    exact = SelectionLimits(vertices=10, total_tokens=10_000, path_tokens=6000)
    assert select_prefixes(candidates, lengths, PREFILL, exact).num_vertices == 3
    less = SelectionLimits(vertices=10, total_tokens=9_999, path_tokens=6000)
    assert select_prefixes(candidates, lengths, PREFILL, less).num_vertices == 2


def test_limits_hold_and_requests_fall_back_to_what_is_kept():
    candidates = shared([-1, 0, 1], [1000, 2000, 3000], [0] * 5 + [1] * 5 + [2] * 5)
    limits = SelectionLimits(vertices=1, total_tokens=10_000, path_tokens=2000)
    found = select_prefixes(candidates, np.full(15, 4000), PREFILL, limits)
    assert found.num_vertices == 1
    # 10 requests through 2000 tokens are worth more than 15 through 1000; 3000 is too deep.
    assert found.depth_tokens[0] == 2000
    np.testing.assert_array_equal(found.deepest, [-1] * 5 + [0] * 10)
    none = SelectionLimits(vertices=1, total_tokens=999, path_tokens=2000)
    assert select_prefixes(candidates, np.full(15, 4000), PREFILL, none).num_vertices == 0


def test_a_prefix_that_saves_nothing_is_left_out():
    # Below the floor of one pass over the weights a shorter prompt takes as long.
    flat = Prefill(linear_s=1e-6, quadratic_s=0.0, floor_s=1.0)
    candidates = shared([-1], [1000], [0, 0])
    assert select_prefixes(candidates, np.full(2, 4000), flat, PLENTY).num_vertices == 0


def saved_s(forest, lengths):
    depth = np.append(forest.depth_tokens, 0)[forest.deepest]
    return float((prefill_s(PREFILL, lengths, 0) - prefill_s(PREFILL, lengths, depth)).sum())


def test_real_choice_is_within_its_limits_and_better_than_the_hottest(mooncake_file):
    trace = read_trace(mooncake_file)
    candidates = shared_prefixes(block_trie(trace, whole_blocks_only=True), 512)
    limits = SelectionLimits(vertices=24, total_tokens=400_000, path_tokens=60_000)
    found = select_prefixes(candidates, trace.input_tokens, PREFILL, limits)
    above = np.where(found.parent >= 0, found.depth_tokens[found.parent], 0)
    assert 0 < found.num_vertices <= 24
    assert (found.depth_tokens - above > 0).all()
    assert (found.depth_tokens - above).sum() <= 400_000
    assert found.depth_tokens.max() <= 60_000
    assert (np.append(found.depth_tokens, 0)[found.deepest] < trace.input_tokens).all()

    # The three most requested prefixes alone, within the same limits.
    few = SelectionLimits(vertices=3, total_tokens=400_000, path_tokens=60_000)
    fewer = select_prefixes(candidates, trace.input_tokens, PREFILL, few)
    assert saved_s(found, trace.input_tokens) > saved_s(fewer, trace.input_tokens) > 0


@pytest.mark.parametrize("vertices", [1, 2, 3])
def test_small_choices_against_all_subsets(vertices):
    from itertools import combinations

    rng = np.random.default_rng(vertices)
    # Independent roots of equal size: greedy must find the best subset.
    counts = rng.permutation([2, 3, 5, 7, 11, 13])
    deepest = np.repeat(np.arange(6), counts)
    candidates = shared([-1] * 6, [2000] * 6, deepest)
    lengths = np.full(len(deepest), 3000)
    limits = SelectionLimits(vertices=vertices, total_tokens=10**6, path_tokens=10**6)
    found = select_prefixes(candidates, lengths, PREFILL, limits)
    one_s = float(prefill_s(PREFILL, 3000, 0) - prefill_s(PREFILL, 3000, 2000))
    best_s = max(sum(counts[list(some)]) for some in combinations(range(6), vertices)) * one_s
    assert saved_s(found, lengths) == pytest.approx(best_s)


def test_requests_served_by_a_deeper_choice_are_not_counted_again():
    # 1 is chosen first; then root 0 would serve one request more, root 2 five.
    candidates = shared([-1, 0, -1], [4000, 8000, 4000], [1] * 20 + [0] + [2] * 5)
    limits = SelectionLimits(vertices=2, total_tokens=10**9, path_tokens=10**9)
    found = select_prefixes(candidates, np.full(26, 9000), PREFILL, limits)
    assert sorted(found.depth_tokens) == [4000, 8000]
    np.testing.assert_array_equal(found.parent, [-1, -1])


def test_a_shallower_choice_made_later_does_not_hide_a_deeper_one():
    # 1 is chosen first, then its parent 0; 2 is not, and its requests stay with 1.
    candidates = shared([-1, 0, 1], [2000, 8000, 8010], [0] * 10 + [1] * 30 + [2] * 30)
    limits = SelectionLimits(vertices=2, total_tokens=10**9, path_tokens=10**9)
    found = select_prefixes(candidates, np.full(70, 9000), PREFILL, limits)
    np.testing.assert_array_equal(found.depth_tokens, [2000, 8000])
    np.testing.assert_array_equal(found.deepest, [0] * 10 + [1] * 60)
