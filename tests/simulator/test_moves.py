"""Moves, computed by hand: what is kept, when bytes flow, what they cost."""

import math

import numpy as np
import pytest

from edgegym.simulator import Fleet, IllegalMove
from tests.simulator.fleets import GB, feed, place, scenario

pytestmark = pytest.mark.twin
CHAT, CODE = 0, 1
NONE, SMALL, BIG, OTHER = range(4)


def fleet_of(profile, requests=(), **overrides):
    fleet = Fleet(scenario(nodes={"count": 1}, **overrides))
    place(fleet, [(5.0, 5.0)], [profile])
    feed(fleet, list(requests) or [(1e6, 5.0, 5.0, CHAT)])
    return fleet


def test_promotion_keeps_the_old_state_and_gets_the_new_when_its_bytes_have_arrived():
    fleet = fleet_of(SMALL)
    fleet.advance(1.0)
    fleet.start_move(0, BIG)
    state = fleet.state
    assert (state.profile[0, 0], state.holding[0, 0], state.receiving[0, 0]) == (BIG, SMALL, True)
    assert state.move_bytes_total[0, 0] == 1 * GB
    assert (state.transfer_start_s[0, 0], state.transfer_end_s[0, 0]) == (1.0, 2.0)
    fleet.advance(0.9375)
    assert (state.holding[0, 0], state.receiving[0, 0]) == (SMALL, True)
    fleet.advance(0.0625)
    assert (state.holding[0, 0], state.receiving[0, 0]) == (BIG, False)


def test_a_change_between_branches_keeps_only_what_they_share():
    fleet = fleet_of(BIG)
    fleet.start_move(0, OTHER)
    assert fleet.world.hit_tokens[fleet.state.holding[0, 0]].tolist() == [0.0, 0.0]
    fleet.advance(1.0)
    assert fleet.state.holding[0, 0] == OTHER


def test_hit_depth_is_what_the_node_holds_when_the_request_takes_its_slot():
    # `small` to `big` takes until 1.0: a request before gets 400 tokens, one after 800.
    fleet = fleet_of(SMALL, [(0.5, 5.0, 5.0, CHAT), (1.5, 5.0, 5.0, CHAT)])
    fleet.start_move(0, BIG)
    assert fleet.advance(1.25).hit_tokens_sum == 400
    assert fleet.advance(1.25).hit_tokens_sum == 800


def test_a_shrink_drains_before_bytes_flow_and_kills_nothing():
    # Four cold chats hold the four slots of `none` until 1.5; `big` has two.
    fleet = fleet_of(NONE, [(0.0, 5.0, 5.0, CHAT)] * 3 + [(0.25, 5.0, 5.0, CHAT)] * 3)
    fleet.advance(0.5)
    state = fleet.state
    assert (state.active[0, 0], state.queued[0, 0]) == (4, 2)
    fleet.start_move(0, BIG)
    assert (state.active[0, 0], state.receiving[0, 0]) == (4, True)
    assert math.isinf(state.transfer_start_s[0, 0])
    assert math.isinf(state.transfer_end_s[0, 0])
    window = fleet.advance(1.0)  # three end at 1.5; then 1 + 1 of the queue are active
    assert window.completed == 3
    assert (state.active[0, 0], state.queued[0, 0]) == (2, 1)
    assert (state.transfer_start_s[0, 0], state.transfer_end_s[0, 0]) == (1.5, 3.5)
    assert window.utilization[0] == pytest.approx(4 / 2, abs=1e-8)
    assert fleet.advance(2.0).completed == 3  # at 1.75, 3.0 and 3.25
    assert not state.receiving[0, 0]
    assert state.holding[0, 0] == BIG


def test_a_demotion_is_free_complete_at_once_and_opens_its_slots():
    fleet = fleet_of(BIG, [(0.0, 5.0, 5.0, CHAT)] * 5)
    fleet.advance(0.125)
    state = fleet.state
    assert (state.active[0, 0], state.queued[0, 0]) == (2, 3)
    fleet.start_move(0, NONE)
    assert (state.holding[0, 0], state.receiving[0, 0]) == (NONE, False)
    assert (state.active[0, 0], state.queued[0, 0]) == (4, 1)
    assert fleet.bucket_bytes == 3 * GB
    window = fleet.advance(10.0)
    assert (window.moves_started, window.bytes_moved, window.completed) == (1, 0, 5)


def test_moves_are_charged_at_their_start_and_the_bucket_refills():
    fleet = fleet_of(NONE)
    fleet.start_move(0, BIG)
    assert fleet.bucket_bytes == 1 * GB
    window = fleet.advance(5.0)
    assert (window.moves_started, window.bytes_moved) == (1, 2 * GB)
    assert fleet.bucket_bytes == pytest.approx(1.5 * GB)
    window = fleet.advance(100.0)
    assert (window.moves_started, window.bytes_moved) == (0, 0)
    assert fleet.bucket_bytes == 3 * GB


def test_illegal_moves_name_node_profile_and_rule():
    fleet = fleet_of(NONE)
    for node, profile, words in (
        (-1, BIG, ("node -1", "0 to 0")),
        (1, BIG, ("node 1", "0 to 0")),
        (0, 4, ("profile 4", "0 to 3")),
        (0, NONE, ("node 0", "'none'", "already")),
        (True, BIG, ("node", "True", "integer")),
        (0, 1.0, ("profile", "1.0", "integer")),
    ):
        with pytest.raises(IllegalMove) as caught:
            fleet.start_move(node, profile)
        assert all(word in str(caught.value) for word in words), str(caught.value)
    fleet.start_move(0, BIG)
    with pytest.raises(IllegalMove, match="node 0 to profile 'none': it is still receiving"):
        fleet.start_move(0, NONE)
    fleet.advance(2.0)
    fleet.start_move(0, NONE)
    with pytest.raises(IllegalMove, match=r"'big': costs 2000000000 bytes, .* 1200000000"):
        fleet.start_move(0, BIG)
    fleet.state.up[0, 0] = False
    with pytest.raises(IllegalMove, match="node 0 to profile 'small': the node is down"):
        fleet.start_move(0, SMALL)


def test_a_refused_move_changes_nothing():
    fleet = fleet_of(NONE)
    before = fleet.get_state()
    with pytest.raises(IllegalMove):
        fleet.start_move(0, NONE)
    for old, new in zip(before, fleet.state, strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_profile_that_does_not_fit_a_node_is_illegal_there():
    fleet = fleet_of(NONE)
    fleet.state.slots[0, 0, BIG] = 0
    assert not fleet.legal_moves()[0, BIG]
    with pytest.raises(IllegalMove, match="leaves no room for a single sequence"):
        fleet.start_move(0, BIG)


def test_legal_moves_are_those_that_are_not_refused():
    fleet = Fleet(scenario(nodes={"density_per_km2": 0.05}), seed=3)
    rng = np.random.default_rng(1)
    for _ in range(30):
        legal = fleet.legal_moves()
        for node in range(fleet.world.max_nodes):
            for profile in range(fleet.world.num_profiles):
                twin = fleet.fork()
                try:
                    twin.start_move(node, profile)
                except IllegalMove:
                    assert not legal[node, profile]
                else:
                    assert legal[node, profile]
        moves = np.argwhere(legal)
        if len(moves):
            fleet.start_move(*moves[rng.integers(len(moves))])
        fleet.advance(float(rng.random()))
