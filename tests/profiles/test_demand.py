import numpy as np
import pytest

from edgegym.profiles import ForestDemand, forest_demand, scenario_demand
from edgegym.profiles.tree import depth_first
from edgegym.world import preset
from edgegym.world.forest import Forest, Vertex
from tests.profiles.forests import PREFILL, closed_sets, random_demand

ARGUMENTS = {
    "parent": [-1, 0, 0, -1],
    "depth_tokens": [100, 300, 400, 0],
    "bytes": [10, 20, 30, 2**59 - 1],
    "type_vertex": [1, 2, 0, -1],
    "share": [0.1, 0.2, 0.3, 0.4],
    "input_tokens": [500, 400, 101, 9],
    "prefill": PREFILL,
}


def test_lookups():
    demand = ForestDemand(**ARGUMENTS)
    assert demand.path(2) == [0, 2]
    assert demand.path(-1) == []
    assert demand.closure([1]) == {0, 1}
    # Bytes beyond 2^53 stay exact.
    assert demand.total_bytes([0, 3, 3]) == 10 + 2**59 - 1
    np.testing.assert_allclose(demand.through_share, [0.6, 0.1, 0.2, 0.0])
    # The second type could reuse its whole prompt, but its last token must be computed.
    assert demand.hit_tokens(frozenset({0, 2})) == (100, 399, 100, 0)
    assert demand.vertex_names == ("v0", "v1", "v2", "v3")
    assert np.isinf(demand.lifetime_s).all()


def test_depth_first_order():
    order, end = depth_first(np.array([-1, -1, 0, 1, 0, 2]))
    assert order.tolist() == [0, 2, 5, 4, 1, 3]
    assert end.tolist() == [4, 3, 3, 4, 6, 6]


def test_a_scenario_gives_what_its_catalogue_says():
    for name in ("paper", "stationary", "toy"):
        scenario = preset(name)
        demand = scenario_demand(scenario)
        index = {vertex: v for v, vertex in enumerate(demand.vertex_names)}
        for s, held in enumerate(scenario.catalogue.profile_sets):
            found = frozenset(index[vertex] for vertex in held)
            assert demand.closure(found) == found
            assert demand.total_bytes(found) == scenario.state_bytes[s]
            assert demand.hit_tokens(found) == tuple(scenario.catalogue.hit_tokens[s])
        np.testing.assert_allclose(demand.share, scenario.compile().type_share)


def test_vertices_in_any_order_come_out_parents_first():
    vertices = [
        Vertex(name="leaf", parent="middle", depth_tokens=30),
        Vertex(name="root", depth_tokens=10, bytes=7),
        Vertex(name="middle", parent="root", depth_tokens=20),
    ]
    types = [preset("paper").request_types[0].model_copy(update={"path": "leaf", "share": 1.0})]
    demand = forest_demand(Forest(vertices, 2), types, PREFILL, lifetime_s={"middle": 5.0})
    assert demand.vertex_names == ("root", "middle", "leaf")
    assert demand.parent.tolist() == [-1, 0, 1]
    assert demand.bytes.tolist() == [7, 20, 20]
    assert demand.type_vertex.tolist() == [2]
    assert demand.lifetime_s.tolist() == [np.inf, 5.0, np.inf]
    with pytest.raises(ValueError, match=r"^lifetime_s: no vertex is named 'x'; must"):
        forest_demand(Forest(vertices, 2), types, PREFILL, lifetime_s={"x": 1.0})
    with pytest.raises(ValueError, match=r"path 'leaf' must name a vertex"):
        forest_demand(Forest(vertices[1:2], 2), types, PREFILL)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("parent", [-1, 1, 0, -1]),
        ("parent", [-1, 0, 0, -2]),
        ("parent", [[-1, 0, 0, -1]]),
        ("depth_tokens", [100, 99, 400, 0]),
        ("depth_tokens", [100, 300, 400.5, 0]),
        ("depth_tokens", [100, 300, 400]),
        ("depth_tokens", "abcd"),
        ("bytes", [True] * 4),
        ("bytes", [1, 2, -3, 4]),
        ("bytes", [10**18] * 4),
        ("bytes", [1, 2, np.nan, 4]),
        ("type_vertex", [4, 0, 0, 0]),
        ("type_vertex", []),
        ("share", [0.1, 0.2, 0.3, 0.5]),
        ("share", [-0.1, 0.4, 0.3, 0.4]),
        ("share", [0.1, 0.2, 0.7]),
        ("input_tokens", [299, 400, 101, 9]),
        ("input_tokens", [500, 400, 101, 0]),
        ("prefill", None),
        ("lifetime_s", [1, 2, 0, 4]),
        ("lifetime_s", [1, 2, np.nan, 4]),
        ("lifetime_s", [1, 2, 3]),
        ("vertex_names", ("a", "b")),
        ("vertex_names", ("a", "b", "c", "a")),
        ("type_family", ("a",)),
    ],
)
def test_wrong_fields_are_refused_by_name(field, value):
    with pytest.raises(ValueError, match=rf"^{field}.*must"):
        ForestDemand(**(ARGUMENTS | {field: value}))


@pytest.mark.parametrize("seed", range(5))
def test_savings_never_shrink_with_the_set(seed):
    demand = random_demand(seed, vertices=6)
    for held in closed_sets(demand):
        for vertex in range(6):
            assert demand.saved_s(demand.closure([*held, vertex])) >= demand.saved_s(held)
