import numpy as np
import pytest

from edgegym.interface.layout import ObservationLayout
from edgegym.interface.observation import Observer
from edgegym.interface.region_observation import RegionLayout, RegionObserver
from edgegym.interface.regions import RegionGrid
from edgegym.simulator import Fleet
from edgegym.world import preset, presets


def observed(name, regions, seconds, *, seed=0, clock=False, prepare=None, **overrides):
    scenario = preset(name).with_overrides(overrides)
    grid = RegionGrid.from_scenario(scenario, regions)
    layout = RegionLayout.from_scenario(scenario, grid.size, observe_clock=clock)
    observer = RegionObserver(scenario, layout, grid)
    fleet = Fleet(scenario, seed)
    observer.reset(fleet.state)
    if prepare:
        prepare(fleet)
    window = fleet.advance(seconds)
    observer.update(window.nearest_demand, window.seconds)
    return scenario, grid, layout, observer, fleet


@pytest.mark.parametrize("name", presets())
def test_blocks_are_filled_by_features_without_gaps(name):
    layout = RegionLayout.from_scenario(preset(name), 6, observe_clock=True)
    for scope, width in (("region", layout.region_features), ("global", layout.global_features)):
        columns = [c for f in layout.features if f.scope == scope for c in range(width)[f.columns]]
        assert columns == list(range(width))
    assert layout.size == 6 * layout.region_features + layout.global_features
    assert len({f.name for f in layout.features}) == len(layout.features)


@pytest.mark.parametrize("name", ["moving-hotspot", "mixed-fleet"])
def test_values_are_those_of_the_fleet(name):
    def move_some(fleet):
        for node, profile in np.argwhere(fleet.legal_moves())[::9]:
            if fleet.legal_moves()[node, profile]:
                fleet.start_move(int(node), int(profile))

    scenario, grid, layout, observer, fleet = observed(
        name, (2, 3), 0.4, prepare=move_some, **{"migration.burst_bytes": 10**11}
    )
    state, world = fleet.state, scenario.compile()
    observation = observer.observe(state, fleet.bucket_bytes)
    assert observation.dtype == np.float32
    region = grid.of(state.node_x[0], state.node_y[0])
    assert state.receiving[0].any()
    for r in range(6):
        nodes = [i for i in range(int(state.node_count[0])) if region[i] == r]
        serving = [i for i in nodes if state.up[0, i] and state.slots[0, i].any()]
        busy = sum(
            int(state.active[0, i] + state.queued[0, i] + state.in_flight[0, i]) for i in nodes
        )
        slots = sum(int(state.slots[0, i, state.profile[0, i]]) for i in nodes)
        expected = {
            "nodes": [len(serving)],
            "share": [
                sum(state.profile[0, i] == s for i in serving) / max(len(serving), 1)
                for s in range(world.num_profiles)
            ],
            "receiving": [sum(state.receiving[0, i] for i in serving) / max(len(serving), 1)],
            "demand": sum(observer.demand_per_s[i] for i in nodes) + np.zeros(world.num_families),
        }
        if slots:
            expected["backlog"] = [busy / slots]
        for key, value in expected.items():
            got = layout.decode(observation, key)[r]
            np.testing.assert_allclose(got, value, rtol=1e-5, atol=1e-7, err_msg=key)


def test_the_global_block_is_that_of_placement():
    scenario, _, layout, observer, fleet = observed("toy", (1, 2), 30.0, clock=True)
    nodes = ObservationLayout.from_scenario(scenario, observe_clock=True)
    reference = Observer(scenario, nodes)
    reference.set_state(observer.get_state())
    whole = reference.observe(fleet.state, fleet.bucket_bytes)
    part = observer.observe(fleet.state, fleet.bucket_bytes)
    np.testing.assert_array_equal(layout.global_block(part), nodes.global_block(whole))
    assert layout.observes_clock


def test_regions_without_nodes_are_finite():
    _, _, layout, observer, fleet = observed("toy", (8, 8), 10.0)
    observation = observer.observe(fleet.state, fleet.bucket_bytes)
    assert ((observation >= 0.0) & (observation <= 1.0)).all()
    assert layout.decode(observation, "nodes").sum() == pytest.approx(2.0)
    for feature in layout.features:
        assert np.isfinite(layout.decode(observation, feature.name)).all()


def test_a_region_whose_nodes_are_down_has_none():
    scenario, _, layout, observer, fleet = observed("toy", (1, 1), 10.0)
    fleet.state.up[0] = False
    observation = observer.observe(fleet.state, 0.0)
    assert layout.decode(observation, "nodes").sum() == 0.0
    assert layout.decode(observation, "share").sum() == 0.0
    assert np.isfinite(observation).all()
    del scenario


def test_the_layout_travels_as_data_and_says_what_networks_rely_on():
    scenario = preset("toy")
    layout = RegionLayout.from_scenario(scenario, 4)
    assert RegionLayout.from_dict(layout.to_dict()) == layout
    other = RegionLayout.from_scenario(scenario, 2)
    clock = RegionLayout.from_scenario(scenario, 4, observe_clock=True)
    nodes = ObservationLayout.from_scenario(scenario)
    assert len({layout.hash, other.hash, clock.hash, nodes.hash}) == 4
    with pytest.raises(ValueError, match=r"last axis must be .* \(4 regions x "):
        layout.decode(np.zeros(3), "nodes")
