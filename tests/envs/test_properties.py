"""What holds in every world, whatever an agent does."""

import numpy as np
from gymnasium.vector import AutoresetMode
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.envs.placement import PlacementEnv
from edgegym.simulator import IllegalMove
from edgegym.simulator.tree import named_arrays
from tests.envs.test_vector import both, play_both
from tests.envs.worlds import REWARDS, SEEDS, budget_holds, worlds

# Half a unit in the last place of a float32 around 1, through x / (x + scale).
_ROUNDING = 2.0**-24


def check_observation(env, observation):
    """Hold an observation against the fleet it speaks of."""
    assert observation in env.observation_space
    assert observation.dtype == np.float32
    assert np.isfinite(observation).all()
    state, layout = env.fleet.state, env.layout
    count = int(state.node_count[0])
    assert not layout.node_block(observation)[count:].any()
    nodes = np.arange(count)
    up, profile = state.up[0, :count], state.profile[0, :count]
    slots = state.slots[0, :count][nodes, profile]
    load = (state.active[0] + state.queued[0] + state.in_flight[0])[:count] * up
    truth = {
        "profile": np.eye(layout.num_profiles)[profile],
        "up": up[:, None],
        # Without slots there is nothing to divide by: any request reads as the most there is.
        "backlog": np.where(slots > 0, load / np.maximum(slots, 1), load * 2.0**24)[:, None],
        "demand": env.demand_per_s[:count],
    }
    for name, value in truth.items():
        feature = layout.feature(name)
        written = layout.node_block(observation)[:count, feature.columns]
        exact = value if feature.scale is None else value / (value + feature.scale)
        np.testing.assert_allclose(written, exact, rtol=0, atol=_ROUNDING, err_msg=name)
        # So decoded, x is off by at most (x + scale)² / scale of that.
        decoded = layout.decode(observation, name)[:count]
        assert np.isfinite(decoded).all()
        if feature.scale is not None:
            small = value < 1e3 * feature.scale
            error = 1.01 * _ROUNDING * (value + feature.scale) ** 2 / feature.scale
            assert (np.abs(decoded - value) <= error)[small].all(), name
    for feature in layout.features:
        decoded = layout.decode(observation, feature.name)
        assert (decoded >= 0.0).all()
        assert feature.name == "price" or np.isfinite(decoded).all()


def check_mask(env, mask, rng):
    """Hold a mask against what the fleet accepts, and masked actions against doing nothing."""
    np.testing.assert_array_equal(mask, env.action_masks())
    assert mask[env.actions.no_op]
    for action in rng.choice(env.actions.no_op, 10):
        try:
            env.fleet.fork().start_move(*env.actions.decode(action))
            accepted = True
        except IllegalMove:
            accepted = False
        assert accepted == mask[action]
    if not mask.all():
        same_as_nothing(env, int(rng.choice(np.flatnonzero(~mask))))


def same_as_nothing(env, masked):
    """Check that a masked action is a no-op but for its count, to the last bit."""
    one, other = env.fork(), env.fork()
    mine, theirs = one.step(masked), other.step(other.actions.no_op)
    np.testing.assert_array_equal(mine[0], theirs[0])
    assert mine[1:4] == theirs[1:4]
    counted = {"illegal_actions", "episode_illegal_actions"}
    for key, value in theirs[4].items():
        np.testing.assert_array_equal(mine[4][key], value + (key in counted), err_msg=key)
    pairs = zip(named_arrays(one.fleet.state), named_arrays(other.fleet.state), strict=True)
    for (name, array), (_, expected) in pairs:
        np.testing.assert_array_equal(array, expected, err_msg=name)


@settings(max_examples=20)
@given(scenario=worlds(), seed=SEEDS, reward=REWARDS, clock=st.booleans())
def test_placement(scenario, seed, reward, clock):
    env = PlacementEnv(scenario, reward=reward, observe_clock=clock)
    rng = np.random.default_rng(seed)
    observation, info = env.reset(seed=seed)
    spent, moves = [(env.fleet.now_s, 0)], 0
    for _ in range(6):
        check_observation(env, observation)
        mask = info["action_mask"]
        check_mask(env, mask, rng)
        likely = np.flatnonzero(mask)
        action = int(rng.choice(likely) if rng.random() < 0.8 else rng.integers(len(mask)))
        legal = bool(mask[action]) and action != env.actions.no_op
        now_s, epoch, held = env.fleet.now_s, env.epoch, env.fleet.state.profile[0].copy()
        observation, value, terminated, truncated, info = env.step(action)
        moves += legal
        if legal:
            node, profile = env.actions.decode(action)
            assert env.fleet.state.profile[0, node] == profile or env.epoch > epoch
            spent.append((now_s, int(env.fleet.world.move_bytes[held[node], profile])))
        assert budget_holds(spent, scenario)
        # The clock stands still exactly for moves that leave some of the epoch's.
        stands = legal and moves < scenario.control.moves_per_epoch
        assert env.epoch == epoch + (not stands)
        assert info["moves"] == (0 if stands else moves)
        assert info["illegal_actions"] == int(not mask[action])
        assert (value == 0.0) or not stands
        moves = moves if stands else 0
        assert not terminated
        assert truncated == (env.epoch >= scenario.control.horizon_epochs and not stands)
        assert np.isfinite([value, *(info[key] for key in info if key != "action_mask")]).all()
    assert info["episode_bytes_moved"] <= sum(price for _, price in spent)


@settings(max_examples=15)
@given(
    scenario=worlds(),
    mode=st.sampled_from(list(AutoresetMode)),
    seed=st.integers(0, 10**6),
    reward=REWARDS,
    clock=st.booleans(),
)
def test_the_vector_environment_is_as_many_single_ones(scenario, mode, seed, reward, clock):
    options = {"reward": reward, "observe_clock": clock}
    play_both(*both(mode, 2, scenario, **options), steps=6, seed=seed)
