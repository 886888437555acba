"""Fleets of a random number of nodes: rows of padding change no decision."""

import numpy as np
import pytest

from edgegym.envs.placement import PlacementEnv
from edgegym.policies import make_policy, policies
from edgegym.policies.bound import BoundPolicy
from edgegym.world import preset

SHORT = {"initial.warmup_s": 5.0, "control.epoch_s": 2.0}
# They choose among nodes by a draw that the bits of the first observation name.
CHANCE = {"random", "uniform", "static_optimal", "analytic", "analytic_mpc"}


def fleet(rows):
    """Return a world of 0.5 nodes per km², observed in so many rows."""
    overrides = {"nodes.density_per_km2": 0.5, "nodes.max_count": rows}
    return preset("moving-hotspot").with_overrides(overrides | SHORT)


def play(name, rows, seed, epochs=5):
    """Return the moves of a policy that sees no mask, and the number of nodes."""
    env = PlacementEnv(fleet(rows))
    policy = make_policy(name, env.scenario)
    if isinstance(policy, BoundPolicy):
        policy.bind(env)
    observation, info = env.reset(seed=seed)
    moves, state = [], None
    for _ in range(epochs):
        action, state = policy.predict(observation, state)
        assert info["action_mask"][action], "legal, and so of a node that there is"
        moves.append(env.actions.decode(action))
        observation, _, _, _, info = env.step(action)
    assert info["episode_illegal_actions"] == 0
    return moves, int(env.fleet.state.node_count[0])


@pytest.mark.parametrize("name", policies())
def test_padding_changes_no_decision(name):
    moves, count = play(name, 24, seed=1)
    more, same = play(name, 31, seed=1)
    assert count == same < 24
    made = [move for move in moves if move is not None]
    assert all(node < count for node, _ in made)
    if name not in CHANCE:
        assert moves == more
    if name not in ("static", "lru"):
        assert made


def test_observations_differ_in_nothing_but_padding():
    envs = [PlacementEnv(fleet(rows)) for rows in (24, 31)]
    observed = [env.reset(seed=1)[0] for env in envs]
    small, large = (env.layout.node_block(one) for env, one in zip(envs, observed, strict=True))
    np.testing.assert_array_equal(small, large[:24])
    assert not large[24:].any()
    fleets = [env.layout.global_block(one) for env, one in zip(envs, observed, strict=True)]
    np.testing.assert_array_equal(*fleets)
    assert envs[0].layout.hash == envs[1].layout.hash
