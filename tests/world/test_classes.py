"""Tables of node classes and holdings, against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings

from edgegym.world import Scenario, ScenarioError, preset, presets
from tests.world.documents import changed, minimal
from tests.world.features import full_documents
from tests.world.fleets import mixed, with_model


@pytest.mark.parametrize("name", presets())
def test_a_fleet_without_classes_is_one_class_with_the_plain_tables(name):
    world = preset(name).compile()
    tables = world.classes
    if preset(name).needs_full:
        return
    np.testing.assert_array_equal(tables.share, [1.0])
    np.testing.assert_array_equal(tables.slots, [world.slots])
    np.testing.assert_array_equal(tables.hit_tokens, world.hit_tokens)
    # To the last bit: the full event loop must repeat the fast one.
    np.testing.assert_array_equal(tables.row_service_rate, world.slot_service_rate)
    np.testing.assert_array_equal(tables.occupancy_s, [world.decode_occupancy_s])
    np.testing.assert_array_equal(tables.meet[: world.num_profiles], world.meet)
    np.testing.assert_array_equal(tables.missing_bytes[: world.num_profiles], world.move_bytes)
    assert world.holding_bytes[tables.empty_row[0]] == 0


def test_a_mixed_fleet_by_hand():
    document = mixed()
    document["request_types"][0]["requires"] = "adapter"
    scenario = Scenario(**document)
    tables = scenario.compile().classes
    assert scenario.needs_full
    np.testing.assert_array_equal(tables.share, [0.5, 0.3, 0.2])
    np.testing.assert_array_equal(tables.has_gpu, [1, 1, 0])
    np.testing.assert_array_equal(
        tables.coefficients, [[0.001, 0, 0, 0], [0.002, 1e-6, 0.3, 1], [0, 0, 0, 0]]
    )
    np.testing.assert_array_equal(tables.occupancy_s, [[0.5, 0.5], [0.25, 0.25], [0, 0]])
    np.testing.assert_array_equal(tables.slots, [[10, 9, 6], [3, 2, 0], [0, 0, 0]])
    np.testing.assert_array_equal(tables.kv_bytes_per_token, [10, 5, 0])
    np.testing.assert_array_equal(tables.serves, [[1, 1], [0, 1], [0, 0]])
    np.testing.assert_array_equal(
        tables.hit_tokens,
        [
            [0, 0],
            [100, 100],
            [400, 100],
            [-1, 0],
            [-1, 100],
            [-1, 100],
            [-1, -1],
            [-1, -1],
            [-1, -1],
        ],
    )
    np.testing.assert_array_equal(tables.row_class, [0, 0, 0, 1, 1, 1, 2, 2, 2])
    np.testing.assert_array_equal(tables.empty_row, [0, 3, 6])
    # The small GPU serves 200-token prompts only: cold 0.4 + 1e-6 * 200² and 0.25 s of decode;
    # with 100 cached tokens max(0.2, 0.3) + 1e-6 * (200² - 100²).
    np.testing.assert_allclose(tables.row_service_rate[3:5], [1 / 0.69, 1 / 0.58], rtol=1e-14)
    np.testing.assert_array_equal(tables.row_service_rate[6:], 1.0)


def test_weights_and_lifetimes_by_hand():
    scenario = Scenario(**with_model())
    catalogue, tables = scenario.catalogue, scenario.compile().classes
    # none {}, shallow {root}, deep {model, leaf}; when the leaf expires the model stays.
    assert catalogue.holdings == (set(), {"root"}, {"model", "leaf"}, {"model"})
    np.testing.assert_array_equal(tables.hit_tokens, [[-1, 0], [-1, 100], [400, 0], [0, 0]])
    np.testing.assert_array_equal(tables.lifetimes_s, [60.0, 20.0])  # leaf, root
    np.testing.assert_array_equal(tables.expired, [[0, 0], [1, 0], [3, 2], [3, 3]])
    np.testing.assert_array_equal(tables.meet, [[0, 0, 0], [0, 1, 0], [0, 0, 2], [0, 0, 3]])
    np.testing.assert_array_equal(
        tables.missing_bytes, [[0, 1000, 6000], [0, 0, 6000], [0, 1000, 0], [0, 1000, 4000]]
    )
    # Only the type 'short' runs without the model: 0.2 s of prefill and 0.5 s of decode.
    np.testing.assert_allclose(tables.row_service_rate[:2], [1 / 0.7, 1 / 0.6], rtol=1e-14)


def test_holdings_of_fleets_that_fail_are_closed_under_moves():
    document = minimal()
    document["forest"] = [{"name": name, "depth_tokens": 10, "bytes": 10} for name in "abcd"]
    document["request_types"][0]["path"] = document["request_types"][1]["path"] = "a"
    document["profiles"] = [{"name": "none"}] + [
        {"name": f"without_{gone}", "vertices": [name for name in "abcd" if name != gone]}
        for gone in "abcd"
    ]
    plain = Scenario(**document)
    assert len(plain.catalogue.holdings) == 1 + 4 + 6  # pairs have two vertices
    failing = Scenario(**document | {"failures": {"nodes": {"mean_up_s": 9, "mean_down_s": 1}}})
    assert len(failing.catalogue.holdings) == 2**4 - 1  # all but {a, b, c, d}
    tables = failing.compile().classes
    assert (tables.meet >= 0).all()
    for held, row in zip(failing.catalogue.holdings, tables.meet, strict=True):
        for kept, left in zip(failing.catalogue.profile_sets, row, strict=True):
            assert failing.catalogue.holdings[left] == held & kept


def test_too_many_holdings_are_refused():
    document = minimal()
    names = [f"v{number}" for number in range(13)]
    document["forest"] = [{"name": name, "depth_tokens": 10, "bytes": 1} for name in names]
    document["request_types"][0]["path"] = document["request_types"][1]["path"] = "v0"
    document["profiles"] = [{"name": "none"}] + [
        {"name": f"p{gone}", "vertices": [name for name in names if name != gone]} for gone in names
    ]
    Scenario(**document)
    document["forest"][0]["lifetime_s"] = 5.0
    with pytest.raises(ScenarioError, match="more than 4096 different sets of vertices"):
        Scenario(**document)


def test_blocks_and_overhead_round_the_memory_of_a_sequence():
    document = changed("hardware.block_tokens", 16)
    del document["hardware"]["runtime_bytes_per_sequence"]
    document["hardware"]["overhead_bytes_per_sequence"] = 7
    # 501 and 201 tokens take 512 and 208: 0.25 * 5120 + 0.75 * 2080 + 7.
    scenario = Scenario(**document)
    assert scenario.runtime_bytes_per_sequence == 2847
    # root: 100 tokens in 7 blocks; leaf: 300 more in 19 blocks.
    assert scenario.state_bytes == (0, 1120, 1120 + 3040)
    # The defaults change nothing.
    document["hardware"] |= {"block_tokens": 1, "overhead_bytes_per_sequence": 0}
    assert Scenario(**document).runtime_bytes_per_sequence == 2760


def test_slots_with_an_lru_cache_are_what_its_budget_leaves():
    scenario = Scenario(**changed("cache", {"kind": "lru", "budget_bytes": 2500}))
    assert scenario.concurrency == (7, 7, 7)
    np.testing.assert_array_equal(scenario.compile().classes.slots, [[7, 7, 7]])


def test_the_network_of_a_mixed_fleet_has_the_mean_figures_of_its_nodes():
    scenario = Scenario(**mixed())
    network = scenario.tiered_network()
    assert network.density_per_km2 == pytest.approx(5.0 * 0.8)
    assert scenario.fleet_memory_bytes == pytest.approx(5 * 10_000 + 3 * 4500)
    assert scenario.concurrency == (7, 6, 6)  # (5 * 10 + 3 * 3) / 8, (5 * 9 + 3 * 2) / 8, 6
    np.testing.assert_allclose(network.decode_occupancy_s, (0.5 * 5 + 0.25 * 3) / 8)
    cold, shallow = [0.5, 0.2], [0.4, 0.1]
    small_cold = [1.0 + 0.25, 0.4 + 0.04]
    small_shallow = [0.8 + 1e-6 * (500**2 - 100**2), 0.3 + 0.03]
    expected = [
        (5 * np.array(cold) + 3 * np.array(small_cold)) / 8,
        (5 * np.array(shallow) + 3 * np.array(small_shallow)) / 8,
        [0.1, 0.1],
    ]
    np.testing.assert_allclose(network.prefill_s, expected)
    assert network.servable is not None
    assert network.servable.all()


def test_the_network_knows_where_a_model_is_missing():
    servable = Scenario(**with_model()).tiered_network().servable
    np.testing.assert_array_equal(servable, [[False, True], [False, True], [True, True]])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("nodes.classes.0.share", 0.4, r"nodes.classes: the shares add up to 0.9; they must"),
        ("nodes.classes.1.name", "big", r"nodes.classes: name 'big' stands twice"),
        (
            "nodes.classes",
            [{"name": "mast", "share": 1.0, "gpu": False}],
            r"nodes.classes: none of mast has a GPU",
        ),
        (
            "nodes.classes.0",
            {"name": "big", "share": 0.5, "gpu": False, "offers": ["x"]},
            r"nodes.classes.big: gpu = False: a class without GPU has neither hardware nor offers",
        ),
        ("nodes.classes.0.offers", [], r"requires = 'adapter': no class of nodes.classes offers"),
        (
            "nodes.classes.1.hardware.memory_bytes",
            1499,
            r"nodes.classes.small: no profile fits beside one sequence",
        ),
        (
            "hardware.memory_bytes",
            4999,
            r"concurrency of profile 'deep' is 0: state 4e-06 GB \+ one sequence 1e-06 GB exceed "
            r"the usable memory 5e-06 GB of every class",
        ),
        (
            "initial.mix",
            {"deep": 0.7, "none": 0.3},
            r"initial.mix: 0.7 of the nodes with a GPU start with 'deep' .* only 0.625 of them",
        ),
        ("service", {"kind": "engine"}, r"hardware.decode.kind = 'occupancy': service.kind = 'en"),
    ],
)
def test_refusals_of_mixed_fleets(path, value, message):
    document = mixed()
    document["request_types"][0]["requires"] = "adapter"
    *above, last = path.split(".")
    here = document
    for key in above:
        here = here[int(key)] if isinstance(here, list) else here[key]
    here[int(last) if isinstance(here, list) else last] = value
    with pytest.raises(ScenarioError, match=message):
        Scenario(**document)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("admission", {"spill": "origin"}, "admission.spill = 'origin': there is no origin"),
        (
            "admission",
            {"redirect": True, "ewma_s": 5.0},
            "admission.redirect = true: no node ever closes.*give admission.node or admission.tier",
        ),
        (
            "failures",
            {"origin": {"mean_up_s": 5, "mean_down_s": 5}},
            "failures.origin: there is no origin",
        ),
        (
            "failures",
            {"outages": [{"what": "origin", "begin_s": 1, "end_s": 2}]},
            "failures.outages: what = 'origin', but there is no origin",
        ),
        (
            "failures",
            {"outages": [{"what": "node", "node": 3, "begin_s": 1, "end_s": 2}]},
            r"failures.outages.0.node = 3: must be below 3, the most nodes",
        ),
        ("cache", {"kind": "lru", "budget_bytes": 9001}, r"cache.budget_bytes 9e-06 GB \+ one seq"),
        ("forest.0.weights", True, "forest.root: weights = True: a model's weights are a root"),
        ("hardware.overhead_bytes_per_sequence", 5, "overhead_bytes_per_sequence = 5: is added"),
        ("request_types.0.requires", "x", "ok"),
    ],
)
def test_refusals_between_blocks(path, value, message):
    document = changed(path, value)
    if message == "ok":  # without classes every node offers every tag
        assert Scenario(**document).needs_full
        return
    with pytest.raises(ScenarioError, match=message):
        Scenario(**document)


@pytest.mark.parametrize("block", ["weights", "fetch"])
def test_an_lru_cache_neither_holds_weights_nor_fetches(block):
    document = with_model() if block == "weights" else minimal()
    document["cache"] = {"kind": "lru", "budget_bytes": 100}
    if block == "fetch":
        document["fetch"] = {"controller": "always"}
    with pytest.raises(ScenarioError, match=r"cache.kind = 'lru'"):
        Scenario(**document)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("routing", {"kind": "lmetric"}),
        ("routing", {"kind": "load_aware", "margin": {"moving_s": 0.1}}),
        ("telemetry", {"catalogue_period_s": 1.0}),
        ("admission", {"node": {"close_above": 2.0, "reopen_below": 1.0}}),
        ("backhaul", {"rate_bytes_per_s": 500.0, "sharing": "shared"}),
        ("backhaul", {"rate_bytes_per_s": 500.0, "compression": 2.0}),
        ("fetch", {"controller": "joint"}),
        ("cache", {"kind": "lru", "budget_bytes": 100}),
        ("failures", {"nodes": {"mean_up_s": 5, "mean_down_s": 5}}),
        ("forest.0.lifetime_s", 5.0),
    ],
)
def test_what_takes_the_full_event_loop(path, value):
    assert not Scenario(**minimal()).needs_full
    scenario = Scenario(**changed(path, value))
    assert scenario.needs_full
    assert Scenario(**scenario.document()).needs_full


def test_a_hardware_preset_replaces_the_hardware_of_a_class():
    document = mixed()
    changes = {"nodes.classes.small.hardware.preset": "llama-3.1-8b@l4"}
    gpu = Scenario(**document).with_overrides(changes).nodes.classes[1].hardware
    assert gpu is not None
    assert (gpu.preset, gpu.kv_bytes_per_token) == ("llama-3.1-8b@l4", 131_072)


@settings(max_examples=30)
@given(full_documents())
def test_promises_of_the_tables_hold_for_random_worlds(document):
    scenario = Scenario(**document)
    world, catalogue = scenario.compile(), scenario.catalogue
    tables = world.classes
    held = world.holding_bytes
    C, S, H = len(scenario.node_classes), world.num_profiles, tables.num_holdings
    assert tables.hit_tokens.shape == (C * H, world.num_types)
    assert tables.share.sum() == pytest.approx(1)
    # Nobody serves without a GPU, a tag or a model; whoever serves is paid for what is held.
    for row, hits in enumerate(tables.hit_tokens):
        node_class, holding = scenario.node_classes[row // H], catalogue.holdings[row % H]
        for asked, hit in zip(scenario.request_types, hits, strict=True):
            path = catalogue.forest.path(asked.path)
            models = {vertex.name for vertex in scenario.forest if vertex.weights} & path
            if node_class.can_serve(asked.requires) and models <= holding:
                depth = catalogue.forest.hit_depth(holding, path)
                assert hit == min(depth, asked.input_tokens - 1)
            else:
                assert hit == -1
    assert (tables.hit_tokens.max(axis=0) >= 0).all()
    assert np.isfinite(tables.row_service_rate).all()
    assert (tables.row_service_rate > 0).all()
    assert (held[tables.empty_row % H] == 0).all()
    np.testing.assert_array_equal(
        tables.missing_bytes, held[None, :S] - held[np.maximum(tables.meet, 0)]
    )
    for vertex, left in zip(catalogue.lifetime_vertices, tables.expired.T, strict=True):
        lost = {v.name for v in scenario.forest if vertex in catalogue.forest.path(v.name)}
        for before, after in enumerate(left):
            assert catalogue.holdings[after] == catalogue.holdings[before] - lost
    # State and sequences fit every GPU, and not one sequence more.
    gpu = tables.has_gpu == 1
    used = held[None, :S] + tables.slots[gpu] * tables.sequence_bytes[gpu, None]
    room = tables.usable_bytes[gpu, None]
    assert ((used <= room) | (tables.slots[gpu] == 0)).all()
    assert (used + tables.sequence_bytes[gpu, None] > room).all()


def test_equal_profiles_stay_apart_when_nothing_of_theirs_expires():
    document = with_model()
    document["profiles"].insert(2, {"name": "shallow_too", "vertices": ["root"]})
    expired = Scenario(**document).compile().classes.expired
    np.testing.assert_array_equal(expired[:3], [[0, 0], [1, 0], [2, 0]])  # leaf, root
