"""Pains of people who use environments of others: each shown to be absent."""

import multiprocessing
import tomllib
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from packaging.requirements import Requirement

import edgegym
from edgegym.envs.info import INFO_KEYWORDS
from edgegym.envs.placement import PlacementEnv
from edgegym.envs.vector import PlacementVectorEnv
from edgegym.world import ScenarioError, preset
from tests.envs.workers import ENV_ID, SHORT, run_episode

IDS = [name for name in gym.registry if name.startswith("EdgeGym/")]
PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawned_workers_find_the_environments(method):
    with multiprocessing.get_context(method).Pool(1) as pool:
        there = pool.apply(run_episode, (5,))
    assert there == run_episode(5)


def test_registering_twice_does_no_harm():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        edgegym.register()
        edgegym.register()
    assert len(IDS) == len(set(IDS)) >= 2


def test_reset_seed_is_obeyed():
    starts = []
    for _ in range(2):
        env = PlacementEnv("moving-hotspot", overrides=SHORT)
        starts.append([env.reset(seed=seed)[0].tobytes() for seed in (1, None, None, 2)])
    assert starts[0] == starts[1], "same seed, same episode; and so are those that follow"
    assert len(set(starts[0])) == 4


def test_observations_and_masks_are_never_reused_buffers():
    env = PlacementEnv("moving-hotspot", overrides=SHORT)
    first, info = env.reset(seed=0)
    kept, mask = first.copy(), info["action_mask"].copy()
    second, *_, again = env.step(int(np.flatnonzero(mask)[0]))
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(info["action_mask"], again["action_mask"])
    np.testing.assert_array_equal(first, kept)
    np.testing.assert_array_equal(info["action_mask"], mask)
    assert not np.array_equal(first, second)


def test_dependency_pins_leave_room():
    needed = {Requirement(text).name: Requirement(text) for text in PROJECT["dependencies"]}
    for version in ("1.1.0", "1.2.2", gym.__version__):
        assert needed["gymnasium"].specifier.contains(version)
    assert not needed["gymnasium"].specifier.contains("2.0")
    assert needed["numpy"].specifier.contains("2.3")
    others = {"stable-baselines3", "sb3-contrib", "torch", "pettingzoo", "ray"}
    assert not others & set(needed), "they are extras, whose pins bind only who asks for them"


def test_wrappers_hide_nothing_that_is_needed():
    env = gym.wrappers.RecordEpisodeStatistics(gym.make(ENV_ID, scenario="toy"))
    _, info = env.reset(seed=0)
    np.testing.assert_array_equal(env.get_wrapper_attr("action_masks")(), info["action_mask"])
    assert env.unwrapped.layout is env.get_wrapper_attr("layout")
    env.close()


def test_configuration_cannot_change_unnoticed():
    overrides = {"nodes.count": 3}
    env = PlacementEnv("toy", overrides=overrides)
    overrides["nodes.count"] = 9
    env.reset(seed=0)
    assert env.fleet.state.node_count[0] == 3
    with pytest.raises(ValueError, match="frozen"):
        env.scenario.demand.rate_per_node = 9.0
    with pytest.raises(AttributeError):
        env.scenario = preset("toy")
    with pytest.raises(ScenarioError, match=r"nodes\.cuont: unknown key"):
        PlacementEnv("toy", overrides={"nodes.cuont": 3})


def test_no_float_warnings_and_nothing_outside_its_space():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in IDS:
            env = gym.make(f"edgegym:{name}", scenario="toy")
            check_env(env.unwrapped, skip_render_check=True)
            assert env.observation_space.dtype == np.float32
            assert (env.observation_space.low < env.observation_space.high).all()
            env.close()


def test_spaces_are_flat_and_of_one_size():
    env = PlacementEnv("paper", overrides=SHORT)  # a random number of nodes
    sizes = set()
    for seed in range(4):
        observation, info = env.reset(seed=seed)
        assert observation.shape == env.observation_space.shape == (env.layout.size,)
        assert info["action_mask"].shape == (env.action_space.n,)
        sizes.add(int(env.fleet.state.node_count[0]))
    assert len(sizes) > 1


def test_masks_know_the_shared_budget():
    env = PlacementEnv("moving-hotspot", overrides={"control.moves_per_epoch": 25})
    _, info = env.reset(seed=0)
    world = env.fleet.world
    dearer = 0
    while env.epoch == 0:
        mask = info["action_mask"][:-1].reshape(env.layout.num_nodes, -1)
        prices = world.move_bytes[env.fleet.state.profile[0]]
        assert (prices[mask] <= env.fleet.bucket_bytes).all()
        paid = np.argwhere(mask & (prices > 0))
        action = env.actions.encode(*map(int, paid[0])) if len(paid) else env.actions.no_op
        *_, info = env.step(action)
        dearer += int((~mask & (prices > env.fleet.bucket_bytes)).any())
        assert info["illegal_actions"] == 0
    assert dearer, "one move must have made another too dear"


def test_a_time_limit_is_no_terminal():
    env = PlacementEnv("toy", overrides=SHORT)
    env.reset(seed=0)
    ends = [env.step(env.actions.no_op)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_autoreset_is_declared_and_as_declared(mode):
    env = PlacementVectorEnv(2, "toy", overrides=SHORT, autoreset_mode=mode)
    assert env.metadata["autoreset_mode"] is mode
    no_op = np.full(2, env.actions.no_op)
    env.reset(seed=0)
    for _ in range(3):
        *_, truncated, infos = env.step(no_op)
    assert truncated.all()
    assert ("final_obs" in infos) == (mode == AutoresetMode.SAME_STEP)
    if mode == AutoresetMode.NEXT_STEP:
        _, rewards, _, truncated, infos = env.step(no_op)
        assert not rewards.any()
        assert not truncated.any()
    if mode == AutoresetMode.DISABLED:
        assert infos["episode_arrivals"].all()
        with pytest.raises(gym.error.ResetNeeded):
            env.step(no_op)
    else:
        assert not infos["episode_arrivals"].any(), "a new episode has begun"
    env.close()


def test_rendering_needs_no_display(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    env = gym.make(ENV_ID, scenario="toy", render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render()
    assert picture.dtype == np.uint8
    assert picture.std() > 0.0
    env.close()


def test_info_has_the_same_scalars_in_every_step():
    env = PlacementEnv("toy", overrides=SHORT)
    _, info = env.reset(seed=0)
    keys = list(info)
    assert set(INFO_KEYWORDS) < set(keys)
    for _ in range(4):
        *_, info = env.step(env.actions.no_op)
        assert list(info) == keys
        assert all(np.isscalar(info[key]) for key in keys if key != "action_mask")


@pytest.mark.parametrize("name", IDS)
def test_a_version_says_what_it_promises(name):
    version = name.rsplit("-", 1)[1]
    env = gym.make(f"edgegym:{name}")
    history = type(env.unwrapped).__doc__.split("## Version History")[1]
    assert f"* {version}:" in history
    env.close()
