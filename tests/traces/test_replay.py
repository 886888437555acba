"""From a trace to a scenario that replays it."""

import numpy as np
import pytest

from edgegym.traces import (
    BuildOptions,
    build_from_trace,
    read_trace,
    scenario_from_trace,
    write_replaying_scenario,
)
from edgegym.world import Scenario
from tests.traces.sample import mooncake_lines, write_lines


@pytest.fixture
def build(tmp_path):
    path = write_lines(tmp_path / "small.jsonl", mooncake_lines(400))
    return build_from_trace(read_trace(path), BuildOptions(types=16))


def test_each_request_has_the_type_that_it_was_counted_in(mooncake_file):
    trace = read_trace(mooncake_file)
    build = build_from_trace(trace)
    assert build.scenario == scenario_from_trace(trace)[0]
    requests, types = build.requests, build.scenario.request_types
    np.testing.assert_array_equal(requests.input_tokens, trace.input_tokens)
    np.testing.assert_array_equal(requests.output_tokens, trace.output_tokens)
    depth = {item.name: item.depth_tokens for item in build.scenario.forest}
    for item in types:
        own = requests.type_index == requests.type_names.index(item.name)
        assert own.mean() == pytest.approx(item.share, rel=1e-12)
        assert round(requests.input_tokens[own].mean()) == item.input_tokens
        assert item.path is None or requests.input_tokens[own].min() > depth[item.path]
    # The blocks that requests of a type share, by brute force on a few of them.
    assert trace.block_ids is not None
    assert trace.block_start is not None
    for item in types[:8]:
        if item.path is None:
            continue
        own = np.flatnonzero(requests.type_index == requests.type_names.index(item.name))
        blocks = depth[item.path] // trace.block_tokens
        starts = trace.block_start[own]
        first = trace.block_ids[starts[0] : starts[0] + blocks].tolist()
        assert all(trace.block_ids[s : s + blocks].tolist() == first for s in starts)


def test_the_scenario_replays_at_the_recorded_rate(build, tmp_path):
    output = tmp_path / "new" / "my.yaml"
    requests, report = write_replaying_scenario(build, output)
    assert requests == tmp_path / "new" / "my.requests.csv.gz"
    assert sorted(item.name for item in output.parent.iterdir()) == [requests.name, output.name]
    scenario = Scenario.from_yaml(output)
    table = scenario.compile().replay
    rate_per_s = scenario.request_intensity * scenario.region.area_km2
    assert len(table.begin_s) / table.cycle_s == pytest.approx(rate_per_s, rel=1e-12)
    assert report.rate_per_node * 25 == pytest.approx(rate_per_s)
    np.testing.assert_array_equal(table.begin_s, build.requests.arrival_s)
    names = np.array(scenario.type_names)[table.type]
    expected = np.array(build.requests.type_names)[build.requests.type_index]
    np.testing.assert_array_equal(names, expected)
    assert "replayed from my.requests.csv.gz" in scenario.description
    assert "stationary" not in scenario.description
    assert scenario.request_types == build.scenario.request_types
    assert "my.requests.csv.gz" in output.read_text()
    assert str(tmp_path) not in output.read_text()


def test_loads_follow_the_pace(tmp_path):
    path = write_lines(tmp_path / "small.jsonl", mooncake_lines(400))
    given = build_from_trace(read_trace(path), BuildOptions(rate_per_node=0.5))
    report = given.report.replaying("x", 3.0)
    assert report.rate_per_node == 0.5
    assert report.loads == given.report.loads
    measured = build_from_trace(read_trace(path)).report
    doubled = measured.replaying("x", 2 * measured.rate_per_node * 25)
    assert doubled.loads[0].utilization == pytest.approx(2 * measured.loads[0].utilization)


def test_nothing_is_left_when_one_of_the_files_can_not_be_written(build, tmp_path):
    output = tmp_path / "my.json"
    (tmp_path / "my.requests.csv.gz").mkdir()
    with pytest.raises(OSError, match="is a folder"):
        write_replaying_scenario(build, output)
    assert not output.exists()
    assert sorted(path.name for path in tmp_path.glob("*my*")) == ["my.requests.csv.gz"]
