"""Radix caches in fleets: what hits, what a hit saves, and what must always hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.simulator import Fleet, IllegalMove
from edgegym.simulator.full.lru_data import PINNED_BYTES, USED_BYTES, lru_params
from edgegym.world import Scenario
from tests.simulator.fleets import GB, feed, scenario

CHAT, CODE = 0, 1


def fleet(requests, nodes=1, seed=0, **overrides):
    """Return a fleet with radix caches and requests (time, type) made at its first node.

    Vertices have 1 GB each: `chat` continues `small` (400 tokens) and `big` (800), `code` `other`
    (500). A private rest has 1 kB per token. Prefill takes 1 ms per token, decode 0.5 s.
    """
    world = scenario(
        nodes={"count": nodes},
        cache={"kind": "lru", "budget_bytes": 2 * GB + 300_000},
        **overrides,
    )
    made = Fleet(world, seed)
    x, y = float(made.state.node_x[0, 0]), float(made.state.node_y[0, 0])
    feed(made, [(time, x, y, kind) for time, kind in requests])
    lengths = made.state.full.lengths
    kinds = np.array([kind for _, kind in requests])
    lengths.input_tokens[0, : len(kinds)] = made.world.input_tokens[kinds]
    lengths.output_tokens[0, : len(kinds)] = made.world.output_tokens[kinds]
    return made


@pytest.mark.twin
def test_hits_by_hand():
    """A budget of 2.0003 GB: two vertices and a private rest of 210 kB (`chat`) or 120 (`code`)."""
    made = fleet([(0.0, CHAT), (2.0, CHAT), (4.0, CODE), (6.0, CHAT), (8.0, CODE)])
    # Nothing is held: 1 s. Then 800 tokens: 0.2 s.
    first = made.advance(4.0 - 1e-9)
    assert first.prefill_sum_s == pytest.approx(1.0 + 0.2, abs=1e-8)
    assert first.hit_vertices.tolist() == [1, 0, 1]
    # `other` needs a gigabyte: both private rests go, then `big`. So `chat` hits 400 tokens, pins
    # `small`, and when it has computed `big`, `other` goes.
    second = made.advance(4.0)
    assert second.hit_tokens_sum == 0 + 400
    assert second.hit_vertices.tolist() == [1, 1, 0]
    third = made.advance(4.0)
    assert third.hit_vertices.tolist() == [1, 0, 0]
    assert made.state.full.lru.stations[0, 0, USED_BYTES] <= 2 * GB + 300_000


@pytest.mark.twin
@pytest.mark.parametrize("kind", ["deterministic", "exponential"])
def test_a_prefix_can_be_reused_from_the_first_token_on(kind):
    # The first has its first token at 1 s, and its slot until 1.5 s (marks are 1).
    roomy = {"hardware.memory_bytes": 6 * GB, "service": {"kind": kind}}
    made = fleet([(0.0, CHAT), (0.9, CHAT), (1.1, CHAT)], **roomy)
    stats = made.advance(5.0)
    assert stats.hit_tokens_sum == 800
    assert stats.hit_vertices.tolist() == [2, 0, 1]
    assert stats.prefill_sum_s == pytest.approx(1.0 + 1.0 + 0.2, abs=1e-8)


@pytest.mark.twin
def test_what_routers_see_comes_with_the_catalogue_but_what_counts_is_what_is_held():
    live = fleet([(0.0, CHAT)])
    late = fleet([(0.0, CHAT)], telemetry={"catalogue_period_s": 5.0})
    for made in (live, late):
        made.advance(2.0)
        assert made.state.full.lru.held_tokens[0, 0].tolist() == [800.0, 0.0]
    assert late.state.full.seen_tokens[0, 0].tolist() == [0.0, 0.0]
    late.advance(3.0)
    assert late.state.full.seen_tokens[0, 0].tolist() == [800.0, 0.0]


@pytest.mark.twin
def test_every_node_runs_what_fits_beside_the_budget_and_nothing_moves():
    made = Fleet(
        scenario(
            cache={"kind": "lru", "budget_bytes": 2 * GB},
            initial={"mix": {"none": 0.4, "big": 0.6}},
        )
    )
    state = made.state
    own = np.take_along_axis(state.slots[0], state.profile[0][:, None], axis=1)
    assert own.tolist() == [[2]] * 5
    assert not made.legal_moves().any()
    with pytest.raises(IllegalMove, match="nothing can be moved"):
        made.start_move(0, 1)


@pytest.mark.twin
def test_contents_that_change_are_computed_anew():
    lives = {"forest.big.lifetime_s": 1000.0}
    change_s = float(fleet([(0.0, CHAT)], **lives).state.full.expiry.phase_s[0, 0])
    made = fleet([(change_s + late, CHAT) for late in (-10.0, -5.0, 1.0, 5.0)], **lives)
    assert made.advance(change_s + 20.0).hit_tokens_sum == 0 + 800 + 400 + 800


@pytest.mark.twin
def test_who_computed_an_old_version_does_not_leave_it_as_the_new_one():
    lives = {"forest.big.lifetime_s": 1000.0}
    change_s = float(fleet([(0.0, CHAT)], **lives).state.full.expiry.phase_s[0, 0])
    made = fleet([(change_s + late, CHAT) for late in (-0.5, 5.0)], **lives)
    assert made.advance(change_s + 20.0).hit_tokens_sum == 400


MANY = scenario(
    nodes={"count": 6},
    cache={"kind": "lru", "budget_bytes": 2 * GB + 100_000},
    demand={"rate_per_node": 3.0},
)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(["exponential", "deterministic", "lognormal"]),
    router=st.sampled_from(["nearest", "load_aware", "cache_aware", "preble", "lmetric"]),
    life_s=st.sampled_from([None, 1.5]),
    fails=st.booleans(),
)
def test_caches_keep_their_budget_whatever_happens(seed, kind, router, life_s, fails):
    world: Scenario = MANY.with_overrides(
        {
            "service": {"kind": kind},
            "routing": {"kind": router},
            "forest.small.lifetime_s": life_s,
            "failures": {"nodes": {"mean_up_s": 5.0, "mean_down_s": 1.0}} if fails else None,
        }
    )
    made, params = Fleet(world, seed), lru_params(world)
    arrived = completed = rejected = interrupted = 0
    for _ in range(4):
        stats = made.advance(2.5)
        arrived += stats.arrivals
        completed, rejected = completed + stats.completed, rejected + stats.rejected
        interrupted += stats.interrupted
        assert stats.hit_vertices.sum() == stats.first_tokens
        caches = made.state.full.lru
        used, pinned = caches.stations[0, :, USED_BYTES], caches.stations[0, :, PINNED_BYTES]
        assert (used <= params.budget_bytes).all()
        in_use = caches.present[0] & (caches.pins[0] > 0)
        assert (pinned == in_use @ params.vertex_bytes).all()
        assert (used >= caches.present[0] @ params.vertex_bytes).all()
        held = caches.present[0]
        for vertex, parent in enumerate(params.parent):
            assert parent < 0 or (held[:, parent] | ~held[:, vertex]).all()
        assert (caches.pins[0].sum(axis=1) <= 2 * made.state.active[0, : len(held)]).all()
    assert arrived > 100
    # When nothing runs any more, nothing is in use.
    made.state.stream_end_s[0] = np.inf
    made.state.scalars[0, 3] = made.state.scalars[0, 4]
    made.advance(200.0)
    assert made.state.active.sum() == 0
    assert made.state.full.lru.pins.sum() == 0
    assert made.state.full.lru.stations[..., PINNED_BYTES].sum() == 0
