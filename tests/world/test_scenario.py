"""The scenario: derived values, round trips through files, and refusals that explain themselves."""

import copy
import json
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.world import Scenario, ScenarioError, preset, presets
from tests.world.documents import changed, documents, minimal
from tests.world.features import full_documents


@pytest.fixture
def scenario() -> Scenario:
    return Scenario(**minimal())


def test_sizes_and_names(scenario):
    assert scenario.profile_names == ("none", "shallow", "deep")
    assert scenario.type_names == ("long", "short")
    assert scenario.family_names == ("f", "g")
    assert scenario.state_bytes == (0, 1000, 4000)
    assert scenario.concurrency == (10, 9, 6)  # (10000 - state) // 1000
    assert scenario.max_nodes == 3
    assert scenario.density_per_km2 == 1.5
    assert scenario.request_intensity == 3.0  # 2 per node times 1.5 nodes per km²
    np.testing.assert_array_equal(scenario.initial_mix, [1, 0, 0])


def test_chunks_need_steps_longer_than_the_batch(scenario):
    def chunked(step_tokens):
        return {
            "hardware.decode": {"kind": "tpot", "tpot_s": {1: 0.02}},
            "service": {"kind": "engine", "schedule": "chunked", "step_tokens": step_tokens},
        }

    assert scenario.with_overrides(chunked(11)).service.step_tokens == 11
    message = r"^service\.step_tokens = 10: must be above the 10 sequences that a node can run"
    with pytest.raises(ScenarioError, match=message):
        scenario.with_overrides(chunked(10))


def test_concurrency_rounds_down_in_integer_bytes():
    assert Scenario(**changed("hardware.memory_bytes", 10_999)).concurrency == (10, 9, 6)


def test_runtime_bytes_default_to_the_mean_context():
    document = minimal()
    del document["hardware"]["runtime_bytes_per_sequence"]
    # 0.25 * (500 + 1) + 0.75 * (200 + 1) = 276 tokens of 10 bytes
    assert Scenario(**document).runtime_bytes_per_sequence == 2760


def test_targets_default_to_the_objective():
    document = changed("request_types.1.ttft_target_s", 0.3)
    np.testing.assert_array_equal(Scenario(**document).ttft_target_s, [0.8, 0.3])


def test_poisson_fleets_have_room_for_nearly_every_draw():
    poisson = Scenario(**changed("nodes", {"density_per_km2": 12.5}))
    assert poisson.mean_nodes == 25.0
    # P(N <= 45) = 0.999894 and P(N <= 46) = 0.999945 for a mean of 25.
    assert poisson.max_nodes == 46
    assert Scenario(**changed("nodes", {"density_per_km2": 12.5, "max_count": 30})).max_nodes == 30


def test_request_intensity_can_be_given_instead():
    assert Scenario(**changed("demand", {"request_intensity": 7.0})).request_intensity == 7.0


def test_is_frozen(scenario):
    with pytest.raises(ValueError, match="frozen"):
        scenario.name = "other"
    with pytest.raises(ValueError, match="frozen"):
        scenario.radio.xi = 2.0


@pytest.mark.parametrize("name", presets())
def test_presets_survive_yaml_json_pickle_and_copy(name, tmp_path):
    original = preset(name)
    original.to_yaml(tmp_path / "s.yaml")
    original.to_json(tmp_path / "s.json")
    assert Scenario.from_yaml(tmp_path / "s.yaml") == original
    assert Scenario.from_json(tmp_path / "s.json") == original
    assert pickle.loads(pickle.dumps(original)) == original
    assert copy.deepcopy(original) == original


@given(documents())
def test_any_scenario_survives_yaml_and_json(document):
    original = Scenario(**document)
    written = original.document()
    assert Scenario(**yaml.safe_load(yaml.safe_dump(written))) == original
    assert Scenario(**json.loads(json.dumps(written))) == original
    # What was stated is kept, not only what an equal object needs.
    assert Scenario(**written).document() == written


@settings(max_examples=30)
@given(full_documents())
def test_so_does_any_scenario_of_the_full_event_loop(document):
    original = Scenario(**document)
    written = original.document()
    assert Scenario(**yaml.safe_load(yaml.safe_dump(written))) == original
    assert Scenario(**json.loads(json.dumps(written))).document() == written
    assert original.needs_full


def test_using_a_scenario_does_not_change_it(scenario):
    fresh = Scenario(**minimal())
    scenario.compile()
    scenario.tiered_network()
    assert scenario == fresh
    assert scenario.document() == fresh.document()
    assert scenario.compile() is scenario.compile()


def test_hardware_preset_is_written_out_in_full(tmp_path):
    document = changed("hardware", {"preset": "llama-3.1-8b@l40s"})
    Scenario(**document).to_yaml(tmp_path / "s.yaml")
    written = yaml.safe_load((tmp_path / "s.yaml").read_text())["hardware"]
    assert written["preset"] == "llama-3.1-8b@l40s"
    assert written["decode"]["tpot_s"]["16"] > 0
    assert Scenario.from_yaml(tmp_path / "s.yaml") == Scenario(**document)


REFUSED = [
    ("name", "", r"^name = '': "),
    ("nodes.count", 0, r"^nodes\.count = 0: .*greater than 0"),
    ("nodes.count", 2.5, r"^nodes\.count = 2\.5: "),
    ("nodes", {}, r"^nodes: count = None, density_per_km2 = None, coordinates: none: give exactly"),
    ("nodes", {"count": 1, "density_per_km2": 1.0}, r"^nodes: .*give exactly one"),
    ("nodes", {"count": 1, "max_count": 2}, r"^nodes: max_count = 2: only for a random"),
    ("nodes.cuont", 5, r"^nodes\.cuont: unknown key"),
    ("surprise", 1, r"^surprise: unknown key"),
    ("radio.xi", float("nan"), r"^radio\.xi = nan: .*finite"),
    ("radio.alpha", float("inf"), r"^radio\.alpha = inf: .*finite"),
    ("radio.alpha", "steep", r"^radio\.alpha = 'steep': .*number"),
    ("radio.base_s", -0.1, r"^radio\.base_s = -0\.1: "),
    ("region.width_km", 0, r"^region\.width_km = 0: "),
    ("region", {"width_km": 1.0}, r"^region\.height_km: missing"),
    ("region", None, r"^region = None: "),
    ("profiles", [], r"^profiles = \[\]: "),
    ("profiles.1.name", "none", r"profiles: name 'none' stands twice"),
    ("profiles.2.vertices", ["twig"], r"profiles\.deep\.vertices: no vertex is named 'twig'"),
    ("profiles.2.vertices", "leaf", r"^profiles\.deep\.vertices = 'leaf': "),
    ("request_types.0.name", "short", r"request_types: name 'short' stands twice"),
    ("request_types.0.path", "twig", r"request_types\.long\.path = 'twig': no vertex"),
    ("request_types.0.share", 0.5, r"request_types: the shares add up to 1\.25"),
    ("request_types.0.share", 0, r"^request_types\.long\.share = 0: "),
    ("request_types.0.input_tokens", 0, r"^request_types\.long\.input_tokens = 0: "),
    ("request_types.0.ttft_target_s", 0, r"^request_types\.long\.ttft_target_s = 0: "),
    ("forest.1.parent", "trunk", r"forest\.leaf\.parent = 'trunk': no vertex"),
    ("forest.1.depth_tokens", 50, r"forest\.leaf\.depth_tokens = 50: .*parent's depth, 100"),
    ("forest.1.bytes", -1, r"^forest\.leaf\.bytes = -1: "),
    ("initial.mix", {"empty": 1.0}, r"initial\.mix\.empty: no profile .*none, shallow, deep"),
    ("initial.mix", {"none": 0.5}, r"initial\.mix: the shares add up to 0\.5"),
    ("initial.mix", {"none": 1.5, "deep": -0.5}, r"initial\.mix\.deep = -0\.5: "),
    ("demand", {}, r"^demand: .*give exactly one"),
    ("demand.rate_per_node", -1, r"^demand\.rate_per_node = -1: "),
    (
        "demand.modulations",
        [{"kind": "tide"}],
        r"^demand\.modulations.*'tide'.*'diurnal', 'drift', 'hotspot'",
    ),
    (
        "demand.modulations",
        [{"kind": "drift", "zipf_exponent": 1, "period_s": 9, "families": ["h"]}],
        r"demand\.modulations\.drift\.families: .*family 'h' \(known: f, g\)",
    ),
    (
        "demand.modulations",
        [{"kind": "drift", "zipf_exponent": 1, "period_s": 9}] * 2,
        r"^demand: modulations: kind 'drift' stands twice",
    ),
    (
        "demand.modulations",
        [
            {
                "kind": "flash_crowd",
                "interval_s": 10,
                "duration_s": 20,
                "magnitude": 1,
                "sigma_km": 1,
            }
        ],
        r"duration_s = 20.*: must not exceed interval_s = 10",
    ),
    (
        "demand.modulations",
        [{"kind": "mmpp", "burst_level": 5, "burst_s": 1, "calm_s": 3}],
        r"burst_level = 5: bursts take 0\.25 of the time, so it must be at most 4 for",
    ),
    (
        "demand.modulations",
        [{"kind": "mmpp", "burst_level": 1, "burst_s": 1, "calm_s": 3}],
        r"burst_level = 1: .*greater than 1",
    ),
    (
        "demand.modulations",
        [{"kind": "trace", "path": "/nowhere/requests.csv"}],
        r"^replay file /nowhere/requests\.csv: can't be read: No such file",
    ),
    (
        "demand.modulations",
        [{"kind": "trace", "path": ""}],
        r"^demand\.modulations.*path = '': ",
    ),
    (
        "demand.modulations",
        [{"kind": "trace", "path": "x.csv", "repeat": False, "random_start": True}],
        r"random_start = true: only for a trace that repeats",
    ),
    ("request_types.0.xi_factor", 0, r"^request_types\.long\.xi_factor = 0: "),
    ("routing", {"kind": "psychic"}, r"^routing.*psychic.*load_aware"),
    ("routing", {"kind": "nearest", "advertised_wait": "tier"}, r"advertised_wait: unknown key"),
    ("service", {"kind": "lognormal", "sigma": 0}, r"^service\.sigma = 0: "),
    ("hardware.preset", "abacus", r"hardware\.preset = 'abacus': no such preset \(known: "),
    ("hardware.weights_bytes", 10_000, r"^hardware: weights_bytes = 10000: must be below"),
    ("hardware.decode", {"kind": "tpot", "tpot_s": {}}, r"^hardware\.decode\.tpot_s = \{\}: "),
    (
        "hardware.decode",
        {"kind": "steps", "step_s": {4: {0: 0.2, 64: 0.1}}},
        r"^hardware\.decode\.step_s: 4\.64 = 0\.1: .* can't take less than 0\.2 s",
    ),
    (
        "service",
        {"kind": "engine"},
        r"^hardware\.decode\.kind = 'occupancy': service\.kind = 'engine' needs 'tpot' or 'steps'",
    ),
    ("objective.kind", "fame", r"^objective\.kind = 'fame': .*coverage"),
    ("evaluation_seeds", [1, 1], r"^evaluation_seeds: got \[1, 1\]: .*each once"),
    ("evaluation_seeds", [], r"^evaluation_seeds: got \[\]: give at least one seed"),
    ("evaluation_seeds", [-1], r"^evaluation_seeds\.0 = -1: "),
    ("evaluation_seeds", [True], r"^evaluation_seeds\.0 = True: must be a number, not a truth"),
    ("demand.rate_per_node", True, r"^demand\.rate_per_node = True: must be a number, not a truth"),
    ("demand.rate_per_node", "4", r"^demand\.rate_per_node = '4': must be a number, not text"),
    ("demand.rate_per_node", 1e-320, r"^demand\.rate_per_node = .*: must lie between 1e-12 and"),
    ("nodes.count", 10**18, r"^nodes: 1e\+18 nodes; at most 1e\+07"),
    ("nodes", {"density_per_km2": 1e-9}, r"^nodes\.density_per_km2 = 1e-09: .*at least 1"),
    (
        "nodes",
        {"density_per_km2": 10, "max_count": 1},
        r"^nodes\.max_count = 1: must be at least the mean number of nodes, 20",
    ),
    ("control", {"epoch_s": 1e-12}, r"^control\.epoch_s = 1e-12: "),
    ("control", {"epoch_s": 1e9}, r"^control\.epoch_s = 1e\+09: at 6 requests/s that is 6e\+09"),
    ("initial.warmup_s", 1e300, r"^initial\.warmup_s = 1e\+300: "),
    ("telemetry", {"period_s": 1e-12}, r"^telemetry\.period_s = 1e-12: must be 0 .*0\.001 s"),
    ("objective.migration_weight", 1e300, r"^objective\.migration_weight = 1e\+300: "),
    ("hardware.memory_bytes", 10**17, r"^concurrency of profile 'none' is 100000000000000: "),
    ("request_types.0.input_tokens", 399, r"^request_types\.long\.input_tokens = 399: .*the 400"),
    (
        "demand.modulations",
        [{"kind": "drift", "zipf_exponent": 1, "period_s": 9, "families": ["f", "f"]}],
        r"families: got .*: a family stands twice",
    ),
]


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        CountedName.compared += 1
        return str.__eq__(self, other)


def test_many_names_are_checked_in_one_pass():
    items = tuple(SimpleNamespace(name=CountedName(f"type {k}")) for k in range(2000))
    assert Scenario._unique_names(items, None) == items
    assert CountedName.compared < 20 * len(items)
    with pytest.raises(ValueError, match="name 'type 7' stands twice"):
        Scenario._unique_names((*items, items[7]), None)


@pytest.mark.parametrize(("path", "value", "message"), REFUSED)
def test_refusals_name_field_value_and_rule(path, value, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario(**changed(path, value))


def test_a_profile_that_leaves_no_room_to_run_is_refused_with_its_sizes():
    document = changed("forest.1.bytes", 9_000)
    with pytest.raises(ScenarioError) as refused:
        Scenario(**document)
    assert str(refused.value) == (
        "concurrency of profile 'deep' is 0: state 1e-05 GB + one sequence 1e-06 GB exceed the "
        "usable memory 1e-05 GB"
    )


def test_all_faults_are_reported_at_once():
    document = changed("radio.xi", -1)
    document["demand"] = {"rate_per_node": 0}
    with pytest.raises(ScenarioError) as refused:
        Scenario(**document)
    assert [line.split(" = ")[0] for line in str(refused.value).splitlines()] == [
        "radio.xi",
        "demand.rate_per_node",
    ]


@given(
    st.sampled_from(["radio.xi", "nodes.count", "region", "profiles", "forest", "name"]), st.data()
)
def test_any_value_is_accepted_or_refused_by_name(path, data):
    value = data.draw(
        st.none()
        | st.booleans()
        | st.floats()
        | st.text(max_size=3)
        | st.lists(st.none() | st.integers() | st.text(max_size=2), max_size=2)
        | st.dictionaries(st.text(max_size=2), st.integers(), max_size=2)
    )
    refused = None
    try:
        Scenario(**changed(path, value))
    except ScenarioError as error:
        refused = str(error)
    assert refused is None or refused.strip()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name: [", r"(?s)bad\.yaml: .*line 1"),
        (b"- a\n- b\n", r"bad\.yaml: must be a mapping, got list"),
        (b"", r"bad\.yaml: must be a mapping, got NoneType"),
        (b"1: 2\n", r"bad\.yaml: key 1 is not text"),
        (b"\xff\xfe\x00", r"bad\.yaml: not UTF-8 text"),
        (b"name: x\n", r"bad\.yaml: region: missing"),
    ],
)
def test_bad_files_are_refused_by_name(content, message, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_bytes(content)
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_yaml(path)


def test_absent_and_broken_json_files_are_refused(tmp_path):
    with pytest.raises(ScenarioError, match=r"none\.yaml: No such file"):
        Scenario.from_yaml(tmp_path / "none.yaml")
    (tmp_path / "bad.json").write_text('{"name": }')
    with pytest.raises(ScenarioError, match=r"bad\.json: .*line 1 column"):
        Scenario.from_json(tmp_path / "bad.json")


def test_a_failed_write_leaves_the_old_file(scenario, tmp_path, monkeypatch):
    path = tmp_path / "s.yaml"
    path.write_text("old")

    def fail(*_, **__):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        scenario.to_yaml(path)
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def validates(value, schema, root) -> bool:
    """Check a value against the part of JSON Schema that pydantic writes."""
    if "$ref" in schema:
        return validates(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return any(validates(value, option, root) for option in schema[union])
    if "const" in schema and value != schema["const"]:
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "boolean": bool,
        "null": type(None),
        "integer": int,
        "number": (int, float),
    }
    if not isinstance(value, kinds[schema["type"]]):
        return False
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        return low <= value <= high and value > schema.get("exclusiveMinimum", value - 1)
    if isinstance(value, list) and "prefixItems" in schema:
        return len(value) == len(schema["prefixItems"]) and all(
            validates(item, kind, root)
            for item, kind in zip(value, schema["prefixItems"], strict=True)
        )
    if isinstance(value, list):
        return all(validates(item, schema["items"], root) for item in value)
    if isinstance(value, dict) and "properties" in schema:
        known = schema["properties"]
        return (
            schema["additionalProperties"] is False
            and set(schema.get("required", ())) <= set(value) <= set(known)
            and all(validates(item, known[key], root) for key, item in value.items())
        )
    return True


@pytest.mark.parametrize("name", presets())
def test_json_schema_accepts_presets(name):
    schema = Scenario.json_schema()
    json.dumps(schema)
    assert validates(preset(name).document(), schema, schema)


@pytest.mark.parametrize(
    ("path", "value"),
    [("surprise", 1), ("radio.xi", 0), ("nodes.count", "3"), ("routing", {"kind": "psychic"})],
)
def test_json_schema_refuses_what_the_model_refuses(path, value):
    schema = Scenario.json_schema()
    assert validates(minimal(), schema, schema)
    assert not validates(changed(path, value), schema, schema)


def test_json_schema_explains_every_field():
    schema = Scenario.json_schema()
    for block in [schema, *schema["$defs"].values()]:
        for name, field in block["properties"].items():
            assert name == "kind" or field.get("description"), (block["title"], name)


def test_yaml_numbers_in_scientific_notation_are_numbers(tmp_path):
    path = tmp_path / "world.yaml"
    Scenario(**minimal()).to_yaml(path)
    path.write_text(path.read_text().replace("memory_bytes: 10000", "memory_bytes: 1e4"))
    assert Scenario.from_yaml(path) == Scenario(**minimal())


def test_a_key_that_stands_twice_is_refused(tmp_path):
    path = tmp_path / "world.yaml"
    Scenario(**minimal()).to_yaml(path)
    path.write_text(path.read_text() + "name: again\n")
    with pytest.raises(ScenarioError, match="key 'name' stands twice"):
        Scenario.from_yaml(path)


def test_a_file_that_is_nested_too_deep_is_refused(tmp_path):
    path = tmp_path / "deep.json"
    path.write_text("[" * 100_000)
    with pytest.raises(ScenarioError, match="nested too deep"):
        Scenario.from_json(path)
