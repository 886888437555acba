"""A scenario and its file of recorded requests."""

import json
import pickle

import numpy as np
import pytest
import yaml

from edgegym.world import Scenario
from edgegym.world.errors import ScenarioError
from tests.world.documents import changed

HEADER = "arrival_s,type,input_tokens,output_tokens"
ROWS = ["0,short,300,5", "1,short,200,6", "1,long,400,7", "4,short,900,8"]


@pytest.fixture
def requests(tmp_path):
    path = tmp_path / "requests.csv"
    path.write_text("\n".join([HEADER, *ROWS]) + "\n")
    return path


def replaying(path, **fields):
    return changed("demand.modulations", [{"kind": "trace", "path": str(path), **fields}])


def test_the_table_has_the_types_of_the_scenario(requests):
    world = Scenario(**replaying(requests, keep=0.5, random_start=True)).compile()
    table = world.replay
    assert (table.cycle_s, table.keep, table.repeats, table.random_start) == (
        pytest.approx(4 + 4 / 3),
        0.5,
        True,
        True,
    )
    np.testing.assert_array_equal(table.begin_s, [0, 1, 1, 4])
    np.testing.assert_array_equal(table.type, [1, 1, 0, 1])
    np.testing.assert_array_equal(table.input_tokens, [300, 200, 400, 900])
    np.testing.assert_array_equal(table.output_tokens, [5, 6, 7, 8])
    assert len(Scenario(**changed("name", "plain")).compile().replay.begin_s) == 0


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_scenario_files_find_the_requests_from_anywhere(requests, tmp_path, monkeypatch, suffix):
    """Below the folder of the scenario file the path is relative, so that both can be moved."""
    scenario = Scenario(**replaying(requests))
    write = Scenario.to_yaml if suffix == "yaml" else Scenario.to_json
    read = Scenario.from_yaml if suffix == "yaml" else Scenario.from_json
    write(scenario, tmp_path / f"s.{suffix}")
    written = (tmp_path / f"s.{suffix}").read_text()
    document = yaml.safe_load(written) if suffix == "yaml" else json.loads(written)
    assert document["demand"]["modulations"][0]["path"] == "requests.csv"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert read(tmp_path / f"s.{suffix}") == scenario
    assert read(f"../s.{suffix}").compile().replay.type.tolist() == [1, 1, 0, 1]
    write(scenario, elsewhere / f"s.{suffix}")
    assert str(requests) in (elsewhere / f"s.{suffix}").read_text()
    assert read(elsewhere / f"s.{suffix}") == scenario
    assert Scenario(**replaying("../requests.csv")).compile().replay.type.tolist() == [1, 1, 0, 1]


def test_copies_keep_the_requests(requests):
    scenario = Scenario(**replaying(requests))
    faster = scenario.with_overrides({"demand.rate_per_node": 9.0})
    assert faster.demand.modulations == scenario.demand.modulations
    copied = pickle.loads(pickle.dumps(scenario))
    assert copied == scenario
    np.testing.assert_array_equal(copied.compile().replay.type, scenario.compile().replay.type)


def test_files_of_other_scenarios_are_refused(requests):
    cases = [
        (ROWS[0].replace("short", "odd"), r"has requests of type 'odd'; no .*known: long, short"),
        (
            ROWS[0].replace("short", "long"),
            r"request_types\.long\.share = 0\.25: of the requests of .* it is 0\.5",
        ),
        (
            ROWS[0].replace("300", "99"),
            r"request 1 of .* has 99 input tokens: must be at least the 100 tokens of the path of "
            r"its type 'short'",
        ),
    ]
    for first, message in cases:
        requests.write_text("\n".join([HEADER, first, *ROWS[1:]]) + "\n")
        with pytest.raises(ScenarioError, match=message):
            Scenario(**replaying(requests))


def test_a_missing_file_is_named_with_the_scenario_file(requests, tmp_path):
    Scenario(**replaying(requests)).to_yaml(tmp_path / "s.yaml")
    requests.unlink()
    with pytest.raises(ScenarioError, match=r"s\.yaml: replay file .*requests\.csv: can't be read"):
        Scenario.from_yaml(tmp_path / "s.yaml")


@pytest.mark.parametrize("demand", [3, {"modulations": 3}, {"modulations": [3]}, None])
def test_strange_documents_get_the_usual_errors(tmp_path, demand):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(changed("demand", demand)))
    with pytest.raises(ScenarioError, match="demand"):
        Scenario.from_json(path)


def test_one_trace_at_most(requests):
    document = replaying(requests)
    document["demand"]["modulations"] *= 2
    with pytest.raises(ScenarioError, match="kind 'trace' stands twice"):
        Scenario(**document)
