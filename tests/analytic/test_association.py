import dataclasses
import itertools

import numpy as np
import pytest

from edgegym.analytic import (
    association_law,
    distance_law,
    evaluate,
    nearest_association,
    solve_equilibrium,
)
from tests.analytic.networks import oracle_network, paper_network, random_network


def closed_form(net, wait):
    """Return the law for ``radio_alpha = 2``: each piece is an exponential in the cost."""
    costs = net.prefill_s + wait[:, None]
    result = np.zeros(costs.shape)
    rate = np.pi * net.tier_density / net.radio_xi
    for q in range(costs.shape[1]):
        cost = costs[:, q]
        ends = np.append(np.sort(cost), np.inf)
        for start, end in itertools.pairwise(ends):
            active = cost <= start
            total = rate[active].sum()
            if total == 0:
                continue
            missed = np.exp(-(rate[active] * (start - cost[active])).sum())
            mass = missed * -np.expm1(-total * (end - start))
            result[active, q] += rate[active] / total * mass
    return result


def sampled(net, wait, rng, samples):
    """Return shares and mean distances of the best of the tiers' nearest nodes."""
    distance = np.sqrt(
        -np.log(rng.random((samples, net.num_profiles))) / (np.pi * net.tier_density)
    )
    shares, means = [], []
    for q in range(net.num_types):
        cost = net.radio_xi * distance**net.radio_alpha + net.prefill_s[:, q] + wait
        best = cost.argmin(axis=1)
        shares.append([(best == s).mean() for s in range(net.num_profiles)])
        means.append([distance[best == s, s].mean() for s in range(net.num_profiles)])
    return np.array(shares).T, np.array(means).T


@pytest.mark.parametrize("seed", range(20))
def test_alpha_two_in_closed_form(seed):
    net = dataclasses.replace(random_network([seed, 1]), radio_alpha=2.0)
    wait = np.random.default_rng(seed).exponential(0.3, net.num_profiles)
    found = association_law(net, wait).probability
    np.testing.assert_allclose(found, closed_form(net, wait), atol=1e-12)


@pytest.mark.parametrize("alpha", [1.5, 2.6, 4.0, 5.0])
def test_against_sampling(alpha):
    net = paper_network(radio_alpha=alpha)
    wait = np.array([0.0, 0.05, 0.4])
    samples = 200_000
    law = association_law(net, wait)
    shares, means = sampled(net, wait, np.random.default_rng(5), samples)
    error = 4 * np.sqrt(law.probability * (1 - law.probability) / samples)
    assert (np.abs(shares - law.probability) <= error + 1e-12).all()
    np.testing.assert_allclose(means, law.mean_distance_km, rtol=0.03)


def test_twice_the_nodes_change_nothing():
    worst = 0.0
    for seed in range(60):
        net = random_network([seed, 2])
        wait = np.random.default_rng(seed).exponential(0.2, net.num_profiles)
        once, twice = association_law(net, wait), association_law(net, wait, nodes=128)
        worst = max(worst, np.abs(once.probability - twice.probability).max())
        for name in ("mean_distance_km", "mean_radio_s"):
            change = np.nan_to_num(getattr(once, name) - getattr(twice, name))
            worst = max(worst, np.abs(change * once.probability).max())
        np.testing.assert_allclose(once.probability.sum(axis=0), 1.0, atol=1e-12)
    assert worst < 1e-9


@pytest.mark.parametrize("seed", range(60))
def test_extreme_networks_are_sane(seed):
    # Any exponent that a network may have, radio from far cheaper to far dearer than prefill, and
    # tiers of a millionth of the nodes.
    rng = np.random.default_rng([seed, 3])
    net = random_network([seed, 4])
    net = dataclasses.replace(
        net,
        radio_alpha=float(np.exp(rng.uniform(np.log(0.1), np.log(100)))),
        radio_xi=10.0 ** rng.uniform(-12, 6),
        density_per_km2=10.0 ** rng.uniform(-9, 3),
        profile_probabilities=rng.dirichlet(np.full(net.num_profiles, 0.1)),
    )
    wait = rng.exponential(10.0 ** rng.uniform(-6, 6), net.num_profiles)
    wait[rng.random(net.num_profiles) < 0.3] = 0.0
    law = association_law(net, wait)
    assert (law.probability >= 0).all()
    np.testing.assert_allclose(law.probability.sum(axis=0), 1.0, rtol=0, atol=1e-12)
    used = law.probability > 0
    for mean in (law.mean_distance_km, law.mean_radio_s):
        assert (np.isnan(mean) == ~used).all()
        assert (mean[used] >= 0).all()
    distances = distance_law(net, wait)
    cdf = distances.cdf([0.0, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6, 1e12])[:, used]
    assert (np.diff(cdf, axis=0) >= 0).all()
    np.testing.assert_allclose(cdf[[0, -1]], [[0.0], [1.0]] * np.ones(cdf.shape[1]))
    middle = distances.quantile(0.5)[used]
    assert np.isfinite(middle).all()
    assert (middle > 0).all()
    perf = evaluate(net, solve_equilibrium(net, "queue_unaware"), 1.0)
    shares = perf.ttft_cdf([0.0, 0.5, 1.0, 10.0, 1e12])
    assert (np.diff(shares) >= 0).all()
    assert shares[0] >= 0
    assert shares[-1] <= 1
    assert shares[2] == pytest.approx(perf.coverage, abs=1e-3)


@pytest.mark.parametrize("seed", range(10))
def test_radio_far_below_the_rounding_of_prefill(seed):
    # The cost of prefill is the same number with and without radio: ties still go to the nearest.
    net = dataclasses.replace(paper_network(), radio_xi=1e-12, density_per_km2=1e6)
    mix = np.random.default_rng(seed).dirichlet(np.ones(3))
    net = dataclasses.replace(net, profile_probabilities=mix, hit_tokens=np.zeros((3, 2)))
    law = association_law(net, np.zeros(3))
    np.testing.assert_allclose(law.probability[:, 0], mix, rtol=1e-9)
    np.testing.assert_allclose(law.mean_distance_km, 0.5e-3, rtol=1e-9)


@pytest.mark.twin
def test_tied_tiers_share_by_density():
    net = paper_network(hit_tokens=np.zeros((3, 2)), radio_alpha=4.7)
    law = association_law(net, np.zeros(3))
    np.testing.assert_allclose(law.probability, net.profile_probabilities[:, None] * [1, 1])
    np.testing.assert_allclose(law.mean_distance_km, 0.5)


def test_a_tier_that_may_not_serve():
    net = oracle_network("wide_load_10")
    servable = np.ones((5, 3), bool)
    servable[2, 1] = False
    masked = oracle_network("wide_load_10", servable=servable)
    found = association_law(masked, np.zeros(5)).probability
    assert found[2, 1] == 0
    np.testing.assert_allclose(found.sum(axis=0), 1.0)
    whole = association_law(net, np.zeros(5)).probability
    np.testing.assert_allclose(found[:, [0, 2]], whole[:, [0, 2]])


def test_a_type_that_only_empty_tiers_may_serve_is_lost():
    servable = np.ones((3, 2), bool)
    servable[:2, 1] = False
    net = paper_network(servable=servable, profile_probabilities=[0.5, 0.5, 0])
    assert association_law(net, np.zeros(3)).probability[:, 1].sum() == 0
    assert nearest_association(net).probability[:, 1].sum() == 0


def test_nearest():
    law = nearest_association(paper_network(radio_alpha=3.0, density_per_km2=4.0))
    np.testing.assert_allclose(law.probability, [[0.4, 0.4], [0.4, 0.4], [0.2, 0.2]])
    np.testing.assert_allclose(law.mean_distance_km, 0.25)
    r = np.sqrt(-np.log(np.random.default_rng(0).random(400_000)) / (4 * np.pi))
    np.testing.assert_allclose(law.mean_radio_s, 0.36 * (r**3).mean(), rtol=0.01)


@pytest.mark.parametrize("wait", [[0.0, 0.0], [0.0, -1.0, 0.0], [0.0, np.inf, 0.0]])
def test_refused_waits(wait):
    with pytest.raises(ValueError, match="wait"):
        association_law(paper_network(), wait)
