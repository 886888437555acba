from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.interface.mix import MixActions, cheapest_moves
from edgegym.world.rounding import largest_remainder


@pytest.mark.parametrize("profiles", [2, 3, 8, 50, 1000])
def test_the_least_and_the_greatest_share(profiles):
    actions = MixActions(num_regions=1, num_profiles=profiles)
    extreme = np.full(profiles, -1.0)
    extreme[1] = 1.0
    shares = actions.decode(extreme)[0]
    assert shares[1] == pytest.approx(0.995)
    assert shares[0] < 0.01
    assert actions.decode(-extreme)[0, 1] < 0.01
    np.testing.assert_allclose(actions.decode(np.zeros(profiles)), 1.0 / profiles)


def test_each_region_has_its_own_shares():
    actions = MixActions(num_regions=2, num_profiles=3)
    numbers = np.array([0.5, -0.5, 0.0, 1.0, 1.0, -1.0])
    odds = np.exp(0.5 * np.log(199.0 * 2) * numbers).reshape(2, 3)
    expected = [[odd / sum(row) for odd in row] for row in odds.tolist()]
    np.testing.assert_allclose(actions.decode(numbers), expected, rtol=1e-12)


def test_a_single_profile_has_everything():
    actions = MixActions(num_regions=2, num_profiles=1)
    np.testing.assert_array_equal(actions.decode([-1.0, 0.3]), [[1.0], [1.0]])
    np.testing.assert_array_equal(actions.encode([[1.0], [2.0]]), [0.0, 0.0])


@given(st.lists(st.floats(0.01, 1.0), min_size=8, max_size=8))
def test_shares_within_reach_are_encoded_exactly(weights):
    actions = MixActions(num_regions=2, num_profiles=4)
    shares = np.array(weights).reshape(2, 4)
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(actions.decode(actions.encode(shares)), shares, rtol=1e-5)


def test_shares_beyond_reach_get_the_nearest_logit():
    actions = MixActions(num_regions=1, num_profiles=3)
    np.testing.assert_allclose(actions.encode([[1.0, 0.0, 0.0]]), [1.0, -1.0, -1.0])


@pytest.mark.parametrize("shares", [[[1.0, -0.1]], [[0.0, 0.0]], [[np.nan, 1.0]], [1.0, 0.0]])
def test_what_are_no_shares_is_refused(shares):
    with pytest.raises(ValueError, match="shares"):
        MixActions(num_regions=1, num_profiles=2).encode(shares)


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ([0.0, np.nan], ValueError, r"action\[1\] is nan: it must lie in \[-1, 1\]"),
        ([1.001, 0.0], ValueError, r"action\[0\] is 1.001: it must lie"),
        ([-np.inf, 0.0], ValueError, r"action\[0\] is -inf"),
        ([0.0], ValueError, r"action has shape \(1,\): it must be \(2,\)"),
        ([[0.0, 0.0]], ValueError, "action has shape"),
        (["a", "b"], TypeError, "must be an array of real numbers"),
        ([True, False], TypeError, "must be an array of real numbers"),
        (None, TypeError, "must be an array of real numbers"),
    ],
)
def test_what_is_no_action_is_refused(action, error, message):
    with pytest.raises(error, match=message):
        MixActions(num_regions=1, num_profiles=2).decode(action)


def best_by_trial(held, receiving, slots, target, move_bytes):
    """Return the fewest nodes left wrong, then the fewest bytes, over all ways to give profiles."""
    wanted = [s for s, number in enumerate(target) for _ in range(number)]
    best = (len(held), 0)
    for given_profiles in set(permutations(wanted)):
        wrong = paid = 0
        for i, s in enumerate(given_profiles):
            if s == held[i]:
                continue
            if receiving[i] or slots[i][s] == 0:
                wrong += 1
            else:
                paid += int(move_bytes[held[i], s])
        best = min(best, (wrong, paid))
    return best


@settings(max_examples=60)
@given(data=st.data(), nodes=st.integers(1, 6), profiles=st.integers(2, 4))
def test_moves_are_the_cheapest_of_all(data, nodes, profiles):
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    slots = rng.integers(0, 3, (nodes, profiles))
    held = rng.integers(0, profiles, nodes)
    # What a node holds fits it, unless it has no GPU.
    slots[np.arange(nodes), held] = 1
    slots[rng.random(nodes) < 0.15] = 0
    up, receiving = rng.random(nodes) < 0.85, rng.random(nodes) < 0.3
    unit = data.draw(st.sampled_from([1, 7, 2**30]))
    move_bytes = unit * rng.integers(0, 9, (profiles, profiles))
    np.fill_diagonal(move_bytes, 0)
    shares = rng.dirichlet(np.ones(profiles), 1)
    region = np.zeros(nodes, dtype=np.int64)

    moves = cheapest_moves(shares, region, up, receiving, held, slots, move_bytes)

    serving = [i for i in range(nodes) if up[i] and slots[i].any()]
    prices = [int(move_bytes[held[i], s]) for i, s in moves]
    assert len({i for i, _ in moves}) == len(moves)
    assert [(p, i) for p, (i, _) in zip(prices, moves, strict=True)] == sorted(
        (p, i) for p, (i, _) in zip(prices, moves, strict=True)
    )
    for i, s in moves:
        assert i in serving
        assert not receiving[i]
        assert s != held[i]
        assert slots[i, s] > 0
    if not serving:
        assert moves == []
        return
    fits = slots[serving].any(axis=0)
    some = np.where(fits, shares[0], 0.0)
    target = largest_remainder(some / some.sum(), len(serving))
    after = held.copy()
    for i, s in moves:
        after[i] = s
    got = np.bincount(after[serving], minlength=profiles)
    wrong = len(serving) - int(np.minimum(got, target).sum())
    best = best_by_trial(held[serving], receiving[serving], slots[serving], target, move_bytes)
    assert (wrong, sum(prices)) == best


def test_regions_do_not_mix_and_ties_go_to_lower_indices():
    move_bytes = np.array([[0, 5], [0, 0]])
    shares = np.array([[0.5, 0.5], [0.0, 1.0]])
    region = np.array([1, 0, 0, 1, 0, 0])
    some = np.ones(6, dtype=np.bool_)
    slots = np.ones((6, 2), dtype=np.int64)
    held = np.zeros(6, dtype=np.int64)
    moves = cheapest_moves(shares, region, some, ~some, held, slots, move_bytes)
    assert moves == [(0, 1), (1, 1), (2, 1), (3, 1)]
    held[4] = held[5] = 1
    held[1] = 1
    moves = cheapest_moves(shares, region, some, ~some, held, slots, move_bytes)
    assert moves == [(1, 0), (0, 1), (3, 1)], "the cheapest come first"
