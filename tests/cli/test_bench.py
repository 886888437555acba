"""``edgegym bench``: what it measures, not how fast this machine is."""

import json
import math
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from edgegym.cli import main
from edgegym.cli.bench import _training_cells
from edgegym.evaluation import learning_speed, speed

TINY = speed.Effort(repeats=1, requests=2_000, episodes=1, solves=2, networks=1)


@pytest.fixture
def tiny(monkeypatch):
    monkeypatch.setattr(speed, "QUICK", TINY)
    monkeypatch.setattr(speed, "FLEET_SIZES", (25, 200))
    monkeypatch.setattr(speed, "FULL_SIZES", (25,))
    monkeypatch.setattr(speed, "_TWIN_SIZES", (200,))
    monkeypatch.setattr(learning_speed, "_STEPS", 8)


def test_json_has_the_published_keys(tiny, capsys):
    assert main(["bench", "--quick", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert set(measured) == {
        "mmc_requests_per_s",
        "fleet_requests_per_s",
        "full_requests_per_s",
        "engine_requests_per_s",
        "lru_requests_per_s",
        "cpp_ratio",
        "peer_requests_per_s",
        "env_steps_per_s",
        "env_requests_per_step",
        "vector_steps_per_s",
        "mobile_env_steps_per_s",
        "mobile_env_ratio",
        "mobile_env_vector_ratio",
        "training_steps_per_s",
        "equilibrium_ms",
        "equilibrium_12x8_ms",
        "equilibrium_40x40_ms",
        "quad_ratio",
        "import_s",
        "first_step_s",
    }
    assert (measured["training_steps_per_s"] is None) == (find_spec("sb3_contrib") is None)
    assert (measured["cpp_ratio"] is None) == (shutil.which("g++") is None)
    peers = measured["peer_requests_per_s"]
    assert set(peers) == {"ciw", "simpy", "plain Python"}
    assert peers["plain Python"] > 1000
    assert (peers["simpy"] is None) == (find_spec("simpy") is None)
    rates = measured["fleet_requests_per_s"]
    assert set(rates) == {"25", "200"}
    full = measured["full_requests_per_s"]
    assert set(full) == {"25"}
    numbers = [
        *rates.values(),
        *full.values(),
        *(v for v in measured.values() if isinstance(v, float)),
    ]
    assert all(math.isfinite(value) and value > 0 for value in numbers)
    assert 0.05 < measured["import_s"] < measured["first_step_s"]
    assert 400 < measured["env_requests_per_step"] < 480
    absent = find_spec("mobile_env") is None
    assert (measured["mobile_env_steps_per_s"] is None) == absent
    assert (measured["mobile_env_ratio"] is None) == absent


def test_table_names_units(tiny, capsys, monkeypatch):
    peers = {"ciw": None, "simpy": 5e4, "plain Python": 3e5}
    measured = speed.Speed(
        mmc_requests_per_s=3.21e6,
        fleet_requests_per_s={"25": 1e6, "20000": 5e5},
        full_requests_per_s={"200": 1.56e6},
        engine_requests_per_s=4.4e5,
        lru_requests_per_s=7.7e5,
        cpp_ratio=0.876,
        peer_requests_per_s=peers,
        env_steps_per_s=4000.4,
        env_requests_per_step=437.5,
        vector_steps_per_s=9000.1,
        mobile_env_steps_per_s=160.0,
        mobile_env_ratio=25.2,
        mobile_env_vector_ratio=56.4,
        training_steps_per_s=3000.2,
        equilibrium_ms=0.14,
        equilibrium_12x8_ms=5.2,
        equilibrium_40x40_ms=61.0,
        quad_ratio=85.4,
        import_s=0.3,
        first_step_s=1.9,
    )
    monkeypatch.setattr(speed, "measure_speed", lambda effort, report: measured)
    assert main(["bench"]) == 0
    shown = capsys.readouterr().out
    for text in (
        "3.21   million requests/s",
        "20,000 nodes",
        "200 nodes, full loop",
        "1.56   million requests/s",
        "200 nodes with engines",
        "0.44   million requests/s",
        "200 nodes with radix caches",
        "0.77   million requests/s",
        "4,000   steps/s",
        "9,000   steps/s",
        "160   steps/s (1/25 and 1/56; other work)",
        "3,000   steps/s",
        "0.14   ms",
        "5.2   ms",
        "85   times as long",
        "C++ twin: 0.88 times",
        "skipped: not installed (extra 'bench')",
        "0.050   million requests/s (1/64)",
    ):
        assert text in shown


def test_training_is_left_out_where_it_is_not_installed(monkeypatch):
    monkeypatch.setattr(learning_speed, "find_spec", lambda name: None)
    assert learning_speed.training_steps_per_s(1) is None
    assert _training_cells(None) == ("–", "skipped: not installed (extra 'sb3')")


def test_sizes_are_those_of_the_published_keys():
    assert speed.FLEET_SIZES == (25, 200, 20_000)
    assert speed.FULL_SIZES == (200, 20_000)


def test_one_node_is_nine_slots_at_82_percent():
    scenario = speed.mmc_scenario()
    network = scenario.tiered_network()
    assert scenario.concurrency == (9,)
    rate = network.request_intensity * scenario.region.area_km2
    assert rate * network.occupancy_s.item() / 9 == pytest.approx(0.82)


@pytest.mark.parametrize("nodes", [25, 20_000])
def test_fleets_have_the_same_load_per_node(nodes):
    scenario = speed.fleet_scenario(nodes)
    world = scenario.compile()
    assert world.max_nodes == nodes
    assert world.base_rate_per_s / nodes == pytest.approx(3.5)
    assert scenario.density_per_km2 == pytest.approx(1.0)
    np.testing.assert_array_equal(world.slots, [16, 12] + [9] * 6)


def test_fleets_with_features_keep_up_with_their_load():
    for scenario in (speed.engine_scenario(200), speed.lru_scenario(200)):
        assert scenario.needs_full
        assert scenario.compile().base_rate_per_s == pytest.approx(200 * 3.5)
