import math

import numpy as np
import pytest

from edgegym.analytic import evaluate, solve_equilibrium
from tests.analytic.networks import oracle_network, paper_network


def sampled_ttft(net, eq, rng, samples):
    """Return TTFTs of random requests: nearest node per tier, routing, an exponential-tail wait."""
    distance = np.sqrt(
        -np.log(rng.random((samples, net.num_profiles))) / (np.pi * net.tier_density)
    )
    kind = rng.choice(net.num_types, samples, p=net.type_probabilities)
    radio = net.radio_base_s + net.radio_xi * distance**net.radio_alpha
    prefill = net.prefill_s[:, kind].T
    if eq.policy == "nearest":
        tier = distance.argmin(axis=1)
    else:
        tier = (radio + prefill + eq.assumed_wait_s).argmin(axis=1)
    rows = np.arange(samples)
    decay = net.concurrency * eq.service_rate - eq.arrival_rate_per_node
    waits = rng.random(samples) < eq.erlang_c[tier]
    wait = waits * rng.exponential(1.0, samples) / np.where(decay > 0, decay, 1e-9)[tier]
    return radio[rows, tier] + prefill[rows, tier] + wait


@pytest.mark.parametrize("policy", ["load_aware", "queue_unaware", "nearest"])
@pytest.mark.parametrize("alpha", [1.7, 3.2])
def test_against_sampling(policy, alpha):
    net = paper_network(2.5, radio_alpha=alpha, radio_base_s=0.02)
    eq = solve_equilibrium(net, policy)
    samples = 300_000
    ttft = sampled_ttft(net, eq, np.random.default_rng(3), samples)
    perf = evaluate(net, eq, 0.8)
    assert perf.coverage == pytest.approx((ttft <= 0.8).mean(), abs=4 * 0.5 / math.sqrt(samples))
    assert perf.mean_ttft_s == pytest.approx(ttft.mean(), rel=0.02)
    below = (ttft <= perf.quantile(0.9)).mean()
    assert below == pytest.approx(0.9, abs=4 * 0.3 / math.sqrt(samples))


def test_quantile_inverts_coverage():
    net = oracle_network("wide_load_10")
    eq = solve_equilibrium(net)
    for reliability in (0.01, 0.5, 0.999):
        ttft = evaluate(net, eq, 1.0).quantile(reliability)
        assert evaluate(net, eq, ttft).coverage == pytest.approx(reliability, abs=1e-10)


def test_target_per_type():
    net = paper_network()
    eq = solve_equilibrium(net)
    both = evaluate(net, eq, [0.5, 1.2]).coverage
    first = evaluate(net, eq, [0.5, 0.0]).coverage
    second = evaluate(net, eq, [0.0, 1.2]).coverage
    assert both == pytest.approx(first + second, abs=1e-12)
    assert 0 < first < 0.4
    assert 0 < second < 0.6
    assert evaluate(net, eq, [0.8, 0.8]).coverage == evaluate(net, eq, 0.8).coverage


def test_a_steep_wait_is_resolved():
    # Ten thousand slots near saturation: the wait's tail falls within a millisecond.
    net = paper_network(18_000.0, concurrency=[10_000, 30_000, 30_000])
    eq = solve_equilibrium(net)
    samples = 400_000
    ttft = sampled_ttft(net, eq, np.random.default_rng(8), samples)
    coverage = evaluate(net, eq, 0.8).coverage
    assert coverage == pytest.approx((ttft <= 0.8).mean(), abs=4 * 0.5 / math.sqrt(samples))


def test_an_unstable_tier_covers_nothing():
    net = paper_network(4.5)
    eq = solve_equilibrium(net, "queue_unaware")
    assert not eq.stable
    perf = evaluate(net, eq, 0.8)
    assert perf.mean_ttft_s == math.inf
    reached = net.type_probabilities @ eq.association[:2].sum(axis=0)
    assert perf.coverage <= reached
    assert evaluate(net, eq, 1e6).coverage == pytest.approx(reached, abs=1e-12)
    assert perf.quantile(0.99 * reached) < math.inf
    assert perf.quantile(1.01 * reached) == math.inf


def test_overload_leaves_no_nan():
    net = paper_network(30.0)
    perf = evaluate(net, solve_equilibrium(net), 0.8)
    assert perf.coverage == 0.0
    assert perf.mean_ttft_s == math.inf
    assert perf.quantile(0.1) == math.inf
    assert 0 < perf.mean_distance_km < 10
    assert 0 <= perf.offloading_ratio < 1


@pytest.mark.parametrize("policy", ["load_aware", "queue_unaware", "nearest"])
def test_a_type_that_never_comes_changes_nothing_under_overload(policy):
    net = paper_network(9.0, type_probabilities=[0.0, 1.0])
    eq = solve_equilibrium(net, policy)
    assert not eq.stable
    perf = evaluate(net, eq, 0.8)
    assert perf.mean_ttft_s == math.inf
    assert np.array_equal(np.isinf(perf.mean_ttft_by_profile_s), ~eq.stable_tiers)
    assert perf.coverage == pytest.approx(perf.coverage_by_type[1], abs=1e-15)


def test_distance_of_empty_tiers_is_nan():
    net = oracle_network("wide_load_10")
    perf = evaluate(net, solve_equilibrium(net), 1.2)
    assert np.isnan(perf.conditional_mean_distance_km[4]).all()
    assert not np.isnan(perf.conditional_mean_distance_km[:4]).any()


def test_a_lost_type_is_not_covered():
    servable = np.ones((3, 2), bool)
    servable[:2, 1] = False
    net = paper_network(servable=servable, profile_probabilities=[0.5, 0.5, 0])
    for policy in ("load_aware", "nearest"):
        perf = evaluate(net, solve_equilibrium(net, policy), 1e5)
        assert perf.coverage == pytest.approx(0.4, abs=1e-12)
        assert perf.mean_ttft_s == math.inf
        assert perf.quantile(0.5) == math.inf


@pytest.mark.twin
def test_no_queue_bounds_coverage():
    net = paper_network(4.0)
    perf = evaluate(net, solve_equilibrium(net), 0.8)
    assert perf.coverage < perf.coverage_no_queue < 1


@pytest.mark.parametrize("target", [-1.0, math.nan, [0.8, 0.8, 0.8]])
def test_refused_targets(target):
    net = paper_network()
    with pytest.raises(ValueError, match="ttft_target_s"):
        evaluate(net, solve_equilibrium(net), target)


def test_refused_reliability_and_network():
    net = paper_network()
    eq = solve_equilibrium(net)
    with pytest.raises(ValueError, match="reliability is 1"):
        evaluate(net, eq, 0.8).quantile(1)
    with pytest.raises(ValueError, match="must be that of the network"):
        evaluate(oracle_network("wide_load_10"), eq, 0.8)
