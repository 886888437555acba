"""Classes and first profiles of the nodes: exact shares, room, clustering, a real city."""

from pathlib import Path

import numpy as np
import pytest

from edgegym.simulator.marks import clustering_of, neighbours_of
from edgegym.simulator.topology import draw_nodes
from edgegym.world import Scenario, preset
from tests.world.documents import minimal
from tests.world.fleets import mixed

_SITES = Path("../shared/data/eua_melbcbd_xy_km.csv")


def test_classes_have_exact_shares_in_random_places():
    world = Scenario(**mixed()).compile()
    first, second = draw_nodes(world, 0), draw_nodes(world, 1)
    for nodes in (first, second):
        np.testing.assert_array_equal(np.bincount(nodes.node_class), [5, 3, 2])
    assert (first.node_class != second.node_class).any()
    for one, other in zip(first, draw_nodes(world, 0), strict=True):
        np.testing.assert_array_equal(one, other)


def test_profiles_have_exact_shares_of_the_nodes_with_a_gpu_and_room_on_them():
    document = mixed()
    document["nodes"]["count"] = 40
    document["initial"]["mix"] = {"none": 0.25, "shallow": 0.25, "deep": 0.5}
    world = Scenario(**document).compile()
    for seed in range(20):
        nodes = draw_nodes(world, seed)
        np.testing.assert_array_equal(np.bincount(nodes.node_class), [20, 12, 8])
        with_gpu = nodes.node_class < 2
        np.testing.assert_array_equal(np.bincount(nodes.profile[with_gpu]), [8, 8, 16])
        assert (nodes.node_class[nodes.profile == 2] == 0).all()  # only these have room
        assert (nodes.profile[~with_gpu] == 0).all()


def test_a_node_without_room_for_its_profile_takes_the_smallest_that_fits():
    # 5 of 8 nodes have room for 'deep'; the nearest whole numbers of 3 nodes are 2 and 1 (big,
    # small), and all of 0.625 * 3 rounds to 2 of 'deep': that fits; of 2 nodes, 1 and 1 but 1.
    document = mixed()
    document["nodes"]["classes"] = [
        {"name": "big", "share": 0.5},
        {"name": "small", "share": 0.5, "hardware": document["nodes"]["classes"][1]["hardware"]},
    ]
    document["nodes"]["count"] = 3
    document["initial"]["mix"] = {"deep": 0.5, "shallow": 0.5}
    document["profiles"].reverse()  # deep, shallow, none
    document["nodes"]["classes"].reverse()  # the small class is rounded up
    nodes = draw_nodes(Scenario(**document).compile(), 0)
    np.testing.assert_array_equal(np.bincount(nodes.node_class), [2, 1])
    # Two 'deep' are due, one node has room: the other holds nothing.
    np.testing.assert_array_equal(np.sort(nodes.profile), [0, 1, 2])
    assert nodes.node_class[nodes.profile == 0] == [1]


def test_the_smallest_fleet_has_a_gpu():
    document = mixed()
    document["nodes"]["count"] = 1
    document["nodes"]["classes"] = [
        {"name": "big", "share": 0.2},
        {"name": "mast", "share": 0.8, "gpu": False},
    ]
    assert draw_nodes(Scenario(**document).compile(), 0).node_class.tolist() == [0]


def test_classes_change_neither_places_nor_the_order_of_profiles():
    plain = preset("stationary")
    one = plain.with_overrides({"nodes.classes": [{"name": "all", "share": 1.0}]})
    for first, second in zip(
        draw_nodes(plain.compile(), 4), draw_nodes(one.compile(), 4), strict=True
    ):
        np.testing.assert_array_equal(first, second)


def test_clustered_profiles_and_classes_are_as_asked():
    document = mixed()
    document["nodes"] |= {"count": 200, "clustering": 0.5}
    document["initial"] = {"mix": {"none": 0.5, "shallow": 0.5}, "clustering": 0.4}
    world = Scenario(**document).compile()
    loose = Scenario(**document).with_overrides(
        {"nodes.clustering": 0.0, "initial.clustering": -0.4}
    )
    for seed in range(3):
        nodes, others = draw_nodes(world, seed), draw_nodes(loose.compile(), seed)
        np.testing.assert_array_equal(nodes.x_km, others.x_km)
        everyone = neighbours_of(world, nodes.x_km, nodes.y_km)
        assert clustering_of(nodes.node_class, everyone) == pytest.approx(0.5, abs=0.02)
        assert abs(clustering_of(others.node_class, everyone)) < 0.25
        for drawn, wanted in ((nodes, 0.4), (others, -0.4)):
            gpu = drawn.node_class < 2
            neighbours = neighbours_of(world, drawn.x_km[gpu], drawn.y_km[gpu])
            assert clustering_of(drawn.profile[gpu], neighbours) == pytest.approx(wanted, abs=0.02)


@pytest.mark.skipif(not _SITES.exists(), reason="the site data are not in this checkout")
def test_the_sites_of_a_real_city():
    document = minimal()
    document["region"] = {"width_km": 2.0, "height_km": 1.4, "periodic": False}
    document["nodes"] = {"coordinates_file": str(_SITES), "origin_km": [-0.985, -0.74]}
    scenario = Scenario(**document)
    assert scenario.mean_nodes == scenario.max_nodes == 125
    nodes = draw_nodes(scenario.compile(), 0)
    assert len(nodes.x_km) == 125
    assert nodes.x_km.min() == pytest.approx(-0.9824 + 0.985)
    assert nodes.y_km.max() == pytest.approx(0.6175 + 0.74)
