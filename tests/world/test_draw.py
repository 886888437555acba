"""Scenarios that are drawn for every episode: laws, likeness, files."""

import math
import pickle

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from edgegym.world import (
    Choice,
    Integers,
    LogUniform,
    ScenarioDraw,
    ScenarioError,
    Uniform,
    preset,
)
from edgegym.world.draw import resolve_draw
from edgegym.world.resolve import resolve_scenario

RATE = "demand.rate_per_node"


def samples(draw, count, seed=0):
    generator = np.random.default_rng(seed)
    return [draw.sample(generator) for _ in range(count)]


def test_ranges_may_span_all_numbers():
    law = LogUniform(path="x", low=1e-300, high=1e18)
    assert np.isfinite(law.probes).all()
    assert law.at(0.5) == pytest.approx(1e-141, rel=1e-9)


@given(part=st.floats(0.0, 1.0), low=st.floats(1e-3, 1e3), ratio=st.floats(1.001, 1e3))
def test_ranges_are_inverse_distribution_functions(part, low, ratio):
    ends = {"path": "x", "low": low, "high": low * ratio}
    value = Uniform(**ends).at(part)
    assert (value - low) / (low * ratio - low) == pytest.approx(part, abs=1e-9)
    value = LogUniform(**ends).at(part)
    assert math.log(value / low) / math.log(ratio) == pytest.approx(part, abs=1e-6)


@pytest.mark.parametrize(
    ("law", "mean"),
    [
        (Uniform(path="x", low=1.0, high=3.0), 2.0),
        (LogUniform(path="x", low=1.0, high=4.0), 3.0 / math.log(4.0)),
        (Integers(path="x", low=2, high=5), 3.5),
        (Choice(path="x", options=(1, 2, 6)), 3.0),
    ],
)
def test_draws_have_the_law_s_mean_and_stay_in_range(law, mean):
    generator = np.random.default_rng(1)
    values = np.array([law.draw(generator) for _ in range(4000)])
    assert abs(values.mean() - mean) < 5.0 * values.std() / 4000**0.5
    assert values.min() >= min(law.probes)
    assert values.max() <= max(law.probes)
    assert all(law.number(value) == value for value in values.tolist())


def test_texts_are_reported_by_their_place():
    law = Choice(path="service.kind", options=("exponential", "deterministic"))
    assert law.number("deterministic") == 1


def test_weights_are_the_frequencies():
    draw = ScenarioDraw(scenarios=("stationary", "flash-crowd"), weights=(3.0, 1.0))
    drawn = samples(draw, 2000)
    share = np.mean([one.index for one in drawn])
    assert abs(share - 0.25) < 5.0 * (0.25 * 0.75 / 2000) ** 0.5
    assert {one.scenario.name for one in drawn} == {"stationary", "flash-crowd"}
    assert all(one.numbers == {"scenario": one.index} for one in drawn)


def test_a_draw_is_its_scenario_with_the_drawn_values():
    laws = (
        Uniform(path=RATE, low=2.0, high=5.0),
        Choice(path="service", options=({"kind": "exponential"}, {"kind": "deterministic"})),
    )
    draw = ScenarioDraw(scenarios=("moving-hotspot",), vary=laws)
    one, other = samples(draw, 2)
    assert one != other
    overrides = dict(zip((RATE, "service"), one.values, strict=True))
    assert one.scenario == preset("moving-hotspot").with_overrides(overrides)
    assert one.numbers == {
        "scenario": 0,
        f"scenario.{RATE}": one.values[0],
        "scenario.service": laws[1].options.index(one.values[1]),
    }
    assert draw.drawn(one.index, one.values) == one
    assert not draw.is_fixed
    assert ScenarioDraw(scenarios=("toy",)).is_fixed


def test_the_largest_fleet_counts():
    area = (
        Uniform(path="region.width_km", low=4.0, high=6.0),
        Uniform(path="region.height_km", low=4.0, high=6.0),
    )
    draw = ScenarioDraw(scenarios=("paper",), vary=area)
    corner = {"region.width_km": 6.0, "region.height_km": 6.0}
    assert draw.max_nodes == preset("paper").with_overrides(corner).max_nodes
    assert all(one.scenario.max_nodes <= draw.max_nodes for one in samples(draw, 20))
    count = Integers(path="nodes.count", low=3, high=31)
    assert ScenarioDraw(scenarios=("moving-hotspot",), vary=(count,)).max_nodes == 31


def test_a_fleet_that_is_never_played_does_not_count():
    count = Integers(path="nodes.count", low=3, high=9)
    draw = ScenarioDraw(scenarios=("moving-hotspot",), vary=(count,))
    assert draw.max_nodes == draw.first.scenario.nodes.count == 9
    assert draw.layout_scenario.nodes.count == 25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scenarios": ()}, "scenarios"),
        ({"scenarios": "toy"}, "must be a list of names, files or Scenario objects"),
        ({"scenarios": ("nowhere",)}, "nowhere"),
        (
            {"scenarios": ("moving-hotspot", "toy")},
            r"scenarios\[1\] \('toy'\): profiles differ .* \('hold_a' instead of 'shallow'\)",
        ),
        ({"scenarios": ("toy",), "weights": (1.0, 2.0)}, "weights: 2 for 1 scenarios"),
        ({"scenarios": ("toy",), "weights": (0.0,)}, "weights"),
        ({"scenarios": ("toy",), "reference": "paper"}, "profiles differ from those of 'paper'"),
        (
            {"scenarios": ("toy",), "vary": (Uniform(path="demand.rte", low=1, high=2),)},
            r"scenarios\[0\] \('toy'\) with demand.rte = 1.0: .*unknown key",
        ),
        (
            {"scenarios": ("toy",), "vary": (Uniform(path="nodes.count", low=2, high=5),)},
            "nodes.count = .*integer",
        ),
        (
            {"scenarios": ("toy",), "vary": (Integers(path="nodes.count", low=0, high=5),)},
            "nodes.count = 0",
        ),
        (
            {"scenarios": ("toy",), "vary": (Integers(path="nodes.count", low=1, high=5),) * 2},
            "path 'nodes.count' stands twice",
        ),
        ({"scenario": "toy"}, "scenario: unknown key"),
        ({"scenarios": ("toy", ScenarioDraw(scenarios=("toy",)))}, "got ScenarioDraw$"),
        (
            {
                "scenarios": ("toy",),
                "vary": ({"kind": "uniform", "path": "x", "hgh": 1, "low": 0},),
            },
            "vary.0: high: missing, but required\nhgh: unknown key",
        ),
        (
            {
                "scenarios": (
                    "toy",
                    preset("toy").with_overrides({"objective.kind": "goodput"}),
                )
            },
            r"scenarios\[1\] \('toy'\): objective.kind is 'goodput' instead of 'coverage'",
        ),
        (
            {
                "scenarios": ("toy",),
                "vary": (
                    Uniform(path=RATE, low=1, high=2),
                    Choice(path="demand", options=({"rate_per_node": 1}, {"rate_per_node": 2})),
                ),
            },
            "path 'demand' undoes 'demand.rate_per_node'",
        ),
    ],
)
def test_what_is_no_draw_is_refused(arguments, message):
    with pytest.raises(ScenarioError, match=f"(?s){message}"):
        ScenarioDraw(**arguments)


@pytest.mark.parametrize(
    ("law", "ends"),
    [
        (Uniform, (2.0, 1.0)),
        (Integers, (2, 2)),
        (Integers, (1.5, 2)),
        (LogUniform, (0.0, 1.0)),
        (Uniform, (0.0, 1e400)),
        (Uniform, (math.nan, 1.0)),
        (Uniform, ("1", 2.0)),
        (Integers, (True, 2)),
    ],
)
def test_ranges_must_be_ranges(law, ends):
    with pytest.raises(ScenarioError, match=r"(low|high) = "):
        law(path="x", low=ends[0], high=ends[1])


def test_overrides_apply_to_all():
    draw = ScenarioDraw(
        scenarios=("stationary", "flash-crowd"), vary=(Uniform(path=RATE, low=2.0, high=5.0),)
    )
    shorter = draw.with_overrides({"control.horizon_epochs": 7})
    assert all(one.scenario.control.horizon_epochs == 7 for one in samples(shorter, 4))
    assert draw.with_overrides(None) is draw
    with pytest.raises(ScenarioError, match=f"override '{RATE}': this field is drawn"):
        draw.with_overrides({RATE: 3.0})


@pytest.mark.parametrize(
    ("law", "overrides"),
    [
        (
            Choice(path="service", options=({"kind": "exponential"}, {"kind": "deterministic"})),
            {"service.kind": "exponential"},
        ),
        (Choice(path="service.kind", options=("exponential", "deterministic")), {"service.x": 1}),
        (Integers(path="nodes.count", low=3, high=5), {"nodes.density_per_km2": 2.0}),
    ],
)
def test_overrides_that_a_draw_would_undo_are_refused(law, overrides):
    draw = ScenarioDraw(scenarios=("moving-hotspot",), vary=(law,))
    with pytest.raises(ScenarioError, match=f"would be undone by '{law.path}'"):
        draw.with_overrides(overrides)
    block = {"nodes": preset("moving-hotspot").document()["nodes"] | {"count": 9}}
    assert draw.with_overrides(block).scenarios[0].nodes.count == 9


def test_documents_and_pickles_are_lossless():
    draw = ScenarioDraw(
        scenarios=("toy",),
        weights=(2.0,),
        vary=(Choice(path="nodes.count", options=(2, 5)),),
        reference=preset("toy").with_overrides({"nodes.count": 4}),
    )
    assert ScenarioDraw(**draw.document()) == draw
    assert pickle.loads(pickle.dumps(draw)) == draw
    with pytest.raises(ValueError, match="frozen"):
        draw.weights = None


def test_files(tmp_path):
    preset("toy").with_overrides({"nodes.count": 3}).to_yaml(tmp_path / "three.yaml")
    written = {
        "scenarios": ["toy", "three.yaml"],
        "weights": [1, 2],
        "vary": [{"kind": "uniform", "path": "demand.request_intensity", "low": 1, "high": 1.5}],
    }
    path = tmp_path / "draw.yaml"
    path.write_text(yaml.safe_dump(written))
    draw = resolve_draw(path, {"control.horizon_epochs": 5})
    assert [one.max_nodes for one in draw.scenarios] == [2, 3]
    assert draw.scenarios[1].control.horizon_epochs == 5
    assert resolve_draw(tmp_path / "three.yaml").is_fixed
    with pytest.raises(ScenarioError, match=r"draw.yaml: has 'scenarios', so it is a draw"):
        resolve_scenario(path)
    path.write_text("scenarios: [toy]\nvary: 5\n")
    with pytest.raises(ScenarioError, match=r"scenario file .*draw.yaml: vary"):
        resolve_draw(path)
    path.write_text("scenarios: [toy, other.yaml]\n")
    with pytest.raises(ScenarioError, match=r"draw.yaml: .*other.yaml"):
        resolve_draw(path)


def test_a_draw_of_another_draw_is_refused():
    draw = ScenarioDraw(scenarios=("toy",), vary=(Integers(path="nodes.count", low=2, high=3),))
    for index, values in ((1, (2,)), (0, ()), (-1, (2,))):
        with pytest.raises(ScenarioError, match="is not of this draw"):
            draw.drawn(index, values)
    with pytest.raises(ScenarioError, match="up to 40 nodes"):
        draw.drawn(0, (40,))
