import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from edgegym.traces import BuildOptions, TraceError, read_trace, scenario_from_trace
from edgegym.traces.trace import Trace
from edgegym.world import Scenario, ScenarioError
from tests.traces.sample import ROOTS, azure_lines, mooncake_lines, request, write_lines


def check(scenario, report):
    """What every built scenario promises."""
    assert math.fsum(item.share for item in scenario.request_types) == pytest.approx(1.0)
    assert scenario.profile_names[0] == "uncached"
    assert scenario.profiles[0].vertices == ()
    assert 2 <= len(scenario.profiles) <= report.options.profiles
    assert len(scenario.request_types) <= report.options.types
    assert len(scenario.family_names) <= report.options.families
    assert len(scenario.family_names) == report.num_families
    assert min(scenario.concurrency) >= 1
    assert [load.slots for load in report.loads] == list(scenario.concurrency)
    depth = {vertex.name: vertex.depth_tokens for vertex in scenario.forest}
    parent = {vertex.name: vertex.parent for vertex in scenario.forest}
    for item in scenario.request_types:
        assert item.path is None or depth[item.path] < item.input_tokens
        assert (item.path is None) == (item.family == "rest")
    for profile in scenario.profiles:
        held = set(profile.vertices)
        assert all(parent[name] is None or parent[name] in held for name in held)
    sets = [frozenset(profile.vertices) for profile in scenario.profiles]
    assert len(set(sets)) == len(sets)
    world = scenario.compile()
    assert (world.hit_tokens <= world.input_tokens - 1).all()
    size, hits = scenario.state_bytes, world.hit_tokens
    for s in range(len(sets)):
        for t in range(len(sets)):
            no_worse = size[t] <= size[s] and (hits[t] >= hits[s]).all()
            assert s == t or not (no_worse and (size[t] < size[s] or (hits[t] > hits[s]).any()))
    kv = scenario.hardware.kv_bytes_per_token
    tokens = [
        item.share * (item.input_tokens + item.output_tokens) for item in scenario.request_types
    ]
    assert scenario.runtime_bytes_per_sequence == math.ceil(kv * math.fsum(tokens))
    assert scenario.runtime_bytes_per_sequence == report.runtime_bytes


def test_mooncake(mooncake_file, tmp_path):
    trace = read_trace(mooncake_file)
    scenario, report = scenario_from_trace(trace)
    check(scenario, report)
    assert scenario.demand.rate_per_node == pytest.approx(trace.rate_per_s / 25)
    assert report.dropped_share == 0.0
    share = np.array([item.share for item in scenario.request_types])
    inputs = np.array([item.input_tokens for item in scenario.request_types])
    outputs = np.array([item.output_tokens for item in scenario.request_types])
    assert share @ inputs == pytest.approx(trace.input_tokens.mean(), abs=0.51)
    assert share @ outputs == pytest.approx(trace.output_tokens.mean(), abs=0.51)
    cold, best = report.idle_attainment
    assert 0.2 < cold < best < 1.0
    assert 0 < report.chosen_token_share <= report.shared_token_share < 1
    # A mean profile can be moved every two epochs, and the largest one at once.
    assert scenario.migration.burst_bytes >= max(scenario.state_bytes)
    assert all(name in scenario.description for name in (mooncake_file.name, "Dropped", "Assumed"))
    path = tmp_path / "scenario.yaml"
    scenario.to_yaml(path)
    assert Scenario.from_yaml(path) == scenario


def test_system_prompts_become_vertices_families_and_profiles(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(600)))
    scenario, report = scenario_from_trace(trace)
    check(scenario, report)
    assert report.prefix_share > 0.95
    roots = [vertex for vertex in scenario.forest if vertex.parent is None]
    assert {vertex.depth_tokens // 512 for vertex in roots} == set(ROOTS)
    # All three are so hot that the profile for everybody holds them.
    shared = next(profile for profile in scenario.profiles if profile.name == "shared_50")
    assert {vertex.name for vertex in roots} <= set(shared.vertices)


def test_azure_needs_the_assumption_and_records_it(azure_file):
    trace = read_trace(azure_file)
    with pytest.raises(
        TraceError, match=r"azure traces have lengths but no prefixes.*--shared-pre"
    ):
        scenario_from_trace(trace)
    scenario, report = scenario_from_trace(trace, BuildOptions(shared_prefix_tokens=700))
    check(scenario, report)
    (root,) = scenario.forest
    assert root.depth_tokens == 700
    reusing = sum(item.share for item in scenario.request_types if item.path is not None)
    assert reusing == pytest.approx((trace.input_tokens > 700).mean())
    assert "assumed, the trace has none: every prompt longer than 700" in scenario.description
    assert any("little to decide" in warning for warning in report.warnings())


def test_requests_that_do_not_fit_are_dropped_and_counted(tmp_path):
    lines = [request(10 * k, 2000, 5, [1, 2, 3, 100 + k]) for k in range(8)]
    # An L4 has 4.29 GiB for KV: 35,143 tokens; output counts too.
    lines.append(request(100, 30_000, 6000, list(range(200, 259))))
    lines.append(request(110, 30_000, 5000, list(range(300, 359))))
    trace = read_trace(write_lines(tmp_path / "t", lines))
    scenario, report = scenario_from_trace(trace, BuildOptions(hardware="llama-3.1-8b@l4"))
    check(scenario, report)
    assert report.dropped_share == pytest.approx(0.1)
    assert "10.00% of 10 requests" in report.choices()["Dropped"]
    assert max(item.input_tokens for item in scenario.request_types) == 30_000
    share = [item.share for item in scenario.request_types if item.path is None]
    assert share == [pytest.approx(1 / 9)]


def test_much_that_is_dropped_is_warned_of(tmp_path):
    lines = [request(10 * k, 2000, 5, [1, 2, 3, 100 + k]) for k in range(8)]
    lines += [
        request(100 + k, 90_000, 5, list(range(1000 * k, 1000 * k + 176))) for k in range(2, 4)
    ]
    trace = read_trace(write_lines(tmp_path / "t", lines))
    _, report = scenario_from_trace(trace, BuildOptions(hardware="llama-3.1-8b@l4"))
    assert report.warnings()[0].startswith("20.0% of the requests do not fit")


def test_nothing_fits(tmp_path):
    lines = [request(0, 90_000, 5, list(range(176)))]
    trace = read_trace(write_lines(tmp_path / "t", lines))
    with pytest.raises(
        TraceError, match=r"no request fits: the smallest needs 11\.8 GB .* 4\.61 GB"
    ):
        scenario_from_trace(trace, BuildOptions(hardware="llama-3.1-8b@l4"))


def test_nothing_is_shared(tmp_path):
    lines = [request(k, 1025, 5, [3 * k, 3 * k + 1, 3 * k + 2]) for k in range(5)]
    trace = read_trace(write_lines(tmp_path / "t", lines))
    with pytest.raises(TraceError, match=r"no prefix that two prompts share .* nothing to place"):
        scenario_from_trace(trace)


def test_overload_is_told_with_numbers(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines()))
    _, light = scenario_from_trace(trace)
    assert not any("Unstable" in warning for warning in light.warnings())
    scenario, heavy = scenario_from_trace(trace, BuildOptions(rate_per_node=100.0))
    assert scenario.demand.rate_per_node == 100.0
    factor = 100.0 / light.rate_per_node
    assert heavy.best_load.utilization > 1
    uncached = heavy.loads[0].utilization
    assert uncached == pytest.approx(factor * light.loads[0].utilization)
    assert any(f"load is {uncached:.2f} of the slots" in text for text in heavy.warnings())
    assert "Unstable" in scenario.description


def test_load_is_the_scenario_s_own(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines()))
    scenario, report = scenario_from_trace(trace)
    world = scenario.compile()
    for s, load in enumerate(report.loads):
        busy = scenario.demand.rate_per_node / world.slot_service_rate[s]
        assert load.utilization == pytest.approx(busy / scenario.concurrency[s])


def test_a_window_uses_its_own_requests_and_rate(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines()))
    inside = (trace.arrival_s >= 10) & (trace.arrival_s < 30)
    scenario, report = scenario_from_trace(trace, BuildOptions(start_s=10.0, window_s=20.0))
    check(scenario, report)
    assert report.window_requests == inside.sum()
    spread = np.ptp(trace.arrival_s[inside])
    assert scenario.demand.rate_per_node == pytest.approx((inside.sum() - 1) / spread / 25)
    assert "from 10 s on within 20 s" in scenario.description
    with pytest.raises(TraceError, match="no request between start_s = 9999"):
        scenario_from_trace(trace, BuildOptions(start_s=9999.0))


def test_one_instant_has_no_rate(tmp_path):
    lines = [request(0, 1025, 5, [1, 2, 3])] * 4
    trace = read_trace(write_lines(tmp_path / "t", lines))
    with pytest.raises(TraceError, match="no rate to measure; give rate_per_node"):
        scenario_from_trace(trace)
    check(*scenario_from_trace(trace, BuildOptions(rate_per_node=1.0)))


def test_assumption_for_a_trace_with_prefixes_is_refused(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(20)))
    with pytest.raises(TraceError, match="shared_prefix_tokens = 512: only for traces without"):
        scenario_from_trace(trace, BuildOptions(shared_prefix_tokens=512))
    azure = read_trace(write_lines(tmp_path / "a", azure_lines(20)))
    with pytest.raises(TraceError, match="shared_prefix_tokens = 5000: no prompt is longer"):
        scenario_from_trace(azure, BuildOptions(shared_prefix_tokens=5000))


def test_unknown_hardware(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(20)))
    with pytest.raises(ScenarioError, match=r"hardware\.preset = 'abacus'.*llama-3\.1-8b@l40s"):
        scenario_from_trace(trace, BuildOptions(hardware="abacus"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("types", 1),
        ("profiles", 1),
        ("families", 0),
        ("nodes", 0),
        ("nodes", 10**20),
        ("rate_per_node", 1e7),
        ("rate_per_node", 0.0),
        ("rate_per_node", float("nan")),
        ("ttft_target_s", -1.0),
        ("shared_prefix_tokens", 0),
        ("window_s", 0.0),
        ("start_s", -1.0),
        ("side_km", float("inf")),
    ],
)
def test_bad_options(field, value):
    with pytest.raises(ValueError, match=f"{field} = {value}: must be"):
        BuildOptions(**{field: value})


@st.composite
def traces(draw):
    """Prompts over a small alphabet of blocks, so that they share beginnings of all kinds."""
    prompts = draw(
        st.lists(
            st.tuples(
                st.lists(st.integers(0, 2), min_size=0, max_size=12),
                st.integers(1, 512),
                st.integers(0, 2000),
                st.integers(0, 3),
            ),
            min_size=2,
            max_size=40,
        )
    )
    blocks = [[*prompt, 9] for prompt, _, _, _ in prompts]
    lengths = [512 * len(prompt) + tail for prompt, tail, _, _ in prompts]
    return Trace(
        path="drawn",
        source_format="mooncake",
        arrival_s=np.cumsum([gap for *_, gap in prompts], dtype=np.float64),
        input_tokens=np.array(lengths),
        output_tokens=np.array([output for _, _, output, _ in prompts]),
        block_ids=np.concatenate(blocks),
        block_start=np.cumsum([0, *map(len, blocks)]),
    )


@given(
    traces(),
    st.integers(2, 12),
    st.integers(2, 6),
    st.integers(2, 8),
    st.sampled_from(["llama-3.1-8b@l4", "llama-3.1-8b@l40s", "qwen2.5-3b@orin"]),
)
def test_any_trace_with_common_beginnings_gives_a_valid_scenario(
    trace, types, families, profiles, hardware
):
    options = BuildOptions(
        types=types,
        families=families,
        profiles=profiles,
        hardware=hardware,
        rate_per_node=0.1,
        nodes=4,
    )
    try:
        scenario, report = scenario_from_trace(trace, options)
    except TraceError as error:
        assume("nothing to place" not in str(error))
        raise
    check(scenario, report)


def test_engines_serve_where_they_are_asked_for(tmp_path):
    trace = read_trace(write_lines(tmp_path / "t", mooncake_lines(600)))
    slots, _ = scenario_from_trace(trace, BuildOptions(rate_per_node=40.0))
    scenario, report = scenario_from_trace(
        trace, BuildOptions(service="engine", rate_per_node=40.0)
    )
    assert (slots.service.kind, scenario.service.kind) == ("lognormal", "engine")
    assert scenario.needs_full
    assert "Service: engines, one prefill server for each GPU" in scenario.description
    assert scenario.request_types == slots.request_types
    assert any("prompts queue without bound" in words for words in report.warnings())
    assert any("side by side" in words for words in slots.description.split("."))
    with pytest.raises(ValueError, match="service = 'gpu': must be 'slots' or 'engine'"):
        BuildOptions(service="gpu")
