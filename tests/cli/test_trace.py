import pytest

from edgegym.cli import main
from edgegym.cli.trace import inspect, scenario
from edgegym.traces import BuildOptions, TraceError
from edgegym.world import Scenario
from tests.traces.sample import azure_lines, mooncake_lines, write_lines


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def mooncake(tmp_path):
    return write_lines(tmp_path / "small[1].jsonl", mooncake_lines(), compressed=True)


def test_inspect_prints_what_is_in_a_mooncake_trace(mooncake, capsys):
    inspect(mooncake, window_s=5.0, hottest=3)
    shown = capsys.readouterr().out
    for words in ("small[1].jsonl", "300", "in 5 s windows", "p99", "prompt tokens held"):
        assert words in shown
    assert "3 distinct first blocks" in shown
    assert len(shown[shown.index("first block ") :].splitlines()) == 4


def test_inspect_says_that_azure_has_no_prefixes(tmp_path, capsys):
    inspect(write_lines(tmp_path / "small.csv", azure_lines()))
    assert "lengths but no prefixes" in capsys.readouterr().out


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_scenario_writes_what_it_reports(mooncake, tmp_path, capsys, suffix):
    output = tmp_path / f"new folder/my.{suffix}"
    scenario(mooncake, output=output, options=BuildOptions(rate_per_node=0.5, types=16))
    shown = capsys.readouterr().out
    read = Scenario.from_yaml if suffix == "yaml" else Scenario.from_json
    written = read(output)
    assert written.demand.rate_per_node == 0.5
    assert f"{len(written.request_types)} request types" in shown
    assert all(name in shown for name in written.profile_names)
    assert "0.5 requests/s per node as given" in shown
    # The next build replaces the file.
    scenario(mooncake, output=output, options=BuildOptions(rate_per_node=0.25, types=16))
    assert read(output).demand.rate_per_node == 0.25
    assert [path.name for path in output.parent.iterdir()] == [output.name]


def test_replay_writes_a_second_file(mooncake, tmp_path, capsys):
    output = tmp_path / "my.yaml"
    options = ["--types", "16", "--replay"]
    assert main(["trace", "scenario", str(mooncake), "-o", str(output), *options]) == 0
    shown = capsys.readouterr().out
    assert "my.requests.csv.gz" in shown[shown.index("Wrote") :]
    assert "replayed from my.requests.csv.gz" in shown
    assert len(Scenario.from_yaml(output).compile().replay.begin_s) == 300


def test_warnings_are_shown(mooncake, tmp_path, capsys):
    scenario(mooncake, output=tmp_path / "my.yaml", options=BuildOptions(rate_per_node=100.0))
    assert "Warning: Unstable" in capsys.readouterr().out


def test_nothing_is_written_for_bad_input(tmp_path):
    azure = write_lines(tmp_path / "small.csv", azure_lines())
    output = tmp_path / "my.yaml"
    output.write_text("mine")
    with pytest.raises(TraceError, match="--shared-prefix-tokens"):
        scenario(azure, output=output)
    assert output.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my.yaml", "small.csv"]


def test_output_name_is_checked_before_the_trace_is_read(tmp_path):
    with pytest.raises(ValueError, match=r"my\.toml: must end in \.yaml, \.yml or \.json"):
        scenario(tmp_path / "absent", output=tmp_path / "my.toml")


def test_output_that_can_not_be_written(mooncake, tmp_path):
    (tmp_path / "my.yaml").mkdir()
    with pytest.raises(ValueError, match=r"my\.yaml: can't be written: is a folder"):
        scenario(mooncake, output=tmp_path / "my.yaml")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ValueError, match="can't be written"):
        scenario(mooncake, output=blocked / "my.yaml")


def test_from_the_file_to_a_comparison(mooncake, tmp_path, capsys):
    output = str(tmp_path / "my.yaml")
    options = ["--hardware", "llama-3.1-8b@l40s", "--families", "4", "--types", "16"]
    assert main(["trace", "scenario", str(mooncake), "-o", output, *options]) == 0
    short = ["--seeds", "1", "--workers", "1", "--no-progress", "--set", "control.horizon_epochs=3"]
    assert main(["compare", "--scenario", output, "--policy", "static", "uniform", *short]) == 0
    shown = capsys.readouterr().out
    assert "uniform" in shown
    assert "nan" not in shown


def test_bad_input_ends_with_code_2_and_a_message(mooncake, tmp_path, capsys):
    output = tmp_path / "my.yaml"
    assert main(["trace", "scenario", str(mooncake), "-o", str(output), "--types", "1"]) == 2
    assert "types = 1: must be at least 2" in capsys.readouterr().err
    mooncake.write_text("{}")
    assert main(["trace", "scenario", str(mooncake), "-o", str(output)]) == 2
    assert "line 1: key 'timestamp' is missing" in capsys.readouterr().err
    assert main(["trace", "inspect", str(mooncake)]) == 2
    assert not output.exists()
