import numpy as np
import pytest

from edgegym.analytic import (
    association_law,
    nearest_association,
    sample_association,
    solve_equilibrium,
)
from tests.analytic.networks import oracle_network, paper_network, random_network


def check_within(sample, law, sigmas=5.0):
    """Compare a sample with the law; few events are no test of a mean."""
    error = np.sqrt(law.probability * (1 - law.probability) / sample.samples)
    assert (np.abs(sample.probability - law.probability) <= sigmas * error + 1e-15).all()
    often = sample.probability * sample.samples > 200
    for mean, spread, expected in (
        (sample.mean_distance_km, sample.distance_standard_error_km, law.mean_distance_km),
        (sample.mean_radio_s, sample.radio_standard_error_s, law.mean_radio_s),
    ):
        assert (np.abs(mean - expected)[often] <= sigmas * spread[often]).all()


def test_the_law_within_the_published_error():
    net = paper_network()
    law = association_law(net, np.zeros(3))
    sample = sample_association(net, 2_000_000, seed=0)
    assert np.abs(sample.probability - law.probability).max() <= 1.5e-3
    check_within(sample, law)


@pytest.mark.parametrize("seed", range(15))
def test_random_networks(seed):
    # Sums of r ** alpha have heavy tails beyond alpha 4: the error of their mean is no 5 sigma.
    net = random_network([seed, 41])
    wait = np.random.default_rng(seed).exponential(0.1, net.num_profiles)
    check_within(sample_association(net, 100_000, seed, wait), association_law(net, wait), 5.5)


def test_equilibria():
    net = oracle_network("wide_load_10")
    eq = solve_equilibrium(net)
    check_within(sample_association(net, 200_000, 1, eq), association_law(net, eq.assumed_wait_s))
    eq = solve_equilibrium(net, "nearest")
    check_within(sample_association(net, 200_000, 2, eq), nearest_association(net))


@pytest.mark.twin
def test_masks_and_empty_tiers():
    servable = np.ones((3, 2), bool)
    servable[:2, 1] = False
    net = paper_network(servable=servable, profile_probabilities=[0.5, 0.5, 0])
    sample = sample_association(net, 300, 0)
    np.testing.assert_allclose(sample.probability.sum(axis=0), [1.0, 0.0])
    assert (sample.probability[2] == 0).all()
    assert np.isnan(sample.mean_distance_km[:, 1]).all()
    assert (sample.standard_error[:, 1] == 0).all()
    check_within(sample, association_law(net, np.zeros(3)))


@pytest.mark.twin
def test_same_seed_same_bits_and_blocks_do_not_matter():
    net = paper_network()
    once, again = (sample_association(net, 9000, 7) for _ in range(2))
    other = sample_association(net, 9000, 8)
    assert (once.probability == again.probability).all()
    assert (once.mean_radio_s == again.mean_radio_s).all()
    assert (once.probability != other.probability).any()
    np.testing.assert_allclose(once.probability.sum(axis=0), 1.0, rtol=1e-15)


def test_standard_errors_are_those_of_repetition():
    net = paper_network(radio_alpha=3.0)
    runs = [sample_association(net, 2000, seed) for seed in range(200)]
    for value, error in (
        ("probability", "standard_error"),
        ("mean_distance_km", "distance_standard_error_km"),
        ("mean_radio_s", "radio_standard_error_s"),
    ):
        spread = np.std([getattr(run, value) for run in runs], axis=0)
        stated = np.mean([getattr(run, error) for run in runs], axis=0)
        np.testing.assert_allclose(stated, spread, rtol=0.2)


def test_one_request_has_no_standard_error_of_its_distance():
    sample = sample_association(paper_network(), 1, 0)
    served = sample.probability == 1
    assert served.sum() == 2
    assert np.isfinite(sample.mean_distance_km[served]).all()
    assert np.isnan(sample.distance_standard_error_km).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 1), "n is 0"),
        ((10.5, 1), "n is 10.5"),
        ((True, 1), "n is True"),
        ((10, -1), "seed is -1"),
        ((10, 1, [0.0, 1.0]), "wait_s has shape"),
        ((10, 1, [0.0, 1.0, np.inf]), "wait_s"),
    ],
)
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        sample_association(paper_network(), *arguments)


def test_refused_network():
    with pytest.raises(TypeError, match="must be a TieredNetwork"):
        sample_association({}, 10, 0)
