"""The built-in worlds: the figures they promise, and the long-run network of each."""

import numpy as np
import pytest

import edgegym
from edgegym.world import ScenarioError, preset, presets

GIB = 2**30


def test_names():
    assert presets() == (
        "paper",
        "toy",
        "stationary",
        "popularity-drift",
        "moving-hotspot",
        "flash-crowd",
        "diurnal-load",
        "mixed-fleet",
        "node-failures",
        "scarce-backhaul",
        "toolagent",
    )
    assert edgegym.presets is presets


def test_unknown_name_lists_the_known():
    with pytest.raises(ScenarioError, match=r"scenario = 'papre': no such preset \(known: paper, "):
        preset("papre")


@pytest.mark.parametrize("name", presets())
def test_each_says_why_it_exists(name):
    scenario = preset(name)
    assert scenario.name == name
    assert len(scenario.description) > 100


@pytest.mark.parametrize("name", presets())
def test_each_leaves_room_to_act(name):
    scenario = preset(name)
    world = scenario.compile()
    prices = world.move_bytes[world.move_bytes > 0]
    assert world.burst_bytes >= prices.max(), "every single move must be affordable"
    assert scenario.control.horizon_epochs * scenario.control.epoch_s >= 100
    assert len(scenario.evaluation_seeds) == 20


def test_paper_is_the_fitted_scenario_of_the_theory():
    network = preset("paper").tiered_network()
    assert network.density_per_km2 == 1.0
    assert network.request_intensity == pytest.approx(3.0, rel=1e-15)
    np.testing.assert_array_equal(network.input_tokens, [1024, 4096])
    np.testing.assert_array_equal(network.type_probabilities, [0.4, 0.6])
    np.testing.assert_array_equal(network.hit_tokens, [[0, 0], [256, 256], [768, 3072]])
    np.testing.assert_array_equal(network.concurrency, [16, 12, 9])
    np.testing.assert_allclose(network.profile_probabilities, [0.4, 0.4, 0.2], rtol=1e-15)
    assert (network.prefill_linear_s, network.prefill_quadratic_s) == (2.5e-4, 1.4e-8)
    assert (network.prefill_floor_s, network.attention) == (0.0, "residual")
    np.testing.assert_array_equal(network.decode_occupancy_s, [0.58, 0.58])
    assert (network.radio_xi, network.radio_alpha, network.radio_base_s) == (0.36, 2.0, 0.0)
    np.testing.assert_array_equal(network.state_bytes, [0, 4 * GIB, 7 * GIB])
    scenario = preset("paper")
    assert scenario.objective.ttft_target_s == 0.8
    assert scenario.hardware.usable_bytes == 16 * GIB
    assert scenario.runtime_bytes_per_sequence == GIB
    # g(L - h) by hand: 2.5e-4 n + 1.4e-8 n²
    assert network.prefill_s[2, 1] == pytest.approx(0.256 + 1.4e-8 * 1024**2)
    assert network.prefill_s[0, 1] == pytest.approx(1.024 + 1.4e-8 * 4096**2)


def test_toy_meets_its_target_only_with_the_right_prefix():
    world = preset("toy").compile()
    target = preset("toy").objective.ttft_target_s
    np.testing.assert_array_equal(
        world.prefill_s < target, [[False] * 2, [True, False], [False, True]]
    )


@pytest.mark.parametrize(
    "name", ["stationary", "popularity-drift", "moving-hotspot", "flash-crowd", "diurnal-load"]
)
def test_urban_worlds_share_all_but_their_demand(name):
    scenario = preset(name)
    world = scenario.compile()
    assert scenario.max_nodes == 25
    assert world.base_rate_per_s == pytest.approx(25 * 3.5)
    assert world.num_profiles == 8
    np.testing.assert_array_equal(world.slots, [16, 12] + [9] * 6)
    np.testing.assert_array_equal(world.holding_bytes, [0, 4 * GIB] + [7 * GIB] * 6)
    # Deep to another deep: the root stays, only the family's own part moves.
    assert world.move_bytes[2, 3] == 3 * GIB
    assert world.meet[2, 3] == 1
    zipf = np.array([1, 1 / 2, 1 / 3, 1 / 4, 1 / 5, 1 / 6])
    np.testing.assert_allclose(world.family_base_share, [*(0.6 * zipf / zipf.sum()), 0.4])


@pytest.mark.parametrize("name", presets())
def test_network_is_the_long_run_mean(name):
    scenario = preset(name)
    world = scenario.compile()
    network = scenario.tiered_network()
    np.testing.assert_array_equal(network.type_probabilities, world.type_share)
    if not scenario.nodes.classes:
        np.testing.assert_allclose(network.prefill_s, world.prefill_s[: world.num_profiles])
        np.testing.assert_allclose(network.cold_prefill_s, world.cold_prefill_s)
    area = scenario.region.area_km2
    assert network.request_intensity * area == pytest.approx(world.mean_rate_per_s)
    extra = {"flash-crowd": 40 / 120}.get(name, 0.0)
    assert world.mean_rate_per_s == pytest.approx(world.base_rate_per_s * (1 + extra))


def test_mixed_fleet_has_whole_nodes_of_each_class_and_room_for_the_same_profiles():
    scenario = preset("mixed-fleet")
    tables = scenario.compile().classes
    np.testing.assert_allclose(tables.share * 25, [8, 8, 4, 5])
    np.testing.assert_array_equal(tables.slots[:, 0], [12, 16, 32, 0])
    np.testing.assert_array_equal(tables.slots[:, 2], [5, 9, 25, 0])
    # Access points send what they hear to others: the rest serves a quarter more each.
    assert scenario.tiered_network().density_per_km2 == pytest.approx(0.8)


def test_node_failures_change_nothing_else():
    failing, calm = preset("node-failures").document(), preset("stationary").document()
    assert failing.pop("failures")["nodes"] == {"mean_up_s": 600.0, "mean_down_s": 30.0}
    for name in ("name", "description"):
        del failing[name], calm[name]
    assert failing == calm


def test_scarce_backhaul_is_scarce():
    scenario = preset("scarce-backhaul")
    world = scenario.compile()
    deep = world.holding_bytes[2] - world.holding_bytes[1]
    alone_s = deep / scenario.backhaul.rate_bytes_per_s
    assert alone_s < world.prefill_s[1, 0] - world.prefill_s[2, 0]  # a fetch pays when alone
    asked_per_s = world.mean_rate_per_s * world.type_share[:6].sum()
    assert asked_per_s > 10 / alone_s  # and can't be had by all


def test_toolagent_has_the_roots_of_the_published_trace():
    scenario = preset("toolagent")
    roots = [vertex for vertex in scenario.forest if vertex.parent is None]
    assert [vertex.depth_tokens for vertex in roots] == [512, 12 * 512, 5 * 512]
    shares = {vertex.name: 0.0 for vertex in roots}
    for item in scenario.request_types:
        shares[item.name.partition("_")[0]] += item.share
    assert list(shares.values()) == pytest.approx([0.49, 0.37, 0.14])
    assert scenario.hardware.preset == "llama-3.1-8b@l40s"
    # Everything costs a sixth of the slots, and spares five sevenths of the prefill.
    assert (scenario.concurrency[0], scenario.concurrency[-1]) == (23, 19)
