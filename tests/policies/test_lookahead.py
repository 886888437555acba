"""The best single move on the fluid model, and policies that are bound to an environment."""

import pickle

import gymnasium as gym
import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.policies import make_policy
from edgegym.policies.bound import BoundPolicy
from edgegym.policies.fluid import FluidModel, MoveGains
from edgegym.policies.lookahead import GreedyLookaheadPolicy, LookaheadSettings, MoveScores
from edgegym.simulator import Fleet
from edgegym.simulator.loops import event_loop
from edgegym.simulator.topology import write_nodes
from edgegym.world import preset
from tests.policies.test_episodes import play

TOY = preset("toy")
URBAN = preset("moving-hotspot")


def test_the_toy_gets_one_prefix_on_each_node():
    env = PlacementEnv(TOY)
    for seed in range(3):
        play(env, make_policy("greedy_lookahead", TOY), seed, epochs=14)
        assert sorted(env.fleet.state.profile[0].tolist()) == [1, 2]


def test_a_move_must_gain_enough():
    env = PlacementEnv(TOY)
    calm = GreedyLookaheadPolicy(TOY, LookaheadSettings(threshold=100.0))
    actions, _, _ = play(env, calm, 0, epochs=4)
    assert actions == [env.actions.size - 1] * 4


def test_while_bytes_flow_a_node_holds_what_both_profiles_share():
    gains = MoveGains(0.0, np.full((2, 3), 5.0), np.full((2, 3), -1.0))
    world = TOY.compile()
    transfer_s = world.move_bytes[0, 1] / world.backhaul_bytes_per_s
    held = np.array([0, 0])
    for horizon_s, part in ((4.0 * transfer_s, 0.25), (transfer_s / 2.0, 1.0)):
        score = MoveScores(TOY, horizon_s).of(gains, held)
        np.testing.assert_allclose(score[:, 1:], 5.0 - 6.0 * part)
        np.testing.assert_allclose(score[:, 0], 5.0)  # nothing flows


def test_bytes_have_the_price_of_the_reward():
    dear = TOY.with_overrides({"objective.migration_weight": 2.0})
    gains = MoveGains(0.0, np.zeros((2, 3)), np.zeros((2, 3)))
    score = MoveScores(dear, 10.0).of(gains, np.array([0, 1]))
    world = dear.compile()
    part = world.move_bytes[0, 1] / dear.fleet_memory_bytes
    hits = 2.0 * part * world.mean_rate_per_s * dear.control.epoch_s
    assert score[0, 1] == pytest.approx(-hits / 10.0)
    assert score[1, 1] == 0.0


@pytest.mark.parametrize("down", [(), (0, 7)])
def test_all_demand_comes_from_the_cells_nearest_to_its_node(down):
    state = Fleet(URBAN, seed=2).state
    state.up[0, list(down)] = False
    cells, spread = FluidModel(URBAN, 60.0)._cells_of(state)
    side = round(4.0 * np.sqrt(25 - len(down)))
    assert spread.shape == (side**2, 25)
    np.testing.assert_allclose(spread.sum(axis=0), state.up[0], rtol=1e-12)
    middles = (np.arange(side) + 0.5) * 5.0 / side
    x, y = np.tile(middles, side), np.repeat(middles, side)
    away = [np.abs(at[:, None] - node[0]) for at, node in ((x, state.node_x), (y, state.node_y))]
    away_km = np.hypot(*(np.minimum(d, 5.0 - d) for d in away))
    away_km[:, list(down)] = np.inf
    owner = away_km.argmin(axis=1)
    assert (spread[np.arange(side**2), owner] > 0.0).all()
    np.testing.assert_array_equal(cells.near[:, 0], owner)
    expected_s = URBAN.radio.xi * np.sort(away_km, axis=1)[:, :12] ** URBAN.radio.alpha
    np.testing.assert_allclose(cells.radio_s, expected_s)
    for node in range(25):
        mine = slice(cells.start[node], cells.start[node + 1])
        assert (cells.near[cells.cell[mine], cells.place[mine]] == node).all()
    assert cells.start[-1] == cells.near.size


def test_the_model_knows_the_class_of_each_node():
    scenario = preset("mixed-fleet")
    world = scenario.compile()
    state = event_loop(scenario, None, False, False).allocate(1)
    assert state.full is not None
    state.full.node_class[0, :25] = write_nodes(world, state, 0, 0).node_class
    gains = FluidModel(scenario, 60.0).gains(state, np.ones((25, len(scenario.family_names))))
    assert np.isfinite(gains.moved).all()
    assert np.isfinite(gains.moving).all()
    gpus = state.slots[0].max(axis=1) > 0
    assert (gains.moved[~gpus] == 0.0).all()
    assert (gains.moved[gpus] != 0.0).any()


def test_nobody_up_gains_nothing():
    state = Fleet(TOY, seed=0).state
    state.up[:] = False
    gains = FluidModel(TOY, 60.0).gains(state, np.ones((2, 2)))
    assert gains.now == 0.0
    assert not gains.moved.any()


@pytest.mark.parametrize("name", ["greedy_lookahead", "clairvoyant"])
def test_a_bound_policy_says_what_it_is_missing(name):
    policy = make_policy(name, TOY)
    assert isinstance(policy, BoundPolicy)
    env = gym.make("edgegym:EdgeGym/Placement-v0", scenario="toy")
    observation, _ = env.reset(seed=0)
    with pytest.raises(ValueError, match=r"call policy\.bind\(env\) first"):
        policy.predict(observation)
    with pytest.raises(TypeError, match="must be a placement environment"):
        policy.bind(gym.make("CartPole-v1"))
    with pytest.raises(ValueError, match="plays scenario 'stationary'"):
        policy.bind(PlacementEnv("stationary"))
    policy.bind(env)
    action, _ = policy.predict(observation)
    assert env.action_space.contains(action)
    with pytest.raises(ValueError, match="has 2 rows"):
        policy.predict(np.stack([observation, observation]))
    with pytest.raises(ValueError, match="needs to see its environment"):
        pickle.loads(pickle.dumps(policy)).predict(observation)


def test_settings_are_checked():
    with pytest.raises(ValueError, match="horizon_s"):
        LookaheadSettings(horizon_s=0.0)
    with pytest.raises(TypeError, match="forecast"):
        LookaheadSettings(forecast=3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="LookaheadSettings"):
        GreedyLookaheadPolicy(TOY, 3)  # pyright: ignore[reportArgumentType]
