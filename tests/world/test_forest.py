"""Vertices, ancestor-closed sets, and what they weigh."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.world.forest import Forest, Vertex

KV_BYTES = 10


def vertex(name: str, depth: int, parent: str | None = None, size: int | None = None) -> Vertex:
    return Vertex(name=name, depth_tokens=depth, parent=parent, bytes=size)


@pytest.fixture
def forest() -> Forest:
    """Two trees: system(100) -> {tools(300) -> long(1000), chat(250)}, and weights(0)."""
    return Forest(
        (
            vertex("long", 1000, "tools"),  # a child may come before its parent
            vertex("system", 100),
            vertex("tools", 300, "system"),
            vertex("chat", 250, "system", size=7),
            vertex("weights", 0, size=5000),
        ),
        KV_BYTES,
    )


def test_path_and_closure_contain_all_ancestors(forest):
    assert forest.path("long") == {"long", "tools", "system"}
    assert forest.path(None) == frozenset()
    assert forest.closure(["chat", "tools"]) == {"chat", "tools", "system"}
    assert forest.closure([]) == frozenset()


def test_bytes_belong_to_vertices_and_count_once(forest):
    assert forest.vertex_bytes("system") == 100 * KV_BYTES
    assert forest.vertex_bytes("tools") == 200 * KV_BYTES  # beyond its parent only
    assert forest.vertex_bytes("chat") == 7  # stated
    assert forest.vertex_bytes("weights") == 5000  # depth 0, yet it weighs
    assert forest.total_bytes(forest.closure(["chat", "tools"])) == 1000 + 2000 + 7


def test_hit_depth_is_the_deepest_vertex_held_along_the_path(forest):
    path = forest.path("long")
    assert forest.hit_depth(forest.closure(["tools"]), path) == 300
    assert forest.hit_depth(forest.closure(["chat"]), path) == 100  # only the root is shared
    assert forest.hit_depth(forest.closure(["weights"]), path) == 0
    assert forest.hit_depth(forest.closure(["long"]), forest.path(None)) == 0


@pytest.mark.parametrize(
    ("vertices", "message"),
    [
        ([vertex("a", 1), vertex("a", 2)], r"vertex name 'a' stands twice"),
        ([vertex("a", 1, "b")], r"forest\.a\.parent = 'b': no vertex has this name"),
        (
            [vertex("a", 5), vertex("b", 4, "a")],
            r"forest\.b\.depth_tokens = 4: .* depth, 5 \('a'\)",
        ),
        ([vertex("a", 1, "a")], r"forest\.a\.parent = 'a': .* no cycles"),
        ([vertex("a", 1, "b"), vertex("b", 1, "a")], r"its own ancestor"),
        # A tail that leads into a cycle is not on it, yet it has no root either.
        ([vertex("a", 1, "b"), vertex("b", 1, "c"), vertex("c", 1, "b")], r"its own ancestor"),
    ],
)
def test_impossible_forests_are_refused(vertices, message):
    with pytest.raises(ValueError, match=message):
        Forest(vertices, KV_BYTES)


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Random forests of up to twelve vertices, in random order."""
    vertices: list[Vertex] = []
    for number in range(draw(st.integers(1, 12))):
        parent = draw(st.none() | st.sampled_from(vertices)) if vertices else None
        depth = draw(st.integers(0, 50)) + (parent.depth_tokens if parent else 0)
        vertices.append(vertex(f"v{number}", depth, parent and parent.name))
    return Forest(draw(st.permutations(vertices)), KV_BYTES)


@given(forests(), st.data())
def test_intersection_of_closed_sets_hits_the_smaller_depth(forest, data):
    names = [item.name for item in forest.vertices]
    first, second = (
        forest.closure(data.draw(st.lists(st.sampled_from(names), max_size=4))) for _ in range(2)
    )
    path = forest.path(data.draw(st.sampled_from(names)))
    both = first & second
    assert forest.closure(both) == both
    assert forest.hit_depth(both, path) == min(
        forest.hit_depth(first, path), forest.hit_depth(second, path)
    )


@given(forests(), st.data())
def test_bytes_of_a_union_count_the_shared_part_once(forest, data):
    names = [item.name for item in forest.vertices]
    first, second = (
        forest.closure(data.draw(st.lists(st.sampled_from(names), max_size=4))) for _ in range(2)
    )
    assert forest.total_bytes(first | second) == (
        forest.total_bytes(first) + forest.total_bytes(second) - forest.total_bytes(first & second)
    )
