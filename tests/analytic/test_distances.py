import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import kstest

from edgegym.analytic import (
    association_law,
    decision_boundary,
    distance_law,
    nearest_association,
    solve_equilibrium,
)
from tests.analytic.networks import oracle_network, paper_network, random_network


def direct_density(net, costs, s, q, r):
    """Return the joint density (25) of "tier s serves type q at distance r"."""
    step = r**net.radio_alpha + (costs[s, q] - costs[:, q]) / net.radio_xi
    nodes = np.pi * net.tier_density @ np.maximum(step, 0.0) ** (2 / net.radio_alpha)
    return 2 * np.pi * net.tier_density[s] * r * np.exp(-nodes)


def integral(net, costs, s, q, upper, power=0, error=1e-12):
    """Integrate the joint density times ``r ** power`` by adaptive quadrature over distance."""
    kinks = (costs[s, q] - costs[:, q]) / net.radio_xi
    points = sorted({k ** (1 / net.radio_alpha) for k in kinks if k > 0} - {upper})
    far = math.sqrt(45 / (np.pi * net.tier_density[s]))
    ends = [0.0, *[p for p in points if p < min(upper, far)], min(upper, far)]
    return sum(
        quad(
            lambda r: r**power * direct_density(net, costs, s, q, r),
            a,
            b,
            epsabs=error,
            epsrel=1e-10,
            limit=400,
        )[0]
        for a, b in itertools.pairwise(ends)
    )


@pytest.mark.parametrize("alpha", [1.5, 2.0, 2.7, 3.5, 4.0, 5.0])
def test_every_pair_against_quadrature_over_distance(alpha):
    net = paper_network(radio_alpha=alpha)
    wait = np.array([0.02, 0.2, 0.1])
    costs = net.prefill_s + wait[:, None]
    law = distance_law(net, wait)
    radii = np.array([0.05, 0.3, 0.7, 1.1, 2.0])
    density, cdf = law.density(radii), law.cdf(radii)
    assert density.shape == cdf.shape == (5, 3, 2)
    for s in range(3):
        for q in range(2):
            total = integral(net, costs, s, q, math.inf)
            assert law.probability[s, q] == pytest.approx(total, abs=1e-10)
            mean = integral(net, costs, s, q, math.inf, power=1) / total
            assert law.mean_km[s, q] == pytest.approx(mean, abs=1e-9)
            for i, r in enumerate(radii):
                exact = direct_density(net, costs, s, q, r) / total
                assert density[i, s, q] == pytest.approx(exact, rel=1e-9)
                exact = integral(net, costs, s, q, r) / total
                assert cdf[i, s, q] == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_consistent_on_random_networks(seed):
    net = random_network([seed, 31])
    eq = solve_equilibrium(net, "load_aware" if seed % 2 else "queue_unaware")
    law = distance_law(net, eq)
    used = law.probability > 0
    radii = np.linspace(0.0, 12.0 / math.sqrt(net.tier_density[net.tier_density > 0].min()), 300)
    cdf = law.cdf(radii)
    assert np.isnan(cdf[:, ~used]).all()
    assert (cdf[0][used] == 0).all()
    assert (np.diff(cdf[:, used], axis=0) >= -1e-14).all()
    np.testing.assert_allclose(cdf[-1][used], 1.0, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        law.probability, association_law(net, eq.assumed_wait_s).probability, atol=1e-10
    )
    shares = np.array([1e-6, 0.03, 0.5, 0.97, 1 - 1e-9])
    quantiles = law.quantile(shares)
    assert (np.diff(quantiles[:, used], axis=0) > 0).all()
    s, q = np.argwhere(law.probability > 1e-9)[seed % (law.probability > 1e-9).sum()]
    back = law.cdf(quantiles[:, s, q])[:, s, q]
    np.testing.assert_allclose(back, shares, rtol=0, atol=1e-12)
    # The derivative of the CDF, and the mean as the integral of what is left of it.
    r, h = quantiles[2, s, q], 1e-5 * quantiles[2, s, q]
    slope = (law.cdf(r + h) - law.cdf(r - h))[s, q] / (2 * h)
    assert law.density(r)[s, q] == pytest.approx(slope, rel=1e-5)
    ends = np.linspace(0.0, law.quantile(1 - 1e-13)[s, q], 4001)
    mean = np.trapezoid(1 - law.cdf(ends)[:, s, q], ends)
    assert law.mean_km[s, q] == pytest.approx(mean, rel=1e-4)


def test_a_tier_that_almost_never_serves():
    # One in 5e13 requests: the law of its distances is as accurate as any other.
    net = paper_network(density_per_km2=30.0)
    wait = np.array([0.08, 0.0, 0.0])
    costs = net.prefill_s + wait[:, None]
    law = distance_law(net, wait)
    assert 1e-15 < law.probability[0, 0] < 1e-13
    total = integral(net, costs, 0, 0, math.inf, error=1e-26)
    for r in (0.05, 0.1, 0.2):
        exact = integral(net, costs, 0, 0, r, error=1e-26) / total
        assert law.cdf(r)[0, 0] == pytest.approx(exact, abs=1e-9)


@pytest.mark.twin
def test_nearest_is_rayleigh():
    servable = np.array([[1, 1], [1, 0], [1, 1]], bool)
    net = paper_network(2.0, radio_alpha=3.0, density_per_km2=2.0, servable=servable)
    law = distance_law(net, solve_equilibrium(net, "nearest"))
    assert law.probability == pytest.approx(nearest_association(net).probability)
    density = np.array([2.0, 2.0 * 0.6])
    np.testing.assert_allclose(law.mean_km[0], 0.5 / np.sqrt(density))
    np.testing.assert_allclose(law.cdf(0.4)[2], 1 - np.exp(-np.pi * density * 0.16))
    assert law.cdf(law.quantile(0.3)[0, 0])[0, 0] == pytest.approx(0.3)
    r = np.linspace(0.0, 4.0, 20001)
    mass = np.trapezoid(law.density(r)[:, 0, :], r, axis=0)
    np.testing.assert_allclose(mass, 1.0, rtol=1e-7)
    assert np.isnan(law.cdf(0.4)[1, 1])


@pytest.mark.twin
def test_one_tier_is_rayleigh_whatever_its_costs():
    net = paper_network(profile_probabilities=[0.0, 1.0, 0.0], radio_alpha=3.3)
    law = distance_law(net, [0.0, 5.0, 0.0])
    r = np.array([0.0, 0.1, 0.6, 2.5])
    np.testing.assert_allclose(law.cdf(r)[:, 1, 0], -np.expm1(-np.pi * r**2), atol=1e-11)
    np.testing.assert_allclose(
        law.density(r)[:, 1, 0], 2 * np.pi * r * np.exp(-np.pi * r**2), atol=1e-10
    )
    median = math.sqrt(math.log(2) / np.pi)
    np.testing.assert_allclose(law.quantile(0.5)[1], median, rtol=1e-10)
    assert np.isnan(law.mean_km[[0, 2]]).all()
    np.testing.assert_allclose(law.overall_quantile(0.5), median, rtol=1e-10)


def test_the_mixture_against_sampling():
    net = oracle_network("wide_load_10")
    eq = solve_equilibrium(net)
    law = distance_law(net, eq)
    rng = np.random.default_rng(4)
    samples = 40_000
    filled = net.tier_density > 0
    scale = np.where(filled, 1 / (np.pi * np.where(filled, net.tier_density, 1)), np.inf)
    distance = np.sqrt(rng.standard_exponential((samples, net.num_profiles)) * scale)
    kind = rng.choice(net.num_types, samples, p=net.type_probabilities)
    cost = net.radio_xi * distance**net.radio_alpha + net.prefill_s[:, kind].T + eq.assumed_wait_s
    served = distance[np.arange(samples), cost.argmin(axis=1)]
    assert kstest(served, law.overall_cdf).pvalue > 1e-4
    assert law.overall_mean_km == pytest.approx(served.mean(), abs=5 * served.std() / samples**0.5)
    middle = law.overall_quantile([0.2, 0.8])
    np.testing.assert_allclose(law.overall_cdf(middle), [0.2, 0.8], atol=1e-12)
    r = np.linspace(0, 6, 3001)
    assert np.trapezoid(law.overall_density(r), r) == pytest.approx(1.0, abs=1e-5)


def test_nobody_is_served():
    servable = np.array([[1, 1], [1, 1], [1, 0]], bool)[::-1]
    net = paper_network(
        servable=servable, type_probabilities=[0.0, 1.0], profile_probabilities=[1.0, 0, 0]
    )
    law = distance_law(net, np.zeros(3))
    assert law.overall_mean_km == 0
    assert law.overall_cdf(5.0) == 0
    assert math.isnan(law.overall_quantile(0.5))


@pytest.mark.parametrize("radius", [-0.1, math.nan, math.inf, "far", True])
def test_refused_distances(radius):
    law = distance_law(paper_network(), np.zeros(3))
    with pytest.raises(ValueError, match="r_km"):
        law.cdf(radius)
    with pytest.raises(ValueError, match="r_km"):
        law.density(radius)
    with pytest.raises(ValueError, match="distance_km"):
        decision_boundary(paper_network(), radius, request_type=0, profile=0, rival=1)


@pytest.mark.parametrize("share", [0.0, 1.0, -1, math.nan, [0.5, 1.0]])
def test_refused_shares(share):
    law = distance_law(paper_network(), np.zeros(3))
    with pytest.raises(ValueError, match="share"):
        law.quantile(share)


def test_refused_network_and_waits():
    with pytest.raises(TypeError, match="must be a TieredNetwork"):
        distance_law(None, np.zeros(3))
    with pytest.raises(ValueError, match="wait_s has shape"):
        distance_law(paper_network(), np.zeros(2))


@pytest.mark.parametrize("alpha", [1.5, 2.0, 4.0, 100.0])
def test_the_boundary_is_where_costs_are_equal(alpha):
    net = paper_network(radio_alpha=alpha)
    wait = np.array([0.3, 0.0, 0.1])
    near = np.array([[0.0, 0.2], [0.8, 1.3]])
    edge = decision_boundary(net, near, request_type=1, profile=2, rival=0, wait_s=wait)
    assert edge.shape == near.shape
    np.testing.assert_allclose(
        net.radio_xi * edge**alpha + net.prefill_s[2, 1] + 0.1,
        net.radio_xi * near**alpha + net.prefill_s[0, 1] + 0.3,
        rtol=1e-12,
    )
    back = decision_boundary(net, edge, request_type=1, profile=0, rival=2, wait_s=wait)
    back = back[-1, -1]  # nearer ones are lost in the power
    assert back == pytest.approx(1.3, rel=1e-9)


def test_the_boundary_shrinks_with_the_wait():
    net = paper_network()
    edges = [
        decision_boundary(
            net, 0.5, request_type=1, profile=2, rival=0, wait_s=np.array([0.0, 0.0, wait])
        )
        for wait in (0.0, 0.2, 0.5, 3.0)
    ]
    assert edges[0] > edges[1] > edges[2] > edges[3] == 0.0


def test_the_boundary_far_out_and_for_those_who_may_not_serve():
    net = paper_network(radio_alpha=100.0)
    far = decision_boundary(net, 1e9, request_type=1, profile=2, rival=0)
    assert far == pytest.approx(1e9)
    servable = np.array([[1, 1], [1, 0], [0, 0]], bool)
    net = paper_network(servable=servable)
    assert decision_boundary(net, 1.0, request_type=1, profile=1, rival=0) == 0
    assert decision_boundary(net, 1.0, request_type=1, profile=0, rival=1) == math.inf
    with pytest.raises(ValueError, match="neither profile may serve"):
        decision_boundary(net, 1.0, request_type=1, profile=1, rival=2)
    with pytest.raises(ValueError, match="rival is 3"):
        decision_boundary(net, 1.0, request_type=1, profile=1, rival=3)
