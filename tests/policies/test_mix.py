import numpy as np
import pytest

from edgegym.policies import Policy, make_policy
from edgegym.policies.mix import FixedMixPolicy
from edgegym.world import Scenario, preset
from tests.policies.observations import make_observation

SCENARIO = preset("stationary")
NODES, PROFILES = 25, 8


def follow(policy: Policy, scenario: Scenario, held: np.ndarray, steps: int) -> list[np.ndarray]:
    """Let each move be complete in the next observation; return the placements."""
    held, state = held.copy(), None
    placements = [held.copy()]
    for _ in range(steps):
        action, state = policy.predict(make_observation(scenario, held), state)
        if action < held.size * len(scenario.profiles):
            node, profile = divmod(int(action), len(scenario.profiles))
            assert held[node] != profile
            held[node] = profile
        placements.append(held.copy())
    return placements


def test_uniform_reaches_equal_shares_in_the_fewest_moves_and_holds() -> None:
    start = np.zeros(NODES, dtype=int)
    placements = follow(make_policy("uniform", SCENARIO), SCENARIO, start, 26)
    counts = [np.bincount(p, minlength=PROFILES) for p in placements]
    assert counts[21].tolist() == [4, 3, 3, 3, 3, 3, 3, 3]
    assert counts[20].tolist() != counts[21].tolist()
    for later in placements[22:]:
        np.testing.assert_array_equal(later, placements[21])


def test_the_largest_deficit_is_closed_first() -> None:
    mix = np.array([0.2, 0.0, 0.56, 0.24, 0.0, 0.0, 0.0, 0.0])  # 5, 14 and 6 nodes
    held = np.array([0] * 5 + [3] * 6 + [4] * 14)
    for seed in range(8):
        action, _ = FixedMixPolicy(SCENARIO, mix, seed).predict(make_observation(SCENARIO, held))
        node, profile = divmod(int(action), PROFILES)
        assert profile == 2
        assert held[node] == 4  # the only surplus


def test_nodes_are_picked_at_random_by_the_seed() -> None:
    held = np.zeros(NODES, dtype=int)
    row = make_observation(SCENARIO, held)
    chosen = {int(make_policy("uniform", SCENARIO, seed).predict(row)[0]) for seed in range(20)}
    assert len(chosen) > 5


def test_a_move_that_is_too_expensive_waits_for_cheaper_ones() -> None:
    # One node should go none -> deep_1 (7 GiB), one deep_2 -> deep_3 (3 GiB): the bucket has 4.5.
    mix = np.zeros(PROFILES)
    mix[[2, 4]] = np.array([24, 1]) / 25
    held = np.full(NODES, 2)
    held[0], held[1] = 0, 3
    policy = FixedMixPolicy(SCENARIO, mix)
    action, _ = policy.predict(make_observation(SCENARIO, held, bucket_fill=0.5))
    assert int(action) in (1 * PROFILES + 2, 1 * PROFILES + 4)
    action, _ = policy.predict(make_observation(SCENARIO, held, bucket_fill=0.0))
    assert action == NODES * PROFILES


def test_nodes_that_are_down_do_not_count() -> None:
    held = np.array([0] * 4 + list(np.repeat(np.arange(1, 8), 3)))
    down = [0]  # 24 nodes are up: three of each are wanted, and there are
    action, _ = make_policy("uniform", SCENARIO).predict(
        make_observation(SCENARIO, held, down=down)
    )
    assert action == NODES * PROFILES


@pytest.mark.parametrize("name", ["uniform", "static"])
def test_a_single_profile_leaves_nothing_to_do(name: str) -> None:
    scenario = SCENARIO.with_overrides({"nodes.count": 3})
    one = Scenario(
        **{
            **scenario.document(),
            "profiles": [{"name": "none"}],
            "initial": {"mix": {"none": 1.0}},
        }
    )
    action, _ = make_policy(name, one).predict(make_observation(one, np.zeros(3, dtype=int)))
    assert action == 3
