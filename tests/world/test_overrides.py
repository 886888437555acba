"""Dotted overrides, and from names and paths to scenarios."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.world import Scenario, ScenarioError, preset, resolve_scenario
from edgegym.world.overrides import apply_overrides
from tests.world.documents import minimal


@pytest.fixture
def scenario() -> Scenario:
    return Scenario(**minimal())


def test_values_items_and_whole_blocks_can_be_set(scenario):
    changed = scenario.with_overrides(
        {
            "demand.rate_per_node": 4.0,
            "profiles.shallow.vertices": [],
            "forest.leaf.bytes": 123,
            "radio": {"xi": 0.5, "alpha": 3.0},
            "request_types.long.ttft_target_s": 0.1,
        }
    )
    assert changed.demand.rate_per_node == 4.0
    assert changed.profiles[1].vertices == ()
    assert changed.forest[1].bytes == 123
    assert (changed.radio.xi, changed.radio.alpha) == (0.5, 3.0)
    assert changed.request_types[0].ttft_target_s == 0.1
    assert scenario == Scenario(**minimal()), "the original must not change"


def test_a_whole_list_item_can_be_replaced(scenario):
    changed = scenario.with_overrides({"profiles.deep": {"name": "deeper", "vertices": ["leaf"]}})
    assert changed.profile_names == ("none", "shallow", "deeper")


def test_modulations_are_addressed_by_kind():
    slower = preset("moving-hotspot").with_overrides({"demand.modulations.hotspot.period_s": 9.0})
    assert slower.compile().hotspot[0, 3] == 9.0


def test_no_override_gives_the_same_scenario(scenario):
    assert scenario.with_overrides({}) is scenario


def test_an_exclusive_field_replaces_its_alternative(scenario):
    poisson = scenario.with_overrides({"nodes.density_per_km2": 2.0, "demand.request_intensity": 5})
    assert (poisson.nodes.count, poisson.demand.rate_per_node) == (None, None)
    back = poisson.with_overrides({"nodes.max_count": 9}).with_overrides(
        {"nodes.count": 4, "demand.rate_per_node": 1.0}
    )
    assert (back.nodes.density_per_km2, back.nodes.max_count) == (None, None)
    assert back.demand.request_intensity is None


def test_another_kind_starts_its_block_anew(scenario):
    routed = scenario.with_overrides({"routing.advertised_wait": "tier"})
    assert routed.with_overrides({"routing.kind": "nearest"}).routing.kind == "nearest"
    lognormal = scenario.with_overrides({"service.kind": "lognormal", "service.sigma": 0.2})
    assert lognormal.service.sigma == 0.2


def test_hardware_preset_replaces_the_hardware():
    # The prefixes of the presets are far smaller than this GPU's memory.
    changed = preset("stationary").with_overrides({"hardware.preset": "llama-3.1-8b@h100"})
    assert changed.hardware.kv_bytes_per_token == 131_072
    assert changed.hardware.prefill.attention == "context"


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("demnad.rate_per_node", 1, r"override 'demnad\.rate_per_node': there is no 'demnad' here"),
        ("profiles.dep.vertices", [], r"no 'dep' here \(known: none, shallow, deep\)"),
        ("name.first", "x", r"no 'first' here \(known: nothing, it is a plain value\)"),
        ("demand.rate_per_nodes", 1, r"demand\.rate_per_nodes: unknown key"),
        ("demand.rate_per_node", "many", r"demand\.rate_per_node = 'many'"),
        ("radio.xi", -1, r"radio\.xi = -1"),
        ("", 1, r"unknown key"),
        ("demand.modulations.tide.period_s", 1, r"no 'tide' here"),
        ("origin.slots", 3, r"'origin\.slots': the scenario has no 'origin' yet; first give"),
        ("routing.kind", "x", r"routing\.kind = 'x': must be one of 'nearest', 'prefix_aware'"),
        ("routing", {"margin": {}}, r"routing\.kind: missing, but required"),
    ],
)
def test_bad_overrides_are_refused_by_path(scenario, path, value, message):
    with pytest.raises(ScenarioError, match=message):
        scenario.with_overrides({path: value})


@given(st.text("abnodes.profiles0", max_size=20))
def test_any_path_is_applied_or_refused(path):
    refused = None
    try:
        apply_overrides(minimal(), {path: 1})
    except ScenarioError as error:
        refused = str(error)
    assert refused is None or f"'{path}'" in refused


def test_resolve_accepts_names_paths_and_scenarios(scenario, tmp_path):
    scenario.to_yaml(tmp_path / "s.yaml")
    scenario.to_json(tmp_path / "s.json")
    assert resolve_scenario("toy") == preset("toy")
    assert resolve_scenario(scenario) is scenario
    assert resolve_scenario(tmp_path / "s.yaml") == scenario
    assert resolve_scenario(str(tmp_path / "s.json")) == scenario
    assert resolve_scenario("toy", {"nodes.count": 3}).nodes.count == 3


@pytest.mark.parametrize(
    ("given_value", "message"),
    [
        ("tyo", r"scenario = 'tyo': neither a preset \(known: paper, toy, .*nor a \.yaml"),
        ("none.yaml", r"none\.yaml: No such file"),
        (3, r"scenario = 3: must be a preset's name, a path or a Scenario, got int"),
        (None, r"scenario = None: "),
    ],
)
def test_resolve_refuses_anything_else(given_value, message):
    with pytest.raises(ScenarioError, match=message):
        resolve_scenario(given_value)


def test_another_objective_keeps_the_rest_of_its_block():
    changed = preset("paper").with_overrides({"objective.kind": "goodput"})
    assert changed.objective.kind == "goodput"
    assert changed.objective.ttft_target_s == 0.8


@pytest.mark.parametrize("overrides", [[1], "a", 5, {1: 2}])
def test_what_is_no_mapping_of_paths_is_refused(overrides):
    with pytest.raises(ScenarioError, match=r"^overrides"):
        preset("paper").with_overrides(overrides)
