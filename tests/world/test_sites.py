"""Coordinates of nodes from files: formats, places, and refusals."""

import pytest

from edgegym.world import Scenario, ScenarioError
from edgegym.world.sites import read_sites
from tests.world.documents import changed, minimal


@pytest.mark.parametrize(
    ("text", "sites"),
    [
        ("x_km,y_km\n1,2\n3.5,-4e-1\n", ((1.0, 2.0), (3.5, -0.4))),
        ("1,2\n3,4\n", ((1.0, 2.0), (3.0, 4.0))),
        ("name, y_km , x_km\na,2,1\n\nb,4,3\n", ((1.0, 2.0), (3.0, 4.0))),
        ("kind,x_km,y_km\nsite,1,2\nuser,none,4\nsite,5,6", ((1.0, 2.0), (5.0, 6.0))),
    ],
)
def test_formats(tmp_path, text, sites):
    path = tmp_path / "sites.csv"
    path.write_text(text, encoding="utf-8-sig")
    assert read_sites(str(path)) == sites


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "has 0 sites; must have from 1"),
        ("x_km,y_km\n", "has 0 sites"),
        ("lon,lat\n1,2\n", "has the columns lon, lat; must have x_km and y_km"),
        ("x_km,y_km\n1,2\n3\n", r"row 3: \['3', ''\]: x_km and y_km must be numbers"),
        ("x_km,y_km\n1,nan\n", r"row 2: \['1', 'nan'\]: x_km and y_km must be numbers"),
    ],
)
def test_refusals_name_file_and_row(tmp_path, text, message):
    path = tmp_path / "sites.csv"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=rf"nodes.coordinates_file = '{path}'.*{message}"):
        Scenario(**changed("nodes", {"coordinates_file": str(path)}))


def test_a_missing_file_is_named():
    with pytest.raises(ScenarioError, match=r"^nodes\.coordinates_file = 'none\.csv': No such"):
        Scenario(**changed("nodes", {"coordinates_file": "none.csv"}))


def test_a_saved_scenario_no_longer_needs_the_file(tmp_path, monkeypatch):
    (tmp_path / "sites.csv").write_text("0.5,0.25\n1.5,0.75\n")
    document = changed("nodes", {"coordinates_file": "sites.csv"})
    monkeypatch.chdir(tmp_path)
    scenario = Scenario(**document)
    assert scenario.nodes.coordinates_km == ((0.5, 0.25), (1.5, 0.75))
    assert (scenario.mean_nodes, scenario.max_nodes, scenario.density_per_km2) == (2.0, 2, 1.0)
    (tmp_path / "sites.csv").unlink()
    scenario.to_yaml(tmp_path / "saved.yaml")
    assert Scenario.from_yaml(tmp_path / "saved.yaml") == scenario
    scenario.to_json(tmp_path / "saved.json")
    assert Scenario.from_json(tmp_path / "saved.json") == scenario


def test_the_file_may_stand_beside_the_scenario(tmp_path):
    scenario = Scenario(**minimal())
    (tmp_path / "city").mkdir()
    path = tmp_path / "city" / "scenario.yaml"
    scenario.to_yaml(path)
    path.write_text(path.read_text().replace("count: 3", "coordinates_file: sites.csv"))
    message = r"scenario\.yaml: nodes\.coordinates_file = '.*city.sites\.csv': No such"
    with pytest.raises(ScenarioError, match=message):
        Scenario.from_yaml(path)
    (tmp_path / "city" / "sites.csv").write_text("0.5,0.25\n")
    assert Scenario.from_yaml(path).max_nodes == 1


def test_overrides_of_one_way_to_give_nodes_replace_the_others(tmp_path):
    (tmp_path / "sites.csv").write_text("0.5,0.25\n1.5,0.75\n")
    placed = Scenario(**minimal()).with_overrides(
        {"nodes.coordinates_file": str(tmp_path / "sites.csv")}
    )
    assert placed.max_nodes == 2
    moved = placed.with_overrides({"nodes.origin_km": [0.1, 0.1]})
    assert moved.with_overrides({"nodes.count": 9}).nodes.coordinates_km is None


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ({"coordinates_km": []}, r"coordinates_km = \[\]: must have at least one place"),
        ({"coordinates_km": [[1, 0.5]], "count": 1}, "coordinates: 1 places: give exactly one"),
        ({"coordinates_km": [[1, 0.5]], "max_count": 1}, "max_count = 1: only for a random"),
        (
            {"coordinates_km": [[1, 0.5]], "layout": {"kind": "lattice"}},
            "layout.kind = 'lattice': places are given by coordinates",
        ),
        ({"count": 1, "origin_km": [1, 1]}, r"origin_km = \(1.0, 1.0\): only with coordinates"),
        (
            {"coordinates_km": [[1, 0.5], [0, 1.1]]},
            r"nodes.coordinates_km.1 = \(0.0, 1.1\): outside the region of 2 km x 1 km from "
            r"nodes.origin_km = \(0.0, 0.0\); the places span x 0 to 1 and y 0.5 to 1.1 km",
        ),
        (
            {"count": 2, "layout": {"kind": "matern", "min_distance_km": 0.6}},
            r"nodes.layout.min_distance_km = 0.6: must be at most half the shorter side of a "
            r"torus, 0.5 km",
        ),
        (
            {"density_per_km2": 9, "layout": {"kind": "matern", "min_distance_km": 0.2}},
            r"nodes.layout.min_distance_km = 0.2: allows at most 7.56 nodes per km², 95% of "
            r"1 / \(π r²\), not 9",
        ),
    ],
)
def test_refusals_of_layouts(nodes, message):
    with pytest.raises(ScenarioError, match=message):
        Scenario(**changed("nodes", nodes))
