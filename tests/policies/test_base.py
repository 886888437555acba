import pickle

import numpy as np
import pytest

from edgegym.interface.layout import ObservationLayout
from edgegym.policies import Policy, make_policy, policies
from edgegym.policies.base import CounterRandom
from edgegym.world import ScenarioError, preset
from tests.policies.observations import make_observation

SCENARIO = preset("moving-hotspot")
NODES, PROFILES = 25, 8
NO_OP = NODES * PROFILES


class Counter(Policy):
    """Remembers how often it was asked and the action it took; moves a random node."""

    def begin(self, view):
        return (np.int64(0), np.zeros(2))

    def decide(self, view, memory, random):
        count, actions = memory
        action = random.choice(np.append(np.flatnonzero(view.legal), view.no_op))
        return action, (count + 1, np.array([actions[1], float(action)]))


def observations(count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.stack(
        [
            make_observation(
                SCENARIO,
                rng.integers(0, PROFILES, NODES),
                receiving=rng.choice(NODES, 4, replace=False),
                down=rng.choice(NODES, 3, replace=False),
                bucket_fill=rng.random(),
                family_rates_per_s=rng.uniform(1.0, 20.0, 7),
            )
            for _ in range(count)
        ]
    )


def rollout(policy: Policy, rows: np.ndarray, **kwargs) -> list[int]:
    state, actions = None, []
    for row in rows:
        action, state = policy.predict(row, state, **kwargs)
        actions.append(action)
    return actions


def test_one_observation_gives_one_integer_and_a_batch_a_vector() -> None:
    rows = observations(3)
    for name in ("random", "static", "uniform"):
        policy = make_policy(name, SCENARIO)
        action, state = policy.predict(rows[0])
        assert isinstance(action, np.int64)
        assert all(len(array) == 1 for array in state)
        actions, states = policy.predict(rows)
        assert actions.shape == (3,)
        assert actions.dtype == np.int64
        assert all(len(array) == 3 for array in states)


def test_a_batch_is_its_rows() -> None:
    rows = observations(12).reshape(4, 3, -1)
    policy = Counter(SCENARIO, seed=3)
    state = None
    together = []
    for step in rows:
        actions, state = policy.predict(step, state)
        together.append(actions)
    for column in range(3):
        alone, lone_state = [], None
        for step in rows:
            action, lone_state = policy.predict(step[column], lone_state)
            alone.append(action)
        assert alone == [actions[column] for actions in together]
        for array, lone in zip(state, lone_state, strict=True):
            np.testing.assert_array_equal(array[column], lone[0])


def test_the_same_seed_repeats_and_another_differs() -> None:
    rows = np.repeat(observations(1), 20, axis=0)
    first = rollout(make_policy("random", SCENARIO, seed=1), rows)
    policy = make_policy("random", SCENARIO, seed=1)
    assert rollout(policy, rows) == first
    assert rollout(policy, rows) == first  # the object kept nothing
    assert rollout(make_policy("random", SCENARIO, seed=2), rows) != first
    assert len(set(first)) > 5  # steps differ


def test_episodes_that_begin_differently_draw_differently() -> None:
    first, second = observations(2)
    policy = Counter(SCENARIO)
    rest = np.repeat(observations(1), 20, axis=0)
    assert rollout(policy, [first, *rest])[1:] != rollout(policy, [second, *rest])[1:]


def test_episode_start_resets_only_its_rows() -> None:
    rows = observations(2)
    policy = Counter(SCENARIO)
    _, state = policy.predict(rows)
    _, state = policy.predict(rows, state)
    actions, reset = policy.predict(rows, state, episode_start=np.array([True, False]))
    fresh, _ = policy.predict(rows)
    kept, _ = policy.predict(rows, state)
    assert reset[2].tolist() == [1, 3]
    assert actions.tolist() == [fresh[0], kept[1]]
    single, lone = policy.predict(rows[0], tuple(a[:1] for a in state), episode_start=True)
    assert single == fresh[0]
    assert lone[2].tolist() == [1]


def test_predict_leaves_state_and_observation_alone() -> None:
    rows = observations(2)
    policy = Counter(SCENARIO)
    _, state = policy.predict(rows)
    before = [array.copy() for array in state], rows.copy()
    policy.predict(rows, state)
    for array, copy in zip((*state, rows), (*before[0], before[1]), strict=True):
        np.testing.assert_array_equal(array, copy)


def test_masks_decide_what_is_legal() -> None:
    row = make_observation(SCENARIO, np.zeros(NODES, dtype=int))
    mask = np.zeros(NO_OP + 1, dtype=bool)
    mask[[17, NO_OP]] = True
    policy = make_policy("random", SCENARIO)
    state, chosen = None, set()
    for _ in range(30):
        action, state = policy.predict(row, state, action_masks=mask)
        chosen.add(int(action))
    assert chosen == {17, NO_OP}
    actions, _ = policy.predict(np.stack([row, row]), action_masks=np.stack([mask, mask]))
    assert set(actions.tolist()) <= {17, NO_OP}


def test_without_masks_legality_comes_from_the_observation() -> None:
    held = np.arange(NODES) % PROFILES
    row = make_observation(SCENARIO, held, receiving=[3], down=[5], bucket_fill=0.4)
    legal = Counter(SCENARIO)._reader.view(row).legal
    move_bytes = SCENARIO.compile().move_bytes
    level = 0.4 * SCENARIO.migration.burst_bytes
    for node in range(NODES):
        for profile in range(PROFILES):
            expected = (
                node not in (3, 5)
                and profile != held[node]
                and move_bytes[held[node], profile] <= level
            )
            assert legal[node, profile] == expected, (node, profile)
    assert 0 < legal.sum() < legal.size


def test_a_clock_at_the_end_is_ignored() -> None:
    row = observations(1)[0]
    clocked = np.append(row, np.float32([0.3, 0.7]))
    assert len(clocked) == ObservationLayout.from_scenario(SCENARIO, observe_clock=True).size
    policy = make_policy("random", SCENARIO)
    assert policy.predict(clocked)[0] == policy.predict(row)[0]


def test_policies_survive_pickling() -> None:
    row = observations(1)[0]
    for name in ("random", "static", "uniform"):
        policy = make_policy(name, SCENARIO, seed=5)
        copy = pickle.loads(pickle.dumps(policy))
        assert copy.predict(row)[0] == policy.predict(row)[0]


def test_counter_random_is_a_function_of_its_key() -> None:
    def draw(*key: int) -> list[float]:
        return CounterRandom(*key).generator().random(3).tolist()

    assert draw(1, 2, 3) == draw(1, 2, 3)
    assert len({tuple(draw(*key)) for key in ((1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4))}) == 4
    assert CounterRandom(0, 0, 0).choice(np.array([7])) == 7


@pytest.mark.parametrize("shape", [(1066,), (2, 1066), (0, 1067), (1, 1, 1067), ()])
def test_a_wrong_observation_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"observation has .*(1067|no rows)"):
        make_policy("static", SCENARIO).predict(np.zeros(shape, dtype=np.float32))


def test_wrong_masks_states_and_starts_are_refused() -> None:
    policy = make_policy("static", SCENARIO)
    rows = observations(2)
    with pytest.raises(ValueError, match=r"action_masks has shape \(201,\): 2 observation"):
        policy.predict(rows, action_masks=np.ones(NO_OP + 1, dtype=bool))
    with pytest.raises(ValueError, match=r"201 \(nodes x profiles \+ 1\)"):
        policy.predict(rows[0], action_masks=np.ones(NO_OP, dtype=bool))
    with pytest.raises(ValueError, match="batch of 2"):
        policy.predict(rows[0], policy.predict(rows)[1])
    with pytest.raises(ValueError, match=r"episode_start has shape \(3,\)"):
        policy.predict(rows, episode_start=np.zeros(3, dtype=bool))


def test_unknown_names_and_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'analitic'.*random, static, uniform, static_optimal"):
        make_policy("analitic", SCENARIO)
    with pytest.raises(ValueError, match="seed is -1"):
        make_policy("static", SCENARIO, seed=-1)
    with pytest.raises(ScenarioError, match="nowhere"):
        make_policy("static", "nowhere")
    assert policies() == (
        "random",
        "static",
        "uniform",
        "static_optimal",
        "analytic",
        "analytic_local",
        "analytic_mpc",
        "lru",
        "greedy_lookahead",
        "clairvoyant",
    )
