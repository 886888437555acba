import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from edgegym.envs.checks import STATE_KEYS
from edgegym.envs.info import EPOCH_KEYS, INFO_KEYWORDS
from edgegym.envs.placement import PlacementEnv
from edgegym.envs.vector import PlacementVectorEnv
from edgegym.interface.reward import CoverageReward
from edgegym.world import Scenario, ScenarioError, preset, presets

SHORT = {"control.horizon_epochs": 6, "initial.warmup_s": 5.0}


def make(name="moving-hotspot", **overrides):
    return PlacementEnv(name, overrides=SHORT | overrides)


def random_actions(env, rng, count):
    """Choose legal moves where there are some; a policy in terms of the mask alone."""
    for _ in range(count):
        yield int(rng.choice(np.flatnonzero(env.action_masks())))


def trace(env, rng, count):
    """Step `count` random legal actions; return copies of everything that came back."""
    rows = []
    for action in random_actions(env, rng, count):
        observation, reward, terminated, truncated, info = env.step(action)
        mask = info.pop("action_mask")
        rows.append((action, observation.copy(), reward, terminated, truncated, info, mask.copy()))
    return rows


def assert_same(left, right):
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert a[0] == b[0]
        np.testing.assert_array_equal(a[1], b[1])
        assert a[2:6] == b[2:6]
        np.testing.assert_array_equal(a[6], b[6])


@pytest.mark.parametrize("name", presets())
def test_an_episode_holds_together(name):
    env = make(name)
    rng = np.random.default_rng(0)
    observation, info = env.reset(seed=1)
    first_keys = set(info)
    assert first_keys == {*EPOCH_KEYS, *INFO_KEYWORDS, "action_mask"}
    total = dict.fromkeys(EPOCH_KEYS, 0)
    rewards = 0.0
    epochs = 0
    truncated = False
    while not truncated:
        assert observation in env.observation_space
        np.testing.assert_array_equal(info["action_mask"], env.action_masks())
        assert env.action_masks()[env.actions.no_op]
        action = next(random_actions(env, rng, 1))
        observation, reward, terminated, truncated, info = env.step(action)
        assert terminated is False
        assert set(info) == first_keys
        assert all(np.isfinite(info[key]) for key in first_keys - {"action_mask"})
        rewards += reward
        epochs += 1
        for key in EPOCH_KEYS:
            total[key] += info[key]
        assert reward == info["reward_service"] + info["reward_migration"]
    assert epochs == 6
    for key in INFO_KEYWORDS:
        assert info[key] == pytest.approx(total[key.removeprefix("episode_")])
    assert info["episode_illegal_actions"] == 0
    expected = env.scenario.compile().mean_rate_per_s * env.scenario.control.epoch_s
    assert rewards == pytest.approx(info["episode_hits"] / expected)
    stats = env.episode_stats
    assert stats.arrivals == info["episode_arrivals"]
    assert stats.hits == info["episode_hits"]
    assert stats.bytes_moved == info["episode_bytes_moved"]
    assert stats.seconds == pytest.approx(6 * env.scenario.control.epoch_s)


def test_same_seed_same_bits_other_seed_differs():
    runs = []
    for seed in (3, 3, 4):
        env = make()
        first, _ = env.reset(seed=seed)
        runs.append((first.copy(), trace(env, np.random.default_rng(0), 6)))
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert_same(runs[0][1], runs[1][1])
    assert not np.array_equal(runs[0][0], runs[2][0])


def test_requests_are_the_same_under_any_policy():
    arrivals = []
    for policy in ("move", "stay"):
        env = make()
        _, info = env.reset(seed=7)
        rng = np.random.default_rng(1)
        rows = []
        for _ in range(6):
            legal = np.flatnonzero(info["action_mask"])
            action = int(rng.choice(legal)) if policy == "move" else env.actions.no_op
            *_, info = env.step(action)
            rows.append(info["arrivals"])
        arrivals.append((rows, env.episode_stats.nearest_demand, info["episode_moves"]))
    assert arrivals[0][0] == arrivals[1][0]
    np.testing.assert_array_equal(arrivals[0][1], arrivals[1][1])
    assert arrivals[0][2] > 0
    assert arrivals[1][2] == 0


def test_demand_estimate_follows_the_counted_requests():
    env = make()
    observation, _ = env.reset(seed=4)
    for _ in range(3):
        before = env.layout.decode(observation, "demand")
        counted = env.episode_stats.nearest_demand if env.episode_stats else 0
        observation, *_ = env.step(env.actions.no_op)
        counts = env.episode_stats.nearest_demand - counted
        assert counts.sum() > 0
        expected = before + (1.0 - np.exp(-5.0 / 30.0)) * (counts / 5.0 - before)
        np.testing.assert_allclose(env.layout.decode(observation, "demand"), expected, rtol=1e-5)
    prior = env.layout.feature("demand").scale
    start = env.layout.decode(make().reset(seed=4)[0], "demand")
    assert not np.allclose(start, prior), "the warm-up must have been counted"


def test_illegal_action_runs_the_epoch_as_a_no_op():
    env, idle = make(), make()
    env.reset(seed=2)
    idle.reset(seed=2)
    illegal = int(np.flatnonzero(~env.action_masks())[0])
    one, two = env.step(illegal), idle.step(idle.actions.no_op)
    np.testing.assert_array_equal(one[0], two[0])
    assert one[1] == two[1]
    assert one[4]["illegal_actions"] == one[4]["episode_illegal_actions"] == 1
    assert two[4]["illegal_actions"] == 0


@pytest.mark.parametrize("action", [-1, 201, 10**9])
def test_action_outside_the_space_is_an_error(action):
    env = make()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=f"action is {action}: it must lie in 0..200"):
        env.step(action)


@pytest.mark.parametrize("action", [1.5, "0", None, np.array([0, 1]), True])
def test_action_that_is_not_an_integer_is_an_error(action):
    env = make()
    env.reset(seed=0)
    with pytest.raises(TypeError, match="action is"):
        env.step(action)


def test_clock_stands_still_until_the_last_move():
    env = make(**{"control.moves_per_epoch": 3, "migration.burst_bytes": 10**12})
    _, info = env.reset(seed=0)
    rng = np.random.default_rng(0)
    now_s = env.fleet.now_s
    for move in range(3):
        action = int(rng.choice(np.flatnonzero(info["action_mask"])[:-1]))
        observation, reward, _, _, info = env.step(action)
        if move < 2:
            assert env.fleet.now_s == now_s
            assert reward == 0.0
            assert all(info[key] == 0 for key in EPOCH_KEYS)
            shares = env.layout.decode(observation, "profile_share")
            held = env.fleet.state.profile[0]
            np.testing.assert_allclose(shares, np.bincount(held, minlength=8) / 25, rtol=1e-6)
    assert env.fleet.now_s == now_s + 5.0
    assert info["moves"] == 3
    env.step(action=int(np.flatnonzero(info["action_mask"])[0]))
    assert env.epoch == 1
    *_, info = env.step(env.actions.no_op)
    assert env.epoch == 2
    assert info["moves"] == 1


@pytest.mark.parametrize("way", ["state", "fork", "deepcopy", "pickle"])
def test_copies_continue_identically(way):
    env = make(**{"control.moves_per_epoch": 2})
    env.reset(seed=11)
    trace(env, np.random.default_rng(0), 5)
    if way == "state":
        twin = make(**{"control.moves_per_epoch": 2})
        twin.set_state(env.get_state())
    elif way == "fork":
        twin = env.fork()
    elif way == "deepcopy":
        twin = copy.deepcopy(env)
    else:
        twin = pickle.loads(pickle.dumps(env))
    assert_same(trace(env, np.random.default_rng(1), 4), trace(twin, np.random.default_rng(1), 4))
    # So do the episodes after this one.
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])
    assert_same(trace(env, np.random.default_rng(2), 3), trace(twin, np.random.default_rng(2), 3))


def test_state_can_be_restored_again_and_again():
    env = make()
    env.reset(seed=12)
    saved = env.get_state()
    runs = []
    for _ in range(2):
        env.set_state(saved)
        runs.append(trace(env, np.random.default_rng(0), 4))
    assert_same(*runs)


def test_fork_before_the_first_reset_starts_the_same_episodes():
    env = make()
    env.np_random  # noqa: B018 - draws the generator
    twin = env.fork()
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])


def test_before_reset_every_use_says_so():
    env = make()
    for use in (lambda: env.step(0), env.action_masks, lambda: env.fleet):
        with pytest.raises(ResetNeeded, match="call reset"):
            use()


def test_options():
    env = make()
    env.reset(seed=0, options={})
    env.reset(seed=0, options=None)
    with pytest.raises(ValueError, match="reset option 'colour' is unknown"):
        env.reset(seed=0, options={"colour": 1})
    with pytest.raises(TypeError, match="reset options are 5: they must be None or a mapping"):
        env.reset(seed=0, options=5)  # pyright: ignore[reportArgumentType]


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="render_mode is 'ansi'"):
        PlacementEnv("toy", render_mode="ansi")
    with pytest.raises(ValueError, match="reward is 'happiness'"):
        PlacementEnv("toy", reward="happiness")
    with pytest.raises(ValueError, match="nowhere"):
        PlacementEnv("nowhere")


@pytest.mark.parametrize(
    ("argument", "value"), [("observe_clock", "no"), ("observe_clock", 5), ("reward", 5)]
)
def test_arguments_of_the_wrong_type_are_named(argument, value):
    with pytest.raises(TypeError, match=f"{argument} is {value!r}: it must be"):
        PlacementEnv("toy", **{argument: value})


def test_what_is_no_state_is_refused():
    env = make("toy")
    env.reset(seed=0)
    assert tuple(env.get_state()) == STATE_KEYS
    with pytest.raises(TypeError, match="state is 5: it must be what get_state"):
        env.set_state(5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"state has no np_random, .*episode_stats: it must be"):
        env.set_state({})


@pytest.mark.parametrize("changed", ["nodes", "profiles", "not started"])
def test_a_refused_state_changes_nothing(changed):
    env = make("toy")
    env.reset(seed=0)
    before = env.fork()
    document = env.scenario.document()
    if changed == "profiles":
        document["profiles"].append({"name": "again", "vertices": []})
        other = make(Scenario.from_document(document))
    else:
        other = make("toy", **{"nodes.count": 3})
    if changed != "not started":
        other.reset(seed=1)
    with pytest.raises(ValueError, match=r"state\b.*: this"):
        env.set_state(other.get_state())
    env.reset()
    before.reset()
    rngs = np.random.default_rng(0), np.random.default_rng(0)
    assert_same(trace(env, rngs[0], 3), trace(before, rngs[1], 3))


def test_reward_strategies_and_migration_price():
    weight = {"objective.migration_weight": 2.0}
    rewards = {}
    for kind in ("coverage", "squashed_ttft", "goodput"):
        env = PlacementEnv("moving-hotspot", overrides=SHORT | weight, reward=kind)
        _, info = env.reset(seed=0)
        world, scenario = env.fleet.world, env.scenario
        prices = world.move_bytes[env.fleet.state.profile[0]]
        paid = info["action_mask"][:-1].reshape(prices.shape) & (prices > 0)
        node, profile = np.argwhere(paid)[0]
        _, reward, _, _, info = env.step(env.actions.encode(int(node), int(profile)))
        memory = 25 * scenario.hardware.usable_bytes
        assert info["reward_migration"] == pytest.approx(-2.0 * prices[node, profile] / memory)
        assert reward == info["reward_service"] + info["reward_migration"]
        rewards[kind] = (info["reward_service"], env.episode_stats)
    per_epoch = world.mean_rate_per_s * 5.0
    service, stats = rewards["coverage"]
    assert service == pytest.approx(stats.hits / per_epoch)
    service, stats = rewards["squashed_ttft"]
    squashed = 0.8 / (0.8 + stats.mean_ttft_s)
    assert service == pytest.approx(stats.first_tokens / per_epoch * squashed)
    service, stats = rewards["goodput"]
    tokens = float(world.type_share @ world.output_tokens)
    assert service == pytest.approx(stats.goodput_tokens_sum / (per_epoch * tokens))


def test_reward_without_a_value_is_refused():
    env = PlacementEnv("toy", overrides=SHORT, reward=lambda window: np.nan)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="gave nan: it must be finite"):
        env.step(env.actions.no_op)
    envs = PlacementVectorEnv(2, scenario="toy", reward=lambda window: np.nan)
    envs.reset(seed=0)
    with pytest.raises(ValueError, match="gave nan: it must be finite"):
        envs.step(np.full(2, env.actions.no_op))


def test_reward_can_be_an_object():
    env = PlacementEnv("toy", overrides=SHORT, reward=CoverageReward(expected_arrivals=1.0))
    env.reset(seed=0)
    _, reward, *_, info = env.step(env.actions.no_op)
    assert reward == info["hits"]


def test_clock_is_observed_on_request_only():
    assert not make().layout.observes_clock
    env = PlacementEnv("moving-hotspot", overrides=SHORT, observe_clock=True)
    observation, _ = env.reset(seed=0)
    assert env.layout.observes_clock
    assert observation in env.observation_space


def test_random_node_counts_are_padded_and_masked():
    scenario = preset("paper").with_overrides(SHORT)
    assert scenario.nodes.count is None, "this test needs a Poisson number of nodes"
    env = PlacementEnv(scenario)
    counts = set()
    for seed in range(4):
        observation, info = env.reset(seed=seed)
        count = int(env.fleet.state.node_count[0])
        counts.add(count)
        assert not env.layout.node_block(observation)[count:].any()
        assert not info["action_mask"][count * env.actions.num_profiles : -1].any()
        assert env.layout.decode(observation, "up").sum() == count
    assert len(counts) > 1


def test_tier_waits_are_advertised():
    env = make(**{"routing.advertised_wait": "tier"})
    env.reset(seed=0)
    assert (env.fleet.state.tier_wait_s[0] > 0.0).any()
    *_, info = env.step(env.actions.no_op)
    assert info["hits"] > 0


def test_tier_waits_of_an_overload_are_refused():
    overload = {"routing.advertised_wait": "tier", "demand.rate_per_node": 500.0}
    message = r"routing.advertised_wait = 'tier': .*demand.rate_per_node = 500 has no stable"
    with pytest.raises(ScenarioError, match=message):
        make(**overload)


def test_docstring_example_runs(capsys):
    source = (
        gym.envs.registration.load_env_creator("edgegym.envs.placement:PlacementEnv")
        .__doc__.split("```python")[1]
        .split("```")[0]
    )
    lines = [line[4:] for line in source.splitlines()]
    exec("\n".join(lines), {})
    assert 0.0 < float(capsys.readouterr().out) <= 1.0
