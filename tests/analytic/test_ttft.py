"""Performance by type and tier, the TTFT law on a grid, and the planning bound."""

import math
import time

import numpy as np
import pytest

from edgegym.analytic import evaluate, solve_equilibrium
from tests.analytic.networks import oracle_network, paper_network, random_network

POLICIES = ("load_aware", "queue_unaware", "nearest")


@pytest.mark.parametrize("seed", range(24))
def test_the_grid_is_coverage_at_every_time(seed):
    net = random_network([seed, 51])
    eq = solve_equilibrium(net, POLICIES[seed % 3])
    perf = evaluate(net, eq, 1.0)
    rng = np.random.default_rng(seed)
    times = rng.permutation(np.r_[0.0, rng.exponential(0.5, 15), 2.0, 2.0, 40.0])
    grid = perf.ttft_cdf(times)
    by_type, by_profile = perf.ttft_cdf_by_type(times), perf.ttft_cdf_by_profile(times)
    assert grid.shape == times.shape
    assert (grid >= 0).all()
    assert (grid <= 1).all()
    assert (np.diff(grid[np.argsort(times)]) >= 0).all()
    for i, at in enumerate(times):
        there = evaluate(net, eq, at)
        assert grid[i] == pytest.approx(there.coverage, abs=1e-9)
        np.testing.assert_allclose(by_type[i], there.coverage_by_type, rtol=0, atol=1e-9)
        joint = by_profile[i] - there.coverage_by_profile
        assert np.abs(np.nan_to_num(joint) * perf.profile_share).max() < 1e-9


def test_the_grid_agrees_with_quantiles():
    net = oracle_network("wide_load_10", radio_base_s=0.03)
    perf = evaluate(net, solve_equilibrium(net), 1.0)
    shares = np.array([0.02, 0.4, 0.9, 0.999])
    times = [perf.quantile(share) for share in shares]
    np.testing.assert_allclose(perf.ttft_cdf(times), shares, rtol=0, atol=1e-10)
    assert perf.ttft_cdf([0.03]) == 0


def test_the_grid_resolves_steep_waits():
    net = paper_network(18_000.0, concurrency=[10_000, 30_000, 30_000])
    eq = solve_equilibrium(net)
    perf = evaluate(net, eq, 0.8)
    times = np.linspace(0.05, 1.5, 40)
    single = [evaluate(net, eq, at).coverage for at in times]
    np.testing.assert_allclose(perf.ttft_cdf(times), single, rtol=0, atol=3e-8)


def test_an_unstable_tier_serves_nobody_in_time():
    net = paper_network(4.5)
    eq = solve_equilibrium(net, "queue_unaware")
    perf = evaluate(net, eq, 0.8)
    late = perf.ttft_cdf_by_profile([0.5, 5.0, 1e9])
    np.testing.assert_allclose(late[:, 2], 0.0, atol=1e-15)
    assert perf.coverage_by_profile[2] == pytest.approx(0.0, abs=1e-15)
    assert perf.mean_ttft_by_profile_s[2] == math.inf
    assert np.isfinite(perf.mean_ttft_by_profile_s[:2]).all()
    assert (perf.mean_ttft_by_type_s == math.inf).all()
    reached = net.type_probabilities @ eq.association[:2].sum(axis=0)
    assert perf.ttft_cdf([1e9])[0] == pytest.approx(reached, abs=1e-12)


def test_a_grid_is_much_faster_than_single_evaluations():
    net = oracle_network("wide_load_10")
    eq = solve_equilibrium(net)
    perf = evaluate(net, eq, 1.0)
    times = np.linspace(0.0, 3.0, 200)
    perf.ttft_cdf(times)

    def cost(call, calls):
        start = time.process_time()
        for _ in range(calls):
            call()
        return (time.process_time() - start) / calls

    once = min(cost(lambda: evaluate(net, eq, 1.0), 20) for _ in range(5))
    grid = min(cost(lambda: perf.ttft_cdf(times), 3) for _ in range(5))
    assert grid < 0.2 * len(times) * once


@pytest.mark.parametrize("seed", range(30))
def test_parts_add_up(seed):
    net = random_network([seed, 52])
    eq = solve_equilibrium(net, POLICIES[seed % 3])
    perf = evaluate(net, eq, 0.7)
    share, p = perf.profile_share, net.type_probabilities
    used = share > 0
    assert share.sum() == pytest.approx(1.0)
    assert (np.isnan(perf.coverage_by_profile) == ~used).all()
    for whole, by_type, by_profile in (
        (perf.coverage, perf.coverage_by_type, perf.coverage_by_profile),
        (
            perf.coverage_no_queue,
            perf.coverage_no_queue_by_type,
            perf.coverage_no_queue_by_profile,
        ),
        (perf.mean_ttft_s, perf.mean_ttft_by_type_s, perf.mean_ttft_by_profile_s),
        (perf.expected_hit_tokens, perf.hit_tokens_by_type, perf.hit_tokens_by_profile),
    ):
        assert by_type @ p == pytest.approx(whole, rel=1e-12)
        assert (by_profile[used] * share[used]).sum() == pytest.approx(whole, rel=1e-12)
    cold = net.cold_prefill_s * p
    assert perf.offloading_by_type @ cold / cold.sum() == pytest.approx(perf.offloading_ratio)
    tier_cold = eq.association @ cold
    whole = (perf.offloading_by_profile[used] * tier_cold[used]).sum() / cold.sum()
    assert whole == pytest.approx(perf.offloading_ratio)


@pytest.mark.twin
def test_parts_of_one_tier_and_of_a_lost_type():
    servable = np.ones((3, 2), bool)
    servable[:2, 1] = False
    net = paper_network(0.5, servable=servable, profile_probabilities=[0.0, 1.0, 0.0])
    perf = evaluate(net, solve_equilibrium(net), 0.8)
    assert perf.coverage_by_type[1] == 0
    assert perf.coverage_by_profile[1] == pytest.approx(perf.coverage_by_type[0])
    assert perf.coverage == pytest.approx(0.4 * perf.coverage_by_type[0])
    assert np.isnan(perf.coverage_by_profile[[0, 2]]).all()
    np.testing.assert_allclose(perf.profile_share, [0.0, 0.4, 0.0])
    assert perf.mean_ttft_by_type_s[1] == math.inf
    assert math.isfinite(perf.mean_ttft_by_profile_s[1])
    assert perf.hit_tokens_by_profile[1] == 256
    assert perf.hit_tokens_by_type[1] == 0
    assert perf.offloading_by_profile[1] == pytest.approx(perf.offloading_by_type[0])


def test_types_by_themselves():
    # A type's coverage is that of its own target, whatever the other's.
    net = paper_network()
    eq = solve_equilibrium(net)
    alone = evaluate(net, eq, [0.5, 0.0]).coverage_by_type
    both = evaluate(net, eq, [0.5, 1.2]).coverage_by_type
    assert alone[0] == pytest.approx(both[0], abs=1e-13)
    assert alone[1] == 0 < both[1]


@pytest.mark.parametrize("seed", range(30))
def test_the_planning_bound_is_one(seed):
    net = random_network([seed, 53])
    eq = solve_equilibrium(net, POLICIES[seed % 3])
    perf = evaluate(net, eq, np.random.default_rng(seed).uniform(0.05, 2.0))
    for epsilon in (1e-6, 0.01, 0.1, 0.5, 0.99):
        bound = perf.planning_lower_bound(epsilon)
        assert 0 <= bound <= perf.coverage + 1e-12
        assert bound <= (1 - epsilon) * perf.coverage_no_queue + 1e-12


def test_the_planning_bound_in_numbers():
    # One tier, one quantile: a coverage without queues at a shorter target.
    net = paper_network(7.0, profile_probabilities=[0.0, 1.0, 0.0])
    eq = solve_equilibrium(net)
    decay = net.concurrency[1] * eq.service_rate[1] - eq.arrival_rate_per_node[1]
    wait = math.log(eq.erlang_c[1] / 0.02) / decay
    assert wait > 0.01
    for policy in ("load_aware", "nearest"):
        eq = solve_equilibrium(net, policy)
        bound = evaluate(net, eq, 4.0).planning_lower_bound(0.02)
        expected = 0.98 * evaluate(net, eq, 4.0 - wait).coverage_no_queue
        assert bound == pytest.approx(expected, abs=1e-12)
    light = paper_network(0.01)
    perf = evaluate(light, solve_equilibrium(light), 0.8)
    assert perf.planning_lower_bound(0.1) == pytest.approx(0.9 * perf.coverage, rel=1e-6)


def test_the_planning_bound_leaves_out_unstable_tiers():
    net = paper_network(4.5)
    perf = evaluate(net, solve_equilibrium(net, "queue_unaware"), 1e6)
    assert perf.planning_lower_bound(0.1) == pytest.approx(0.9 * perf.coverage, rel=1e-9)


@pytest.mark.parametrize("times", [[-1.0], [math.nan], [[1.0]], "soon", 1.0, [1e13]])
def test_refused_times(times):
    net = paper_network()
    perf = evaluate(net, solve_equilibrium(net), 0.8)
    with pytest.raises(ValueError, match="times_s"):
        perf.ttft_cdf(times)


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -0.1, math.nan, "0.1"])
def test_refused_epsilon(epsilon):
    net = paper_network()
    perf = evaluate(net, solve_equilibrium(net), 0.8)
    with pytest.raises(ValueError, match="epsilon"):
        perf.planning_lower_bound(epsilon)
