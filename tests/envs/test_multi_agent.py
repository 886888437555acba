import copy
import importlib
import pickle
import sys

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pettingzoo")

from edgegym.envs.info import EPOCH_KEYS, INFO_KEYWORDS
from edgegym.envs.multi_agent import PlacementParallelEnv, parallel_env
from edgegym.envs.placement import PlacementEnv
from tests.envs.worlds import REWARDS, SEEDS, budget_holds, worlds

SHORT = {"control.horizon_epochs": 4, "initial.warmup_s": 1.0, "control.epoch_s": 1.0}


def make(name="moving-hotspot", **overrides):
    return parallel_env(scenario=name, overrides=SHORT | overrides)


def idle(env):
    return dict.fromkeys(env.agents, env.layout.num_profiles)


def trace(env, seed, count):
    """Step `count` random actions, legal ones and others; return all that came back."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        actions = {agent: rng.integers(env.action_space(agent).n) for agent in env.agents}
        observations, *rest, infos = env.step(actions)
        masks = {agent: infos[agent].pop("action_mask").tobytes() for agent in infos}
        bits = {agent: row.tobytes() for agent, row in observations.items()}
        rows.append((bits, *rest, infos, masks))
    return rows


def test_each_agent_sees_its_node_and_the_fleet():
    env = make()
    observations, infos = env.reset(seed=3)
    state = env.state()
    assert state in env.state_space
    for i, agent in enumerate(env.agents):
        row, fleet = env.layout.node_block(state)[i], env.layout.global_block(state)
        np.testing.assert_array_equal(observations[agent], np.concatenate((row, fleet)))
        assert observations[agent] in env.observation_space(agent)
        demand = env.layout_of_agent.decode(observations[agent], "demand")[0]
        np.testing.assert_allclose(demand, env.placement.demand_per_s[i], rtol=1e-5)
        assert set(infos[agent]) == {*EPOCH_KEYS, *INFO_KEYWORDS, "served", "action_mask"}


def test_the_world_is_that_of_placement():
    env, single = make(), PlacementEnv("moving-hotspot", overrides=SHORT)
    env.reset(seed=7)
    observation, info = single.reset(seed=7)
    np.testing.assert_array_equal(env.state(), observation)
    move = int(np.flatnonzero(info["action_mask"])[10])
    node, profile = divmod(move, env.layout.num_profiles)
    for action in (single.actions.no_op, move, single.actions.no_op):
        actions = idle(env)
        if action == move:
            actions[f"node_{node}"] = profile
        _, rewards, _, _, infos = env.step(actions)
        observation, reward, _, _, info = single.step(action)
        np.testing.assert_array_equal(env.state(), observation)
        assert set(rewards.values()) == {reward}
        assert infos["node_0"]["hits"] == info["hits"]


@settings(max_examples=25)
@given(scenario=worlds(), seed=SEEDS, reward=REWARDS, clock=st.booleans())
def test_in_every_world_masks_are_exact_and_the_budget_holds(scenario, seed, reward, clock):
    env = PlacementParallelEnv(scenario, reward=reward, observe_clock=clock)
    world, none = scenario.compile(), env.layout.num_profiles
    moves = scenario.control.moves_per_epoch
    env.reset(seed=seed)
    fleet, rng = env.placement.fleet, np.random.default_rng(seed)
    spent = []
    while env.agents:
        legal = fleet.legal_moves()
        for i, agent in enumerate(env.agents):
            mask = env.action_mask(agent)
            np.testing.assert_array_equal(mask[:-1], legal[i])
            assert mask[-1]
        actions = {agent: int(rng.integers(none + 1)) for agent in env.agents}
        before, level = fleet.state.profile[0].copy(), fleet.bucket_bytes
        spent.append([fleet.now_s, 0])
        observations, rewards, *_, infos = env.step(actions)
        assert all(row in env.observation_spaces[agent] for agent, row in observations.items())
        assert np.isfinite(list(rewards.values())).all()
        asked = [(i, a) for i, a in enumerate(actions.values()) if a != none]
        served = [i for i, agent in enumerate(infos) if infos[agent]["served"]]
        paid = sum(int(world.move_bytes[before[i], list(actions.values())[i]]) for i in served)
        info = infos["node_0"]
        assert info["illegal_actions"] == sum(not legal[i, a] for i, a in asked)
        assert info["moves"] == len(served) <= moves
        assert info["bytes_moved"] == paid <= level
        assert {i for i, a in asked if legal[i, a]} >= set(served)
        for i, a in asked:
            if legal[i, a] and i not in served:
                dear = world.move_bytes[before[i], a] > level - paid
                assert dear or len(served) == moves, "nobody stands back without a reason"
        spent[-1][1] = paid
        assert budget_holds(spent, scenario)


def test_turns_are_fair_and_not_for_sale():
    # Two agents want the only move of every epoch; the bucket always pays.
    env = make(
        "toy",
        **{
            "control.horizon_epochs": 10**6,
            "control.epoch_s": 0.01,
            "migration.burst_bytes": 10**13,
            "migration.budget_bytes_per_s": 1e15,
            "backhaul.rate_bytes_per_s": 1e15,
        },
    )
    env.reset(seed=0)
    wins, contests = 0, 0
    for _ in range(400):
        legal = {agent: np.flatnonzero(env.action_mask(agent)[:-1]) for agent in env.agents}
        wanted = {agent: int(some[0]) for agent, some in legal.items() if len(some)}
        *_, infos = env.step(idle(env) | wanted)
        served = {agent: infos[agent]["served"] for agent in infos}
        if len(wanted) == 2:
            contests += 1
            assert sum(served.values()) == 1
            wins += served["node_0"]
    assert contests > 200
    # Four standard deviations of a fair coin.
    assert abs(wins - contests / 2) < 2.0 * contests**0.5


def test_same_seed_same_bits_other_seed_differs():
    runs = []
    for seed in (3, 3, 4):
        env = make()
        env.reset(seed=seed)
        first = env.state().tobytes()
        runs.append((first, trace(env, 0, 4)))
    assert runs[0] == runs[1]
    assert runs[0][0] != runs[2][0]


@pytest.mark.parametrize("way", ["state", "fork", "deepcopy", "pickle"])
def test_copies_continue_identically(way):
    env = make(**{"control.moves_per_epoch": 3, "control.horizon_epochs": 9})
    env.reset(seed=11)
    trace(env, 0, 3)
    if way == "state":
        twin = make(**{"control.moves_per_epoch": 3, "control.horizon_epochs": 9})
        twin.set_state(env.get_state())
    elif way == "fork":
        twin = env.fork()
    elif way == "deepcopy":
        twin = copy.deepcopy(env)
    else:
        twin = pickle.loads(pickle.dumps(env))
    np.testing.assert_array_equal(env.state(), twin.state())
    assert trace(env, 1, 3) == trace(twin, 1, 3)
    env.reset()
    twin.reset()
    assert trace(env, 2, 2) == trace(twin, 2, 2)


def test_padding_nodes_are_no_agents():
    env = make("paper")
    counts = set()
    for seed in range(3):
        env.reset(seed=seed)
        count = int(env.placement.fleet.state.node_count[0])
        assert env.agents == [f"node_{i}" for i in range(count)]
        assert count < len(env.possible_agents) == env.scenario.max_nodes
        counts.add(count)
    assert len(counts) > 1


def test_nodes_that_are_down_or_have_no_gpu_ask_for_nothing():
    for name in ("node-failures", "mixed-fleet"):
        env = make(name, **{"migration.burst_bytes": 10**13})
        env.reset(seed=1)
        state = env.placement.fleet.state
        state.up[0, 0] = False
        barred = ~state.up[0] | ~(state.slots[0] > 0).any(axis=1)
        for i, agent in enumerate(env.agents):
            if barred[i]:
                np.testing.assert_array_equal(np.flatnonzero(env.action_mask(agent)), [8])
        assert barred.sum() < len(env.agents)


def test_the_end_of_an_episode():
    env = make("toy")
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step({})
    with pytest.raises(ResetNeeded, match="call reset"):
        env.state()
    env.reset(seed=0)
    for epoch in range(4):
        _, rewards, terminations, truncations, _ = env.step(idle(env))
        assert set(rewards) == set(terminations) == set(truncations) == {"node_0", "node_1"}
        assert not any(terminations.values())
        assert all(truncations.values()) == (epoch == 3)
    assert env.agents == []
    assert env.fork().agents == []
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step({})


@pytest.mark.parametrize(
    ("actions", "error", "message"),
    [
        ({"node_0": 3}, ValueError, "actions lack node_1"),
        ({"node_0": 3, "node_1": 3, "node_2": 3}, ValueError, "given for node_2: not an agent"),
        ({"node_0": 3, "node_1": 4}, ValueError, "action of node_1 is 4: it must lie in 0..3"),
        ({"node_0": -1, "node_1": 3}, ValueError, "action of node_0 is -1"),
        ({"node_0": 0.5, "node_1": 3}, TypeError, "action of node_0 is 0.5: it must be one int"),
        ({"node_0": True, "node_1": 3}, TypeError, "action of node_0 is True"),
        ([3, 3], TypeError, "must be a dictionary by agent"),
    ],
)
def test_what_are_no_actions_is_refused(actions, error, message):
    env = make("toy")
    env.reset(seed=0)
    with pytest.raises(error, match=message):
        env.step(actions)
    assert env.placement.epoch == 0


def test_options_are_taken_but_must_be_a_mapping():
    env = make("toy")
    env.reset(seed=0, options={"whatever": 1})
    with pytest.raises(TypeError, match="reset options are 5"):
        env.reset(options=5)


def test_it_draws_itself():
    env = PlacementParallelEnv("toy", overrides=SHORT, render_mode="rgb_array")
    env.reset(seed=0)
    env.step(idle(env))
    assert env.render().shape == (540, 960, 3)
    env.close()


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "pettingzoo", None)
    monkeypatch.delitem(sys.modules, "edgegym.envs.multi_agent")
    with pytest.raises(ModuleNotFoundError, match=r'pip install "edgegym\[marl\]"'):
        importlib.import_module("edgegym.envs.multi_agent")


def test_docstring_example_runs(capsys):
    source = PlacementParallelEnv.__doc__.split("```python")[1].split("```")[0]
    exec("\n".join(line[4:] for line in source.splitlines()), {})
    assert 0.0 < float(capsys.readouterr().out) <= 1.0
