import copy
import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.envs.info import EPOCH_KEYS, INFO_KEYWORDS
from edgegym.envs.placement import PlacementEnv
from edgegym.envs.regional_mix import RegionalMixEnv
from edgegym.world import preset, presets
from edgegym.world.rounding import largest_remainder
from tests.envs.worlds import REWARDS, SEEDS, budget_holds, worlds

ENV_ID = "edgegym:EdgeGym/RegionalMix-v0"
SHORT = {"control.horizon_epochs": 4, "initial.warmup_s": 1.0, "control.epoch_s": 1.0}
PLENTY = {"migration.burst_bytes": 10**13, "control.moves_per_epoch": 1000}


def make(name="moving-hotspot", regions=(2, 2), **overrides):
    return RegionalMixEnv(name, overrides=SHORT | overrides, regions=regions)


def trace(env, seed, count):
    """Step `count` random actions; return copies of everything that came back."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        observation, *rest = env.step(rng.uniform(-1.0, 1.0, env.actions.size))
        rows.append((observation.tobytes(), *rest))
    return rows


@pytest.mark.parametrize("name", presets())
def test_an_episode_holds_together(name):
    env = make(name, **PLENTY)
    observation, info = env.reset(seed=1)
    rng = np.random.default_rng(0)
    assert set(info) == {*EPOCH_KEYS, *INFO_KEYWORDS}
    total = dict.fromkeys(EPOCH_KEYS, 0)
    rewards, truncated, epochs = 0.0, False, 0
    while not truncated:
        assert observation in env.observation_space
        for feature in env.layout.features:
            assert np.isfinite(env.layout.decode(observation, feature.name)).all()
        action = rng.uniform(-1.0, 1.0, env.actions.size)
        observation, reward, terminated, truncated, info = env.step(action)
        assert terminated is False
        assert reward == info["reward_service"] + info["reward_migration"]
        rewards += reward
        epochs += 1
        for key in EPOCH_KEYS:
            total[key] += info[key]
    assert epochs == 4
    for key in INFO_KEYWORDS:
        assert info[key] == pytest.approx(total[key.removeprefix("episode_")])
    assert info["episode_illegal_actions"] == 0
    expected = env.scenario.compile().mean_rate_per_s * env.scenario.control.epoch_s
    assert rewards == pytest.approx(info["episode_hits"] / expected)
    assert env.episode_stats.arrivals == info["episode_arrivals"]
    assert env.episode_stats.bytes_moved == info["episode_bytes_moved"]


def test_seeds_and_the_world_are_those_of_placement():
    runs = []
    for seed in (3, 3, 4):
        env = make()
        first, _ = env.reset(seed=seed)
        runs.append((first.tobytes(), trace(env, 0, 4), env.reset()[0].tobytes()))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]
    placement = PlacementEnv("moving-hotspot", overrides=SHORT)
    placement.reset(seed=3)
    env.reset(seed=3)
    for field in ("node_x", "node_y", "profile", "queued", "bucket_bytes"):
        np.testing.assert_array_equal(
            getattr(env.fleet.state, field), getattr(placement.fleet.state, field)
        )


@pytest.mark.parametrize("way", ["state", "fork", "deepcopy", "pickle"])
def test_copies_continue_identically(way):
    env = make(regions=(1, 3))
    env.reset(seed=11)
    trace(env, 0, 3)
    if way == "state":
        twin = make(regions=(1, 3))
        twin.set_state(env.get_state())
    elif way == "fork":
        twin = env.fork()
    elif way == "deepcopy":
        twin = copy.deepcopy(env)
    else:
        twin = pickle.loads(pickle.dumps(env))
    assert twin.regions == env.regions
    assert trace(env, 1, 3) == trace(twin, 1, 3)
    np.testing.assert_array_equal(env.reset()[0], twin.reset()[0])
    assert trace(env, 2, 2) == trace(twin, 2, 2)


def check_observation(env, observation):
    """Hold an observation against the fleet it speaks of."""
    assert observation in env.observation_space
    state, layout = env.fleet.state, env.layout
    count = int(state.node_count[0])
    region = env.regions.of(state.node_x[0, :count], state.node_y[0, :count])
    serves = state.up[0, :count] & (state.slots[0, :count] > 0).any(axis=1)
    for feature in layout.features:
        decoded = layout.decode(observation, feature.name)
        assert np.isfinite(decoded).all()
        assert (decoded >= 0.0).all()
    nodes = layout.decode(observation, "nodes")[:, 0]
    for r in range(env.regions.size):
        here = serves & (region == r)
        assert nodes[r] == pytest.approx(here.sum(), rel=1e-5)
        held = np.bincount(state.profile[0, :count][here], minlength=layout.num_profiles)
        share = layout.decode(observation, "share")[r]
        np.testing.assert_allclose(share, held / max(here.sum(), 1), rtol=1e-6)
        np.testing.assert_allclose(
            layout.decode(observation, "demand")[r],
            env.demand_per_s[:count][region == r].sum(axis=0),
            rtol=1e-5,
        )


@settings(max_examples=25)
@given(
    scenario=worlds(),
    regions=st.sampled_from([(1, 1), (2, 2), (3, 1)]),
    seed=SEEDS,
    reward=REWARDS,
    clock=st.booleans(),
)
def test_in_every_world_the_budget_holds_and_the_cheapest_moves_start(
    scenario, regions, seed, reward, clock
):
    env = RegionalMixEnv(scenario, regions=regions, reward=reward, observe_clock=clock)
    moves = scenario.control.moves_per_epoch
    world = env.scenario.compile()
    observation, _ = env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    spent = []
    for _ in range(6):
        check_observation(env, observation)
        action = rng.uniform(-1.0, 1.0, env.actions.size)
        before, level = env.fleet.state.profile[0].copy(), env.fleet.bucket_bytes
        planned = env.planned_moves(action)
        prices = [int(world.move_bytes[before[i], s]) for i, s in planned]
        assert prices == sorted(prices)
        affordable = 0
        while affordable < min(len(prices), moves) and sum(prices[: affordable + 1]) <= level:
            affordable += 1
        spent.append((env.fleet.now_s, sum(prices[:affordable])))
        probe = env.fleet.fork()
        for i, s in planned[:affordable]:
            probe.start_move(i, s)
        observation, *_, info = env.step(action)
        probe.advance(scenario.control.epoch_s)
        np.testing.assert_array_equal(env.fleet.state.profile[0], probe.state.profile[0])
        assert info["moves"] == affordable
        assert info["bytes_moved"] == sum(prices[:affordable]) <= level
        assert budget_holds(spent, scenario)


def test_a_steady_target_is_reached_and_held():
    env = make(**PLENTY, **{"control.epoch_s": 20.0})
    env.reset(seed=5)
    rng = np.random.default_rng(5)
    shares = rng.dirichlet(np.ones(env.actions.num_profiles), 4)
    action = env.actions.encode(shares)
    for _ in range(6):
        *_, info = env.step(action)
    assert info["moves"] == 0
    state = env.fleet.state
    region = env.regions.of(state.node_x[0], state.node_y[0])
    for r in range(4):
        held = state.profile[0, region == r]
        target = largest_remainder(env.actions.decode(action)[r], len(held))
        np.testing.assert_array_equal(np.bincount(held, minlength=len(target)), target)


def test_nodes_without_gpu_or_out_of_order_never_move():
    env = make("mixed-fleet", **PLENTY)
    env.reset(seed=2)
    rng = np.random.default_rng(2)
    slots = env.fleet.state.slots[0]
    idle = ~(slots > 0).any(axis=1)
    assert idle.any(), "this test needs access points without GPU"
    env.fleet.state.up[0, :5] = False
    for _ in range(6):
        for node, profile in env.planned_moves(rng.uniform(-1.0, 1.0, env.actions.size)):
            assert node >= 5
            assert not idle[node]
            assert slots[node, profile] > 0


def test_nodes_that_fail_and_come_back_are_planned_for():
    often = {"failures.nodes.mean_up_s": 3.0, "failures.nodes.mean_down_s": 2.0}
    env = make("node-failures", **PLENTY, **often)
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    counts = set()
    for _ in range(8):
        action = rng.uniform(-1.0, 1.0, env.actions.size)
        up = env.fleet.state.up[0].copy()
        planned = env.planned_moves(action)
        assert all(up[node] for node, _ in planned)
        observation, _, _, _, info = env.step(action)
        assert info["moves"] == len(planned)
        assert observation in env.observation_space
        nodes = env.layout.decode(observation, "nodes").sum()
        assert nodes == pytest.approx(env.fleet.state.up[0].sum(), rel=1e-5)
        counts.add(round(nodes))
    assert len(counts) > 2


def test_caches_of_serving_engines_are_left_alone():
    document = preset("toy").document()
    document["cache"] = {"kind": "lru", "budget_bytes": 2 * 10**9}
    env = RegionalMixEnv(type(preset("toy")).from_document(document), overrides=SHORT | PLENTY)
    env.reset(seed=0)
    assert all(row[-1]["moves"] == 0 for row in trace(env, 0, 3))


@pytest.mark.parametrize("action", [np.full(32, 1.5), np.full(32, np.nan), np.zeros(3)])
def test_action_outside_the_space_is_an_error_and_changes_nothing(action):
    env = make()
    env.reset(seed=0)
    twin = env.fork()
    with pytest.raises(ValueError, match="action"):
        env.step(action)
    assert trace(env, 0, 2) == trace(twin, 0, 2)


def test_before_reset_every_use_says_so():
    env = make("toy")
    for use in (lambda: env.step(np.zeros(env.actions.size)), lambda: env.fleet):
        with pytest.raises(ResetNeeded, match="call reset"):
            use()


def test_bad_regions_are_named():
    with pytest.raises(ValueError, match=r"regions is \(0, 2\)"):
        RegionalMixEnv("toy", regions=(0, 2))
    with pytest.raises(TypeError, match="regions is 4"):
        RegionalMixEnv("toy", regions=4)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("mode", list(gym.vector.AutoresetMode))
def test_sync_vector_environment_in_each_autoreset_mode(mode):
    env = gym.make_vec(
        ENV_ID,
        num_envs=2,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        scenario="toy",
        overrides=SHORT,
    )
    observations, _ = env.reset(seed=[1, 2])
    assert not np.array_equal(observations[0], observations[1])
    for step in range(1, 10):
        observations, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observations in env.observation_space
        assert not terminated.any()
        if truncated.all() and mode == gym.vector.AutoresetMode.DISABLED:
            env.reset(options={"reset_mask": truncated})
        assert truncated.all() == (step in {4, 9 if mode.value == "NextStep" else 8})
        assert np.isfinite(rewards).all()
    env.close()


def test_it_draws_itself():
    env = gym.make(ENV_ID, scenario="toy", overrides=SHORT, render_mode="rgb_array").unwrapped
    env.reset(seed=0)
    env.step(env.action_space.sample())
    frame = env.render()
    assert frame.shape == (540, 960, 3)
    assert frame.std() > 0
    env.close()


def test_docstring_example_runs(capsys):
    source = RegionalMixEnv.__doc__.split("```python")[1].split("```")[0]
    exec("\n".join(line[4:] for line in source.splitlines()), {})
    assert 0.0 < float(capsys.readouterr().out) <= 1.0
