"""Many environments as one give, bit for bit, what as many single ones give."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from edgegym.envs.placement import PlacementEnv
from edgegym.envs.vector import PlacementVectorEnv
from edgegym.simulator import Fleet
from edgegym.simulator.batch import FleetBatch
from edgegym.threads import Crew
from edgegym.world import preset, presets
from tests.envs.workers import ENV_ID

MODES = list(AutoresetMode)


def assert_same(one, other, path="result"):
    """Compare nested results by type, keys and every bit."""
    assert type(one) is type(other), path
    if isinstance(one, dict):
        assert one.keys() == other.keys(), path
        for key in one:
            assert_same(one[key], other[key], f"{path}.{key}")
    elif isinstance(one, tuple) or (isinstance(one, np.ndarray) and one.dtype == object):
        assert len(one) == len(other), path
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs, f"{path}[]")
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype, path
        np.testing.assert_array_equal(one, other, err_msg=path)
    else:
        assert one == other, path


def both(mode, num_envs=3, scenario="toy", threads=2, **options):
    """Return single environments as Gymnasium joins them, and the native vector environment."""
    joined = SyncVectorEnv(
        [lambda: PlacementEnv(scenario, **options)] * num_envs, autoreset_mode=mode
    )
    native = PlacementVectorEnv(
        num_envs, scenario, autoreset_mode=mode, num_threads=threads, **options
    )
    return joined, native


def mixed_actions(masks, generator):
    """Return an action for each mask: mostly legal, sometimes any."""
    return np.array(
        [
            generator.choice(np.flatnonzero(mask))
            if generator.random() < 0.7
            else generator.integers(len(mask))
            for mask in masks
        ]
    )


def play_both(joined, native, steps, seed=3):
    result, mine = joined.reset(seed=seed), native.reset(seed=seed)
    assert_same(mine, result)
    generator = np.random.default_rng(1)
    masks = result[1]["action_mask"]
    for step in range(steps):
        np.testing.assert_array_equal(native.action_masks(), masks)
        actions = mixed_actions(masks, generator)
        result, mine = joined.step(actions), native.step(actions)
        for name, one, other in zip(
            ("observations", "rewards", "terminated", "truncated", "infos"),
            mine,
            result,
            strict=True,
        ):
            assert_same(one, other, f"step {step} {name}")
        masks = result[4]["action_mask"]
        ended = result[3]
        if native.autoreset_mode == AutoresetMode.DISABLED and ended.any():
            again = {"options": {"reset_mask": ended.copy()}}
            result = joined.reset(options={"reset_mask": ended.copy()})
            assert_same(native.reset(**again), result)
            masks = np.where(ended[:, None], result[1]["action_mask"], masks)
    native.close()


@pytest.mark.parametrize("moves_per_epoch", [1, 3])
@pytest.mark.parametrize("mode", MODES)
def test_same_bits_as_single_environments(mode, moves_per_epoch):
    overrides = {"control.moves_per_epoch": moves_per_epoch, "control.horizon_epochs": 6}
    play_both(*both(mode, overrides=overrides), steps=40)


@pytest.mark.parametrize("name", presets())
def test_same_bits_in_every_scenario(name):
    # "paper" among them has a random number of nodes, padded.
    overrides = {"control.horizon_epochs": 4}
    play_both(*both(AutoresetMode.SAME_STEP, 3, name, overrides=overrides), steps=10)


@pytest.mark.parametrize("reward", ["coverage", "squashed_ttft", "goodput", len])
def test_same_bits_with_other_rewards_and_the_clock(reward):
    if callable(reward):
        # A reward that only knows single windows.
        def reward(window):
            return window.coverage if window.decided else 0.5

    options = {"reward": reward, "observe_clock": True, "overrides": {"control.horizon_epochs": 4}}
    play_both(*both(AutoresetMode.NEXT_STEP, **options), steps=12)


def test_results_do_not_depend_on_the_number_of_threads():
    results = []
    for threads in (1, 3):
        env = PlacementVectorEnv(8, "toy", num_threads=threads)
        _, infos = env.reset(seed=0)
        generator = np.random.default_rng(0)
        for _ in range(25):
            result = env.step(mixed_actions(infos["action_mask"], generator))
            infos = result[4]
        results.append(result)
        env.close()
    for one, other in zip(*results, strict=True):
        assert_same(one, other)


def test_made_by_gymnasium():
    env = gym.make_vec(
        ENV_ID,
        num_envs=4,
        vectorization_mode="vector_entry_point",
        scenario="toy",
        autoreset_mode="same_step",
    )
    assert isinstance(env, PlacementVectorEnv)
    assert env.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert PlacementVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert env.spec is not None
    observations, infos = env.reset(seed=[4, 5, 6, 7])
    assert env.np_random_seed == (4, 5, 6, 7)
    assert observations in env.observation_space
    assert infos["action_mask"].shape == (4, env.single_action_space.n)
    env.action_space.seed(0)
    observations, *_ = env.step(env.action_space.sample())
    assert observations in env.observation_space
    env.close()


def test_wrappers_of_gymnasium_work():
    env = gym.wrappers.vector.RecordEpisodeStatistics(
        gym.make_vec(
            ENV_ID, 2, scenario="toy", overrides={"control.horizon_epochs": 2}, num_threads=1
        )
    )
    env.reset(seed=0)
    no_op = np.full(2, env.single_action_space.n - 1)
    env.step(no_op)
    infos = env.step(no_op)[4]
    assert infos["episode"]["l"].tolist() == [2, 2]
    env.close()


def test_episodes_go_on_without_seeds_and_differ():
    env = PlacementVectorEnv(2, "toy")
    first = env.reset(seed=1)[0]
    second = env.reset()[0]
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(env.reset(seed=1)[0], first)
    np.testing.assert_array_equal(env.reset()[0], second)
    assert not np.array_equal(PlacementVectorEnv(2, "toy").reset()[0], first)


def test_returned_arrays_are_the_callers():
    env = PlacementVectorEnv(2, "toy", num_threads=1)
    observations, infos = env.reset(seed=0)
    kept = observations.copy(), infos["action_mask"].copy()
    infos["action_mask"][:] = False  # must not change what is legal
    legal = int(np.flatnonzero(kept[1][0])[0])
    after, _, _, _, infos = env.step(np.array([legal, legal]))
    assert infos["moves"][0] == 1
    hits, total = infos["hits"].copy(), infos["episode_hits"].copy()
    env.step(np.array([env.actions.no_op] * 2))
    np.testing.assert_array_equal(observations, kept[0])
    np.testing.assert_array_equal(infos["hits"], hits)
    np.testing.assert_array_equal(infos["episode_hits"], total)
    assert not np.array_equal(after, kept[0])


def test_a_copy_continues_identically():
    env = PlacementVectorEnv(2, "toy", num_threads=2)
    env.reset(seed=0)
    no_op = np.full(2, env.actions.no_op)
    env.step(no_op)
    twin = pickle.loads(pickle.dumps(env))
    for _ in range(25):
        for one, other in zip(env.step(no_op), twin.step(no_op), strict=True):
            assert_same(one, other)


def test_what_is_refused():
    with pytest.raises(ValueError, match="num_envs is 0"):
        PlacementVectorEnv(0)
    with pytest.raises(ValueError, match="autoreset_mode is 'never': it must be one of next_step"):
        PlacementVectorEnv(1, autoreset_mode="never")
    with pytest.raises(ValueError, match='use vectorization_mode="sync"'):
        PlacementVectorEnv(1, render_mode="rgb_array")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="num_threads is 0"):
        PlacementVectorEnv(1, num_threads=0)
    env = PlacementVectorEnv(
        2, "toy", autoreset_mode="Disabled", overrides={"control.horizon_epochs": 1}
    )
    no_op = np.full(2, env.actions.no_op)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(no_op)
    with pytest.raises(ResetNeeded, match="no episode yet"):
        env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ValueError, match="seed has 3 elements: there are 2"):
        env.reset(seed=[1, 2, 3])
    with pytest.raises(ValueError, match="reset option 'mask' is unknown"):
        env.reset(options={"mask": 1})
    with pytest.raises(TypeError, match="must be an array of bool"):
        env.reset(options={"reset_mask": [True, False]})
    with pytest.raises(ValueError, match="at least one of them True"):
        env.reset(options={"reset_mask": np.zeros(2, dtype=bool)})
    env.reset(seed=0)
    with pytest.raises(TypeError, match="must be integers"):
        env.step(no_op.astype(float))
    with pytest.raises(ValueError, match="have shape"):
        env.step(no_op[:1])
    with pytest.raises(ValueError, match="action is -1 in environment 0"):
        env.step(no_op - no_op - 1)
    env.step(no_op)
    with pytest.raises(ResetNeeded, match=r"environments \[0, 1\] have ended"):
        env.step(no_op)
    with pytest.raises(AttributeError, match="have no attribute 'fleet'; they have action_masks"):
        env.get_attr("fleet")


def test_an_error_in_a_thread_reaches_the_caller():
    def work(item):
        if item == 3:
            raise RuntimeError("three")

    crew = Crew(2)
    with pytest.raises(RuntimeError, match="three"):
        crew.each(work, range(8))
    crew.close()


@pytest.mark.parametrize("threads", [1, 2])
def test_fleets_that_need_room(threads):
    """Queues that outgrow their arrays, in one fleet before the other."""
    scenario = preset("toy").with_overrides({"demand": {"request_intensity": 400.0}})
    crew = Crew(threads)
    batch = FleetBatch(scenario, 2, crew)
    records = batch.state.record_time.shape[1]
    for episode in range(2):
        seeds = [7 + episode, 8 + episode]
        batch.reset([0, 1], seeds)
        alone = [Fleet(scenario, seed=seed) for seed in seeds]
        for rows, seconds in (([0], 3.0), ([0, 1], 2.0), ([1], 3.0), ([0, 1], 4.0)):
            windows = batch.advance(np.array(rows), seconds).stats()
            for b, window in zip(rows, windows, strict=True):
                assert window == alone[b].advance(seconds)
        assert batch.state.record_time.shape[1] > records
        for b, fleet in enumerate(alone):
            np.testing.assert_array_equal(batch.state.profile[b], fleet.state.profile[0])
            np.testing.assert_array_equal(batch.state.queued[b], fleet.state.queued[0])
            assert batch.state.now[b] == fleet.now_s
    grown = batch.state.record_time.shape[1]
    batch.reset([0, 1], [7, 8])
    batch.advance(np.array([0, 1]), 9.0)
    assert batch.state.record_time.shape[1] == grown
    crew.close()


def test_longer_stream_blocks_find_room(monkeypatch):
    import edgegym.simulator.loops as module

    monkeypatch.setattr(module, "USUAL_BLOCK_CAPACITY", 3900)
    scenario = preset("toy")
    batch = FleetBatch(scenario, 2, Crew(2))
    batch.reset([0, 1], [1, 2])
    alone = [Fleet(scenario, seed=seed) for seed in (1, 2)]
    for _ in range(3):
        windows = batch.advance(np.array([0, 1]), 400.0).stats()
        assert windows == [fleet.advance(400.0) for fleet in alone]
    assert batch.state.request_time_s.shape[1] > 3900
