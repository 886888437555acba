import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.interface.actions import PlacementActions, write_action_mask
from edgegym.world import preset
from tests.interface.fleets import random_state

pytestmark = pytest.mark.twin

ACTIONS = PlacementActions(num_nodes=25, num_profiles=8)


def test_numbering_is_node_major_and_ends_with_the_no_op():
    pairs = [ACTIONS.decode(action) for action in range(ACTIONS.size - 1)]
    assert pairs == [(node, profile) for node in range(25) for profile in range(8)]
    assert [ACTIONS.encode(*pair) for pair in pairs] == list(range(200))
    assert ACTIONS.decode(ACTIONS.no_op) is None
    assert ACTIONS.no_op == 200


@pytest.mark.parametrize("action", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_integers_of_every_kind_are_accepted(action):
    assert ACTIONS.decode(action) == (0, 3)


@pytest.mark.parametrize("action", [1.0, np.float32(1), "1", None, [1], np.array([1, 2]), True])
def test_what_is_not_one_integer_is_a_type_error(action):
    with pytest.raises(TypeError, match="action is"):
        ACTIONS.decode(action)


@pytest.mark.parametrize("action", [-1, 201])
def test_numbers_outside_are_named(action):
    with pytest.raises(ValueError, match=rf"action is {action}: it must lie in 0\.\.200"):
        ACTIONS.decode(action)


@pytest.mark.parametrize(("node", "profile", "wrong"), [(25, 0, "node is 25"), (0, -1, "profile")])
def test_encode_refuses_what_does_not_exist(node, profile, wrong):
    with pytest.raises(ValueError, match=wrong):
        ACTIONS.encode(node, profile)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), count=st.integers(1, 25))
def test_mask_follows_the_rules(seed, count):
    rng = np.random.default_rng(seed)
    scenario = preset("moving-hotspot")
    world = scenario.compile()
    state = random_state(scenario, rng, count)
    state.slots[0] *= rng.random(state.slots[0].shape) < 0.8
    prices = np.unique(world.move_bytes)
    level = float(rng.choice(prices) + rng.integers(-1, 2))
    mask = np.zeros(ACTIONS.size, dtype=np.bool_)
    write_action_mask(
        state.up[0],
        state.receiving[0],
        state.profile[0],
        state.slots[0],
        world.move_bytes,
        level,
        mask,
    )
    for action in range(ACTIONS.no_op):
        node, profile = divmod(action, 8)
        held = state.profile[0, node]
        legal = (
            node < count
            and state.up[0, node]
            and not state.receiving[0, node]
            and profile != held
            and state.slots[0, node, profile] >= 1
            and world.move_bytes[held, profile] <= level
        )
        assert mask[action] == legal
    assert mask[ACTIONS.no_op]
