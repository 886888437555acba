import dataclasses

import numpy as np
import pytest
from scipy.integrate import quad

from edgegym.analytic import (
    association_alpha2,
    association_law,
    coverage_alpha2,
    evaluate,
    solve_equilibrium,
)
from edgegym.analytic.performance import wait_tail
from tests.analytic.networks import paper_network, random_network


def network_alpha2(seed):
    net = dataclasses.replace(random_network([seed, 21]), radio_alpha=2.0)
    return net, np.random.default_rng(seed).exponential(0.3, net.num_profiles)


@pytest.mark.parametrize("seed", range(40))
def test_the_integrals_agree(seed):
    net, wait = network_alpha2(seed)
    exact, found = association_alpha2(net, wait), association_law(net, wait)
    np.testing.assert_allclose(found.probability, exact.probability, rtol=0, atol=1e-10)
    # Both errors are of the joint means: of the rarest pairs only those are of interest.
    for name in ("mean_distance_km", "mean_radio_s"):
        there, here = getattr(exact, name), getattr(found, name)
        often = exact.probability > 1e-6
        assert (np.isnan(here) == (found.probability == 0)).all()
        np.testing.assert_allclose(here[often], there[often], rtol=1e-8)
        joint = np.nan_to_num(here - there) * exact.probability
        assert np.abs(joint).max() < 1e-10


@pytest.mark.parametrize("seed", range(40))
def test_coverage_agrees(seed):
    net, _ = network_alpha2(seed)
    policy = "queue_unaware" if seed % 2 else "load_aware"
    eq = solve_equilibrium(net, policy)
    delay, decay = wait_tail(eq)
    target = np.random.default_rng(seed).uniform(0.05, 2.0, net.num_types)
    exact = coverage_alpha2(net, eq.assumed_wait_s, target, delay=delay, decay_per_s=decay)
    perf = evaluate(net, eq, target)
    np.testing.assert_allclose(perf.coverage_by_type, exact.sum(axis=0), rtol=0, atol=1e-10)
    none = np.zeros(net.num_profiles)
    bound = coverage_alpha2(net, eq.assumed_wait_s, target, delay=none, decay_per_s=none)
    np.testing.assert_allclose(
        perf.coverage_no_queue_by_type, bound.sum(axis=0), rtol=0, atol=1e-10
    )


@pytest.mark.twin
def test_against_quadrature_over_distance():
    net = paper_network(radio_base_s=0.05)
    wait = np.array([0.3, 0.0, 0.1])
    delay, decay = np.array([0.7, 0.2, 1.0]), np.array([4.0, 30.0, 0.0])
    costs = net.prefill_s + wait[:, None]
    law = association_alpha2(net, wait)
    coverage = coverage_alpha2(net, wait, 0.7, delay=delay, decay_per_s=decay)

    def density(r, s, q):
        step = r**2 + (costs[s, q] - costs[:, q]) / net.radio_xi
        nodes = np.pi * net.tier_density @ np.maximum(step, 0.0)
        return 2 * np.pi * net.tier_density[s] * r * np.exp(-nodes)

    def in_time(r, s, q):
        slack = 0.65 - net.radio_xi * r**2 - net.prefill_s[s, q]
        late = delay[s] * np.exp(-decay[s] * slack)
        return density(r, s, q) * (1 - late) if slack >= 0 else 0.0

    for s in range(3):
        for q in range(2):
            kinks = (costs[:, q] - costs[s, q]) / net.radio_xi
            end = (0.65 - net.prefill_s[s, q]) / net.radio_xi
            points = [float(x) ** 0.5 for x in [*kinks, end] if x > 0]
            options = {"points": points, "epsabs": 1e-13, "limit": 500}
            share = quad(density, 0, 8, args=(s, q), **options)[0]
            mean = quad(lambda r, s, q: r * density(r, s, q), 0, 8, args=(s, q), **options)[0]
            served = quad(in_time, 0, 8, args=(s, q), **options)[0]
            assert law.probability[s, q] == pytest.approx(share, abs=1e-12)
            assert law.mean_distance_km[s, q] == pytest.approx(mean / share, rel=1e-10)
            assert coverage[s, q] == pytest.approx(served, abs=1e-11)
    np.testing.assert_allclose(coverage[2], 0.0, atol=1e-15)  # its wait never ends


def test_equal_rates_of_radio_and_queue():
    # The two exponentials of the coverage fall equally fast: its usual form divides 0 by 0.
    net = paper_network(profile_probabilities=[1.0, 0.0, 0.0])
    rate = np.pi * net.tier_density[0] / net.radio_xi
    near = [
        coverage_alpha2(net, np.zeros(3), 0.8, delay=[1, 0, 0], decay_per_s=[rate * factor, 0, 0])[
            0, 0
        ]
        for factor in (1 - 1e-7, 1.0, 1 + 1e-7)
    ]
    slack = 0.8 - net.prefill_s[0, 0]
    expected = 1 - np.exp(-rate * slack) * (1 + rate * slack)
    np.testing.assert_allclose(near, expected, rtol=1e-6)
    assert near[1] == pytest.approx(expected, rel=1e-13)


def test_ties_empty_tiers_and_masks():
    servable = np.array([[1, 1], [1, 0], [1, 1]], bool)
    net = paper_network(
        hit_tokens=np.zeros((3, 2)), servable=servable, profile_probabilities=[0.5, 0.5, 0.0]
    )
    law = association_alpha2(net, np.zeros(3))
    np.testing.assert_allclose(law.probability, [[0.5, 1.0], [0.5, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(law.mean_distance_km[0], [0.5, 0.5 / np.sqrt(0.5)])
    assert np.isnan(law.mean_distance_km[2]).all()
    assert np.isnan(law.mean_radio_s[1, 1])


def test_refusals():
    with pytest.raises(ValueError, match="radio_alpha is 3: the closed form holds for 2"):
        association_alpha2(paper_network(radio_alpha=3.0), np.zeros(3))
    with pytest.raises(ValueError, match="wait_s has shape"):
        association_alpha2(paper_network(), np.zeros(2))
    with pytest.raises(ValueError, match="must be probabilities"):
        coverage_alpha2(
            paper_network(), np.zeros(3), 0.8, delay=[0.1, 2.0, 0.1], decay_per_s=np.ones(3)
        )
