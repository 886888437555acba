"""Every figure computes, draws, speaks, and says what it should."""

import csv
import io

import numpy as np
import pytest
from PIL import Image

from edgegym.figures import FIGURES, QUICK, Figure, Table, chosen_figures
from edgegym.figures.fig06 import settled_after
from edgegym.figures.fig07 import best_depth, deep_price_bytes, uniform_network
from edgegym.figures.mixes import best_mixes, candidate_mixes
from edgegym.figures.scenario import coverage, paper_network, prefill_load, solved, sweep
from edgegym.figures.style import picture_png
from edgegym.figures.words import percent, small, span

PAPER = [figure for figure in FIGURES if not figure.study]


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def tables() -> dict[str, Table]:
    return {figure.name: figure.compute(QUICK, silent) for figure in PAPER}


def test_figures_3_to_12_are_there():
    assert [figure.name for figure in PAPER] == [f"fig{number:02}" for number in range(3, 13)]
    assert len({figure.name for figure in FIGURES}) == len(FIGURES)


each = pytest.mark.parametrize("figure", PAPER, ids=lambda figure: figure.name)


@each
def test_numbers_are_finite_and_named_with_units(figure: Figure, tables):
    table = tables[figure.name]
    assert len(table) > 1
    for name in table.names:
        if table[name].dtype.kind == "f":
            assert np.isfinite(table[name]).all(), name
    rows = list(csv.reader(io.StringIO(table.to_csv())))
    assert tuple(rows[0]) == table.names
    assert len(rows) == len(table) + 1
    numeric = [name for name in table.names if table[name].dtype.kind == "f"]
    units = ("_s", "_km", "_km2", "_tokens", "_per_s_km2")
    # Whatever is larger than a probability can be, and is no count, has a unit.
    counts = ("iteration", "requests", "slots", "samples", "candidates", "intensity", "coverage")
    for name in numeric:
        if table[name].max() > 1.0 and not any(word in name for word in counts):
            assert name.endswith(units), name


@each
def test_same_effort_same_bits(figure: Figure, tables):
    assert figure.compute(QUICK, silent).to_csv() == tables[figure.name].to_csv()


@each
def test_caption_can_be_written_from_the_file(figure: Figure, tables):
    caption = figure.caption(Table.from_csv(tables[figure.name].to_csv()))
    for text in (caption.paper, caption.here, caption.difference):
        assert len(text) > 20
        assert text.endswith(".")
        assert "nan" not in text
        assert "  " not in text


@each
def test_picture(figure: Figure, tables):
    png = picture_png(figure, Table.from_csv(tables[figure.name].to_csv()), "a stamp")
    assert len(png) < 150_000
    with Image.open(io.BytesIO(png)) as image:
        assert image.format == "PNG"
        assert image.width >= 700
        assert image.info["Description"] == "a stamp"
        colours = image.convert("RGB").getcolors(maxcolors=2**24)
    assert colours is not None
    assert len(colours) > 50


def test_groups_and_names_give_each_figure_once_in_order():
    assert list(chosen_figures(["all"])) == PAPER
    names = [figure.name for figure in chosen_figures(["fig12", "fig03", "fig12"])]
    assert names == ["fig03", "fig12"]
    assert chosen_figures(["fig05", "all"]) == chosen_figures(["all"])
    with pytest.raises(ValueError, match="figure = 'fig13': must be one of fig03, fig04"):
        chosen_figures(["fig13"])


def test_fig03_agrees_with_the_costs_of_both_nodes(tables):
    net = paper_network()
    table = tables["fig03"]
    for name, q in (("short", 0), ("long", 1)):
        rows = table.where(request_type=name)
        near = net.radio_xi * rows["distance_to_uncached_node_km"] ** 2 + net.prefill_s[0, q]
        deep = net.radio_xi * rows["farthest_deep_node_km"] ** 2 + net.prefill_s[2, q]
        np.testing.assert_allclose(deep + rows["wait_at_deep_node_s"], near, atol=1e-9)


def test_fig04_errors_are_noise_and_fall_with_samples(tables):
    table = tables["fig04"]
    for label in ("few", "many"):
        gap = np.abs(table[f"association_{label}_samples"] - table["association_theory"])
        assert (gap < 5.0 * table[f"standard_error_{label}_samples"]).all()
    assert table["standard_error_many_samples"].max() < table["standard_error_few_samples"].min()
    for kind in table.distinct("request_type"):
        assert table.where(request_type=kind)["association_theory"].sum() == pytest.approx(1.0)


def test_fig05_gap_is_noise(tables):
    table = tables["fig05"]
    assert np.abs(table["gap"]).max() < 6.0 * table["standard_error"].max()
    assert np.abs(table["gap"]).max() < 0.03
    assert (np.diff(table["probability_theory"]) > 0).all()
    assert (np.diff(table["probability_simulated"]) >= 0).all()


@pytest.mark.slow
def test_fig05_gap_with_ten_million_requests():
    import dataclasses

    (figure,) = chosen_figures(["fig05"])
    effort = dataclasses.replace(QUICK, requests=10_000_000)
    assert np.abs(figure.compute(effort, silent)["gap"]).max() <= 2e-3


@pytest.mark.slow
def test_fig04_error_with_two_million_samples():
    import dataclasses

    (figure,) = chosen_figures(["fig04"])
    table = figure.compute(dataclasses.replace(QUICK, samples=2_000_000), silent)
    gap = table["association_many_samples"] - table["association_theory"]
    assert np.abs(gap).max() <= 1.5e-3


def test_fig06_settles_at_the_baseline_and_cycles_beyond(tables):
    calm = tables["fig06"].where(request_intensity_per_s_km2=3.0)
    wild = tables["fig06"].where(request_intensity_per_s_km2=4.0)
    steps = settled_after(calm)
    assert steps is not None
    assert 0 < steps < 15
    assert settled_after(wild) is None
    assert settled_after(calm) == settled_after(Table.from_csv(calm.to_csv()))
    assert calm["damping_limit"][0] == pytest.approx(0.90, abs=0.005)
    assert wild["damping_limit"][0] == pytest.approx(0.495, abs=0.001)


def test_fig06_path_follows_the_damped_map(tables):
    calm = tables["fig06"].where(request_intensity_per_s_km2=3.0)
    path = np.array([calm[f"wait_{name}_s"] for name in ("uncached", "shallow", "deep")]).T
    assert not path[0].any()
    # From zero, the first step is half of the waits that queue-unaware routing induces.
    induced = solved(paper_network(), "queue_unaware")[0].mean_wait_s
    np.testing.assert_allclose(path[1], 0.5 * induced, rtol=1e-9)


def test_fig07_best_depth_falls_with_the_load(tables):
    table = tables["fig07"]
    for price in table.distinct("state_gib_per_1024_tokens"):
        depths = [best_depth(table, load, price)[0] for load in (2.0, 4.0, 8.0)]
        assert depths[0] >= depths[1] >= depths[2]
        assert depths[0] > depths[2]


def test_fig07_state_and_slots_share_the_memory():
    gib = 2**30
    assert deep_price_bytes() == pytest.approx(7 * gib / 3072)
    net = uniform_network(2.0, 3072.0, deep_price_bytes())
    assert net is not None
    assert net.concurrency.tolist() == [9]
    assert net.hit_tokens.tolist() == [[1023.0, 3072.0]]
    empty = uniform_network(2.0, 0.0, deep_price_bytes())
    assert empty is not None
    assert empty.concurrency.tolist() == [16]
    assert uniform_network(2.0, 4095.0, 4 * deep_price_bytes()) is None


def test_fig08_bounds_enclose_the_load_aware_fleet(tables):
    table = tables["fig08"]
    assert (table["coverage_load_aware"] <= table["coverage_without_queues"] + 1e-12).all()
    limits = [table[f"{name}_intensity_per_s_km2"][0] for name in ("critical", "lp", "capacity")]
    assert limits == pytest.approx([10.66, 10.72, 16.9], abs=0.05)
    below = table["request_intensity_per_s_km2"] < limits[0]
    assert (table["stable_load_aware"] == below).all()
    assert table.value("stable_queue_unaware", request_intensity_per_s_km2=4.0) == 0.0
    assert table.value("stable_load_aware", request_intensity_per_s_km2=4.0) == 1.0


def test_prefill_work_balances_over_the_fleet():
    net = paper_network()
    equilibrium, performance = solved(net)
    cold = float(net.type_probabilities @ net.cold_prefill_s)
    done = float(net.tier_density @ prefill_load(net, equilibrium))
    saved = performance.offloading_ratio
    assert done == pytest.approx(net.request_intensity * cold * (1.0 - saved))
    assert prefill_load(net, equilibrium).max() == pytest.approx(2.0, abs=0.1)


def test_fig09_serves_every_request_once(tables):
    table = tables["fig09"]
    for column in ("request_share", "long_request_share"):
        total = sum(table[f"{column}_{name}"] for name in ("uncached", "shallow", "deep"))
        np.testing.assert_allclose(total, 1.0)
    assert (np.diff(table["offloading_ratio_long"]) < 0).all()
    assert (np.diff(table["utilization_deep"]) > 0).all()


def test_candidates_are_a_grid_under_the_cap():
    mixes = candidate_mixes(0.05, 0.2)
    assert len(mixes) == sum(21 - deep for deep in range(5))
    assert len({tuple(mix) for mix in mixes}) == len(mixes)
    for mix in mixes:
        assert mix.sum() == pytest.approx(1.0)
        assert mix.min() >= 0.0
        assert mix[2] <= 0.2


def test_best_mix_is_no_worse_than_any_candidate():
    net = paper_network(request_intensity=7.0)
    (best,) = best_mixes(paper_network(), np.array([7.0]), 0.25, 0.25, silent)
    values = [coverage(net.with_mix(mix)) for mix in candidate_mixes(0.25, 0.25)]
    assert best.coverage == pytest.approx(max(values))
    assert best.candidates == len(values)
    assert best.stable


def test_fig10_holds_the_cap_and_moves_to_uncached(tables):
    table = tables["fig10"]
    assert table["share_deep"] == pytest.approx(0.2)
    light = table.where(request_intensity_per_s_km2=3.0)
    heavy = table.where(request_intensity_per_s_km2=9.0)
    assert light["share_shallow"][0] > light["share_uncached"][0]
    assert heavy["share_shallow"][0] < heavy["share_uncached"][0]
    assert table["coverage_best_mix"][1:] == pytest.approx(
        np.minimum.accumulate(table["coverage_best_mix"])[1:]
    )


def test_fig11_adapted_is_never_behind_the_preset_mix(tables):
    table = tables["fig11"]
    assert (table["coverage_adapted"] >= table["coverage_fixed"] - 1e-9).all()
    assert (table["coverage_adapted_larger_cap"] >= table["coverage_adapted"] - 1e-9).all()


def test_sweeps_hold_what_they_must():
    assert sweep(0.0, 1.0, 3, including=[0.3, 0.5]).tolist() == [0.0, 0.3, 0.5, 1.0]


@pytest.mark.parametrize(("value", "text"), [(0.0021, "0.0021"), (1e-7, "less than 0.0001")])
def test_small_numbers_are_readable(value, text):
    assert small(value) == text


def test_shares_are_whole_percent():
    assert percent(0.796) == "80 %"


def test_a_range_of_one_value_is_that_value():
    assert span(np.array([0.2, 0.2])) == "0.20"
    assert span(np.array([0.0, 0.8, 0.2])) == "0.00 to 0.80"
