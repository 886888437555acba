import json

import numpy as np
import pytest

from edgegym.interface import ObservationLayout
from edgegym.world import preset, presets


@pytest.mark.parametrize("name", presets())
def test_blocks_are_filled_by_features_without_gaps(name):
    layout = ObservationLayout.from_scenario(preset(name), observe_clock=True)
    for scope, width in (("node", layout.node_features), ("global", layout.global_features)):
        columns = [c for f in layout.features if f.scope == scope for c in range(width)[f.columns]]
        assert columns == list(range(width))
    assert layout.size == layout.num_nodes * layout.node_features + layout.global_features


def test_feature_names_and_order_are_fixed():
    layout = ObservationLayout.from_scenario(preset("moving-hotspot"))
    names = [(f.scope, f.name) for f in layout.features]
    assert names == [
        ("node", "profile"),
        ("node", "backlog"),
        ("node", "receiving"),
        ("node", "up"),
        ("node", "price"),
        ("node", "demand"),
        ("node", "near_demand"),
        ("node", "near_capacity"),
        ("node", "near_backlog"),
        ("global", "family_demand"),
        ("global", "profile_share"),
        ("global", "bucket"),
        ("global", "load"),
    ]


def test_more_nodes_change_the_size_only():
    scenario = preset("moving-hotspot")
    small = ObservationLayout.from_scenario(scenario)
    for overrides in (
        {"nodes.count": 100, "region.width_km": 10.0, "region.height_km": 10.0},
        {"nodes.count": 73},
        {"nodes.count": 7},
    ):
        other = ObservationLayout.from_scenario(scenario.with_overrides(overrides))
        assert other.hash == small.hash
        assert other == small.with_num_nodes(other.num_nodes)


def test_what_a_network_relies_on_changes_the_hash():
    scenario = preset("moving-hotspot")
    layout = ObservationLayout.from_scenario(scenario)
    others = [
        ObservationLayout.from_scenario(scenario, observe_clock=True),
        ObservationLayout.from_scenario(scenario.with_overrides({"demand.rate_per_node": 4.0})),
        ObservationLayout.from_scenario(preset("toy")),
    ]
    assert len({layout.hash, *(other.hash for other in others)}) == 4


def test_dict_round_trip_is_json_and_lossless():
    layout = ObservationLayout.from_scenario(preset("paper"))
    text = json.dumps(layout.to_dict())
    again = ObservationLayout.from_dict(json.loads(text))
    assert again == layout
    assert again.hash == layout.hash


def test_dict_of_another_version_is_refused():
    data = ObservationLayout.from_scenario(preset("toy")).to_dict() | {"version": 99}
    with pytest.raises(ValueError, match="layout version is 99"):
        ObservationLayout.from_dict(data)


def test_blocks_keep_leading_axes():
    layout = ObservationLayout.from_scenario(preset("toy"))
    batch = np.arange(3 * layout.size, dtype=np.float32).reshape(3, layout.size)
    nodes, fleet = layout.node_block(batch), layout.global_block(batch)
    assert nodes.shape == (3, layout.num_nodes, layout.node_features)
    assert fleet.shape == (3, layout.global_features)
    for row in range(3):
        np.testing.assert_array_equal(layout.node_block(batch[row]), nodes[row])
        np.testing.assert_array_equal(np.concatenate([nodes[row].ravel(), fleet[row]]), batch[row])


def test_wrong_length_and_unknown_feature_are_named():
    layout = ObservationLayout.from_scenario(preset("toy"))
    with pytest.raises(ValueError, match=rf"last axis must be {layout.size}"):
        layout.global_block(np.zeros(layout.size + 1))
    with pytest.raises(KeyError, match="no feature 'colour'; it has profile, backlog"):
        layout.column("colour")
    with pytest.raises(ValueError, match="num_nodes is 0"):
        layout.with_num_nodes(0)
