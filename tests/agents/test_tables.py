import json
from pathlib import Path

import pytest

import edgegym
from agents import tables as module
from agents.app import main
from agents.larger_figure import larger_png
from agents.tables import larger, stands, tables


@pytest.fixture
def tiny(config_file, tmp_path, monkeypatch):
    """One table with a trained agent of the two-node world, and what makes it."""
    monkeypatch.setattr(module, "_CONFIGS", tmp_path)
    config_file.rename(tmp_path / "toy.yaml")
    monkeypatch.setattr(module, "TRAINING_STEPS", 80)
    monkeypatch.setattr(module, "CLAIRVOYANT", ())
    monkeypatch.setattr(module, "LEARNED", ("toy",))
    monkeypatch.setattr(module, "LARGER", ())
    monkeypatch.setattr(module, "_NAMED", ("static", "analytic"))
    results, runs = tmp_path / "results", tmp_path / "tables"
    command = ["tables", "-o", str(results), "--runs", str(runs), "--threads", "1"]
    return [*command, "--workers", "1"], results / "learned" / "toy.json", runs


def test_a_missing_table_is_trained_played_and_written_once(tiny, capsys):
    command, file, runs = tiny
    assert main(command) == 0
    assert "table 1 of 1" in capsys.readouterr().err
    document = json.loads(file.read_text())
    assert [row["policy"] for row in document["policies"]] == [
        "static", "analytic", "greedy_lookahead", "learned",
    ]  # fmt: skip
    assert len(document["seeds"]) == 10
    assert any("toy with 2 nodes for 80 steps, seed 7" in text for text in document["remarks"])
    assert (runs / "toy" / "model.zip").is_file()

    written = file.stat().st_mtime_ns
    assert main(command) == 0
    assert "stands" in capsys.readouterr().err
    assert file.stat().st_mtime_ns == written


def test_a_table_of_another_definition_is_made_anew(tiny, capsys, monkeypatch):
    command, file, _ = tiny
    assert main(command) == 0
    monkeypatch.setattr(module, "_NAMED", ("static",))
    capsys.readouterr()
    assert main(command) == 0
    assert "playing" in capsys.readouterr().err
    assert "analytic" not in {row["policy"] for row in json.loads(file.read_text())["policies"]}

    monkeypatch.setattr(module, "TRAINING_STEPS", 120)
    assert main(command) == 2
    assert "holds a run of another configuration" in capsys.readouterr().err


def test_training_that_is_interrupted_goes_on(tiny, capsys, monkeypatch, ctrl_c_when):
    command, file, runs = tiny
    monkeypatch.setattr(module, "TRAINING_STEPS", 1_000)
    with ctrl_c_when(lambda: any((runs / "toy" / "tensorboard").glob("*"))):
        assert main(command) == 130
    assert "run the same command again" in capsys.readouterr().err
    assert not file.exists()
    assert main(command) == 0
    assert file.is_file()


def test_presets_without_a_table_are_refused(capsys):
    assert main(["tables", "--only", "nowhere"]) == 2
    assert "--only nowhere: has no published table" in capsys.readouterr().err


def test_larger_fleets_keep_density_load_and_budget_per_node():
    preset = edgegym.preset("moving-hotspot")
    assert larger(preset, 25) == preset
    world = larger(preset, 400)
    assert world.density_per_km2 == pytest.approx(preset.density_per_km2)
    assert world.compile().mean_rate_per_s == pytest.approx(16 * preset.compile().mean_rate_per_s)
    assert world.migration.budget_bytes_per_s / 400 == pytest.approx(
        preset.migration.budget_bytes_per_s / 25
    )
    assert world.migration.burst_bytes == 16 * preset.migration.burst_bytes
    assert world.control.moves_per_epoch == 16
    before, after = preset.demand.modulations[0], world.demand.modulations[0]
    assert (after.sigma_km, after.orbit_radius_km) == pytest.approx(
        (4 * before.sigma_km, 4 * before.orbit_radius_km)
    )
    assert (after.concentration, after.period_s) == (before.concentration, before.period_s)


def test_tables_are_of_their_presets_and_have_paths_of_their_own():
    made = list(tables(None, module.KINDS))
    assert len({table.path for table in made}) == len(made)
    assert all(table.scenario.name in table.path.stem for table in made)
    only = list(tables(("flash-crowd",), ("learned",)))
    assert [str(table.path) for table in only] == ["learned/flash-crowd.json"]


RESULTS = Path(__file__).parents[2] / "docs" / "results"


@pytest.mark.parametrize(
    "table",
    [table for table in tables(None, module.KINDS) if (RESULTS / table.path).is_file()],
    ids=lambda table: str(table.path),
)
def test_committed_tables_are_of_their_definition(table):
    remarks = () if table.agent is None else (module._training_remark(table.agent),)
    assert stands(RESULTS / table.path, table, remarks)


def test_nothing_else_is_committed():
    committed = {path.relative_to(RESULTS) for path in RESULTS.rglob("*.json")}
    assert committed <= {table.path for table in tables(None, module.KINDS)}


def test_figure_of_larger_fleets():
    interval = {"low": 0.7, "high": 0.9, "method": "BCa"}
    none = {"low": None, "high": None, "method": "one seed"}
    rows = [
        {"policy": "static", "coverage": 0.6, "coverage_interval": none},
        {"policy": "analytic_local", "coverage": 0.8, "coverage_interval": interval},
        {"policy": "learned", "coverage": 0.85, "coverage_interval": interval},
    ]
    rows = [row | {"difference": 0.0, "difference_interval": none} for row in rows]
    documents = [
        {
            "reference": "analytic_local",
            "policies": rows,
            "seeds": [1, 2],
            "scenario": {
                "name": "toy",
                "nodes": {"count": nodes},
                "control": {"horizon_epochs": 3},
            },
        }
        for nodes in (25, 100)
    ]
    assert larger_png(documents).startswith(b"\x89PNG")
