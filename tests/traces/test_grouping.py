import numpy as np
import pytest

from edgegym.traces.grouping import TypeGroups, group_families, group_types
from edgegym.traces.selection import KeptForest


def forest(parent, depth, deepest=()):
    return KeptForest(
        parent=np.array(parent, dtype=np.int64),
        depth_tokens=np.array(depth, dtype=np.int64),
        deepest=np.array(deepest, dtype=np.int64),
    )


def types(vertex, share):
    vertex = np.array(vertex)
    return TypeGroups(
        vertex=vertex,
        share=np.array(share),
        input_tokens=np.full(len(vertex), 9000),
        output_tokens=np.full(len(vertex), 10),
        output_scv=0.0,
        of_request=np.empty(0, dtype=np.int64),
    )


def test_types_by_prefix_then_by_length():
    inputs = np.array([100, 200, 10_000, 30_000, 5000, 5000])
    outputs = np.array([0, 0, 10, 30, 2, 4])
    found = group_types(
        forest([-1], [1000], [-1, -1, -1, -1, 0, 0]), inputs, outputs, inputs * 1e-4, 4
    )
    # The prompts without a prefix are split at 10,075, then the shorter ones at 3433.
    np.testing.assert_array_equal(found.vertex, [-1, -1, -1, 0])
    np.testing.assert_array_equal(found.input_tokens, [150, 10_000, 30_000, 5000])
    np.testing.assert_array_equal(found.output_tokens, [1, 10, 30, 3])
    np.testing.assert_allclose(found.share, np.array([2, 1, 1, 2]) / 6)
    np.testing.assert_array_equal(found.of_request, [0, 0, 1, 2, 3, 3])
    # Within types only 2 and 4 differ: variance 1 for two of six, over the mean squares.
    assert found.output_scv == pytest.approx((2 * 1) / (0 + 100 + 900 + 2 * 9))


@pytest.mark.parametrize("number", [3, 50])
def test_alike_prompts_are_never_split(number):
    inputs = np.full(7, 12_345)
    found = group_types(
        forest([-1], [1000], [0] * 7), inputs, np.arange(7), inputs * 1e-4 / 3, number
    )
    assert len(found.share) == 1
    assert found.output_tokens[0] == 3


def test_hot_trees_get_a_family_each():
    family = group_families(
        forest([-1, 0, -1, -1], [512, 1024, 6144, 2560]),
        types([0, 1, 2, 3], [0.2, 0.1, 0.5, 0.2]),
        4,
    )
    # Four families for three trees: the hottest one that can be opened gives its child one.
    np.testing.assert_array_equal(family, [1, 3, 0, 2])


def test_a_common_root_is_opened_and_small_trees_are_bundled():
    # One root for all, and eight children: three families.
    found = group_families(
        forest([-1] + [0] * 8, [512] + [2048] * 8),
        types(list(range(9)), [0.68] + [0.04] * 8),
        3,
    )
    assert found[0] == 0
    assert sorted(np.bincount(found[1:], minlength=3)) == [0, 4, 4]


def test_a_vertex_nobody_ends_at_has_a_family_too():
    tree, demand = forest([-1, 0, 0], [512, 1024, 2048]), types([1, 2], [0.4, 0.6])
    np.testing.assert_array_equal(group_families(tree, demand, 1), [0, 0, 0])
    # No family of its own: it goes with the child that draws more.
    np.testing.assert_array_equal(group_families(tree, demand, 3), [0, 1, 0])
