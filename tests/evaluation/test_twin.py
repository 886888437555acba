"""The C++ twin counts what the simulator counts."""

import shutil

import pytest

from edgegym.evaluation.speed import fleet_scenario
from edgegym.evaluation.twin import build_twin, cpp_ratio, twin_window
from edgegym.simulator import Fleet

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no g++")


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return build_twin(tmp_path_factory.mktemp("twin"))


@needs_compiler
@pytest.mark.parametrize(
    ("nodes", "seconds", "overrides"),
    [
        (200, 60.0, {}),
        (1500, 12.0, {"radio.base_s": 0.02}),
        (300, 20.0, {"region.periodic": False, "radio.alpha": 3.1}),
        (300, 20.0, {"demand.rate_per_node": 9.0}),
    ],
)
def test_same_requests_give_the_same_numbers_to_the_digit(program, nodes, seconds, overrides):
    scenario = fleet_scenario(nodes).with_overrides(overrides)
    window = Fleet(scenario, seed=7).advance(seconds)
    assert window.hits > 100
    assert twin_window(program, scenario, 7, seconds) == window
    assert twin_window(program, scenario, 8, seconds) != window


@needs_compiler
@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"routing": {"kind": "nearest"}}, "routing.kind"),
        ({"routing.advertised_wait": "measured"}, "routing.advertised_wait"),
        ({"telemetry.period_s": 1.0}, "telemetry.period_s"),
        ({"service": {"kind": "deterministic"}}, "service.kind"),
        ({"nodes.count": 50}, "nodes.count"),
        (
            {"demand.modulations": [{"kind": "diurnal", "amplitude": 0.5, "period_s": 60.0}]},
            "demand.modulations",
        ),
        (
            {
                "demand.modulations": [
                    {"kind": "mmpp", "burst_level": 2.0, "burst_s": 1.0, "calm_s": 2.0}
                ]
            },
            "demand.modulations",
        ),
    ],
)
def test_worlds_that_the_twin_does_not_know_are_refused(program, overrides, field):
    scenario = fleet_scenario(200).with_overrides(overrides)
    with pytest.raises(ValueError, match=f"{field}: the C\\+\\+ twin only knows"):
        twin_window(program, scenario, 0, 1.0)


def test_without_a_compiler_there_is_no_ratio(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert cpp_ratio([fleet_scenario(200)], 1000, 1) is None
