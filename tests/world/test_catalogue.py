"""Hit depths, holdings and the prices of moves, against values worked out by hand."""

import numpy as np
import pytest

from edgegym.world.catalogue import Catalogue, Profile, RequestType, family_names
from edgegym.world.forest import Forest, Vertex


def request_type(name: str, path: str | None, tokens: int, family: str = "f") -> RequestType:
    return RequestType(name=name, path=path, input_tokens=tokens, family=family, share=0.5)


@pytest.fixture
def catalogue() -> Catalogue:
    """root(100) -> {left(400), right(600)}; one byte a token."""
    forest = Forest(
        (
            Vertex(name="root", depth_tokens=100),
            Vertex(name="left", parent="root", depth_tokens=400),
            Vertex(name="right", parent="root", depth_tokens=600),
        ),
        kv_bytes_per_token=1,
    )
    types = (
        request_type("to_left", "left", 1000),
        request_type("to_right", "right", 1000),
        request_type("short", "left", 250),  # the prompt ends inside the prefix
        request_type("fresh", None, 1000),
    )
    profiles = (
        Profile(name="none"),
        Profile(name="left", vertices=("left",)),
        Profile(name="right", vertices=("right", "root")),
        Profile(name="both", vertices=("left", "right")),
    )
    return Catalogue(forest, types, profiles)


def test_profiles_are_closed_under_ancestors(catalogue):
    assert catalogue.profile_sets == (
        frozenset(),
        {"root", "left"},
        {"root", "right"},
        {"root", "left", "right"},
    )


def test_hit_tokens_by_hand(catalogue):
    # The last row is the holding {root}, left ∩ right. 249: one token must be computed.
    expected = [[0, 0, 0, 0], [400, 100, 249, 0], [100, 600, 100, 0], [400, 600, 249, 0]]
    root_only = [100, 100, 100, 0]
    np.testing.assert_array_equal(catalogue.hit_tokens, [*expected, root_only])


def test_holdings_are_profiles_then_new_intersections(catalogue):
    assert catalogue.holdings[:4] == catalogue.profile_sets
    assert catalogue.holdings[4:] == ({"root"},)
    np.testing.assert_array_equal(catalogue.holding_bytes, [0, 400, 600, 900, 100])


def test_meet_names_the_intersection(catalogue):
    expected = [[0, 0, 0, 0], [0, 1, 4, 1], [0, 4, 2, 2], [0, 1, 2, 3]]
    np.testing.assert_array_equal(catalogue.meet, expected)


def test_move_bytes_are_those_that_the_node_lacks(catalogue):
    expected = [[0, 400, 600, 900], [0, 0, 500, 500], [0, 300, 0, 300], [0, 0, 0, 0]]
    np.testing.assert_array_equal(catalogue.move_bytes, expected)


def test_equal_profiles_keep_their_own_index():
    twins = (Profile(name="a", vertices=("v",)), Profile(name="b", vertices=("v",)))
    forest = Forest((Vertex(name="v", depth_tokens=10),), 1)
    catalogue = Catalogue(forest, (request_type("t", "v", 20),), twins)
    np.testing.assert_array_equal(np.diag(catalogue.meet), [0, 1])
    np.testing.assert_array_equal(catalogue.move_bytes, np.zeros((2, 2)))


def test_families_stand_in_order_of_first_appearance():
    types = [request_type(name, None, 9, family) for name, family in zip("abc", "yxy", strict=True)]
    assert family_names(types) == ("y", "x")
