"""``edgegym solve``."""

import re

import pytest

from edgegym.analytic import evaluate, solve_equilibrium
from edgegym.cli import main
from edgegym.world import preset


def test_prints_the_equilibrium_by_tier(capsys):
    assert main(["solve", "--scenario", "paper"]) == 0
    shown = capsys.readouterr().out
    network = preset("paper").tiered_network()
    equilibrium = solve_equilibrium(network)
    performance = evaluate(network, equilibrium, ttft_target_s=0.8)
    assert f"coverage: share of requests within target   {performance.coverage:.4f}" in shown
    assert "0.6840" in shown  # the published value
    deep = re.search(r"^ deep +(.*)$", shown, re.MULTILINE)
    assert deep is not None
    share, slots, _, served, rate, used, prefill, wait = deep[1].split()
    assert (share, slots) == ("0.200", "9")
    assert float(rate) == round(equilibrium.arrival_rate_per_node[2], 3)
    assert wait == f"{equilibrium.mean_wait_s[2]:.4f}"
    assert used == f"{equilibrium.utilization[2]:.1%}"
    # Requests per node times nodes of the tier are its share of the requests.
    assert abs(float(served) - float(rate) * 0.2 / 3.0) < 1e-3
    mean_prefill = float(prefill) / float(rate)
    assert network.prefill_s[2].min() < mean_prefill < network.prefill_s[2].max()
    assert max(map(len, shown.splitlines())) <= 100


def test_a_budget_limits_the_mix(capsys):
    arguments = ["solve", "--scenario", "paper", "--optimize"]
    assert main([*arguments, "--budget-gb", "3.0"]) == 0
    mix = re.search(r"Best mix.*: (.*)$", capsys.readouterr().out, re.MULTILINE)
    assert mix is not None
    state_gb = dict(zip(("uncached", "shallow", "deep"), preset("paper").state_bytes, strict=True))
    held = [entry.split() for entry in mix[1].split(", ")]
    assert sum(float(share) * state_gb[name] / 1e9 for name, share in held) <= 3.01


def test_overload_is_said(capsys):
    arguments = ["solve", "--scenario", "paper", "--set", "demand.request_intensity=20"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert "Overload" in shown
    assert "unbounded" in shown
    assert len(re.findall(r" unstable *$", shown, re.MULTILINE)) == 3
    assert "nan" not in shown


def test_unstable_tiers_are_marked(capsys):
    arguments = ["solve", "--routing", "queue_unaware", "--set", "demand.request_intensity=4"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^ (\w+) .* unstable *$", shown, re.MULTILINE) == ["deep"]


def test_routing_and_target_can_be_chosen(capsys):
    arguments = ["solve", "--routing", "queue_unaware", "--target-s", "1.5"]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    network = preset("paper").tiered_network()
    equilibrium = solve_equilibrium(network, policy="queue_unaware")
    coverage = evaluate(network, equilibrium, ttft_target_s=1.5).coverage
    assert f"{coverage:.4f}" in shown


def test_optimize_finds_a_mix_that_is_no_worse(capsys):
    assert main(["solve", "--scenario", "toy", "--optimize"]) == 0
    shown = capsys.readouterr().out
    given, best = map(float, re.findall(r"coverage: share of requests within target +(\S+)", shown))
    assert best > given
    assert "Best mix" in shown


@pytest.mark.parametrize("method", ["grid", "spsa"])
def test_the_method_of_the_search_can_be_chosen(method, capsys):
    arguments = ["solve", "--optimize", "--set", "demand.request_intensity=4"]
    assert main(arguments) == 0
    by_exchange = capsys.readouterr()
    assert main([*arguments, "--method", method]) == 0
    shown = capsys.readouterr()
    assert shown.err == by_exchange.err == ""
    best = [
        float(re.findall(r"coverage: share of requests within target +(\S+)", text)[-1])
        for text in (by_exchange.out, shown.out)
    ]
    assert best[1] == pytest.approx(best[0], abs=3e-3)
    assert ("231 evaluations" in shown.out) == (method == "grid")


def test_a_grid_that_is_too_large_is_bad_input(capsys):
    scenario = ["--scenario", "moving-hotspot"]
    assert main(["solve", *scenario, "--optimize", "--method", "grid"]) == 2
    assert "the grid has 888030 mixes of 8 profiles" in capsys.readouterr().err
    assert main(["solve", "--method", "grid"]) == 2
    assert "--method: only with --optimize" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "routing"),
    [("nearest", "nearest"), ("prefix_aware", "queue_unaware"), ("load_aware", "load_aware")],
)
def test_routing_is_the_scenario_s_unless_given(kind, routing, capsys):
    assert main(["solve", "--set", f"routing.kind={kind}"]) == 0
    by_scenario = capsys.readouterr().out
    assert f"{routing} routing" in by_scenario
    assert main(["solve", "--routing", routing]) == 0
    assert capsys.readouterr().out == by_scenario


def test_numbers_are_read_as_people_write_them(capsys):
    assert main(["solve", "--set", "demand.request_intensity=4e0"]) == 0
    assert "4 requests/s/km²" in capsys.readouterr().out


@pytest.mark.parametrize("target", ["0", "-1", "nan", "inf", "1e13"])
def test_targets_out_of_range_are_bad_input(target, capsys):
    assert main(["solve", "--target-s", target]) == 2
    assert "must be a positive number of seconds, at most 1e+12" in capsys.readouterr().err
