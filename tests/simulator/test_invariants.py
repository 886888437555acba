"""What holds in every world, whatever is done to the fleet."""

from functools import reduce
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.simulator import Fleet
from edgegym.simulator.columns import (
    ACTIVE,
    ARRIVAL_S,
    FIRST_TOKEN_S,
    FREE,
    HEAD,
    JOIN_S,
    NEXT,
    NEXT_REQUEST,
    NODE,
    NUM_REQUESTS,
    QUEUED,
    START_S,
    STATUS,
    USED_RECORDS,
)
from edgegym.world import Scenario
from tests.simulator.fleets import awaiting_first_token, in_system, scenario

pytestmark = pytest.mark.twin

modulations = st.lists(
    st.sampled_from(
        [
            {"kind": "diurnal", "amplitude": 0.9, "period_s": 7.0},
            {"kind": "drift", "zipf_exponent": 1.5, "period_s": 5.0},
            {
                "kind": "hotspot",
                "concentration": 0.8,
                "sigma_km": 0.3,
                "orbit_radius_km": 4.0,
                "period_s": 9.0,
            },
            {
                "kind": "flash_crowd",
                "interval_s": 4.0,
                "duration_s": 1.0,
                "magnitude": 3.0,
                "sigma_km": 0.5,
            },
        ]
    ),
    unique_by=lambda item: item["kind"],
)


@st.composite
def worlds(draw: st.DrawFn) -> Scenario:
    """Draw a small world with any router, service and demand."""
    routing = draw(
        st.sampled_from(
            [
                {"kind": "nearest"},
                {"kind": "prefix_aware"},
                {"kind": "load_aware", "advertised_wait": "backlog"},
                {"kind": "load_aware", "advertised_wait": "measured"},
            ]
        )
    )
    service = draw(
        st.sampled_from(
            [
                {"kind": "exponential"},
                {"kind": "deterministic"},
                {"kind": "lognormal", "sigma": 1.0},
            ]
        )
    )
    nodes = draw(st.sampled_from([{"count": 1}, {"count": 4}, {"density_per_km2": 0.03}]))
    return scenario(
        nodes=nodes,
        region={"width_km": 10.0, "height_km": 10.0, "periodic": draw(st.booleans())},
        radio={
            "xi": draw(st.sampled_from([1e-9, 0.02])),
            "alpha": draw(st.sampled_from([1.5, 2.0, 3.0])),
            "base_s": draw(st.sampled_from([0.0, 0.05])),
        },
        routing=routing,
        telemetry={
            "period_s": draw(st.sampled_from([0.0, 0.3])),
            "predict_on_route": draw(st.booleans()),
        },
        service=service,
        migration={"budget_bytes_per_s": 1e9, "burst_bytes": 4 * 10**9},
        backhaul={"rate_bytes_per_s": draw(st.sampled_from([0.3e9, 10e9]))},
        demand={
            "rate_per_node": draw(st.sampled_from([0.5, 3.0, 8.0])),
            "modulations": draw(modulations),
        },
        initial={"mix": {"none": 0.4, "small": 0.3, "big": 0.3}},
    )


# Spans are multiples of 2^-3 s, so that sums of them are exact.
spans = st.lists(st.integers(0, 12).map(lambda eighths: eighths / 8), min_size=1, max_size=8)
seeds = st.integers(0, 2**64 - 1)


def move_somewhere(fleet: Fleet, rng: np.random.Generator) -> None:
    legal = np.argwhere(fleet.legal_moves())
    if len(legal):
        fleet.start_move(*legal[rng.integers(len(legal))])


def check_state(fleet: Fleet) -> None:
    """Check what must hold between any two events."""
    state, world = fleet.state, fleet.world
    now, count = state.now[0], state.node_count[0]
    used = state.scalars[0, USED_RECORDS]
    times, info = state.record_time[0, :used], state.record_index[0, :used]
    status = info[:, STATUS]
    # Nothing left behind: time never runs backwards.
    assert state.soon_time[0, 0] >= now
    assert state.far_time[0, 0] >= now

    for node in range(count):
        here = (info[:, NODE] == node) & (status != FREE)
        active, queued = here & (status == ACTIVE), here & (status == QUEUED)
        assert active.sum() == state.active[0, node]
        assert queued.sum() == state.queued[0, node]
        slots = state.slots[0, node, state.profile[0, node]]
        draining = state.receiving[0, node] and np.isinf(state.transfer_start_s[0, node])
        assert state.active[0, node] <= slots or draining
        if queued.any():
            assert state.active[0, node] >= slots
            # First in, first out: who waits came after all who run, and the list is in order.
            joins, record = [], int(state.node_work[0, node, HEAD])
            for _ in range(int(queued.sum())):
                joins.append(times[record, JOIN_S])
                record = int(info[record, NEXT])
            assert record == -1
            assert (np.diff(joins) >= 0).all()
            assert not active.any() or times[active, JOIN_S].max() <= joins[0]
        arriving = 0
        if state.receiving[0, node] and not draining:
            arriving = state.move_bytes_total[0, node]
        held = world.holding_bytes[state.holding[0, node]]
        running = state.active[0, node] * world.runtime_bytes_per_sequence
        assert held + arriving + running <= world.usable_bytes

    started = np.isin(status, (ACTIVE,))
    radio = times[started, JOIN_S] - times[started, ARRIVAL_S]
    prefill = times[started, FIRST_TOKEN_S] - times[started, START_S]
    ttft = times[started, FIRST_TOKEN_S] - times[started, ARRIVAL_S]
    assert (ttft >= radio + prefill - 1e-9).all()
    assert state.in_flight[0].sum() + state.queued[0].sum() + state.active[0].sum() == in_system(
        fleet
    )
    if world.telemetry_period_s == 0.0 and world.router_kind == 2 and world.wait_kind == 0:
        n = state.in_flight[0] + state.queued[0] + state.active[0]
        for node in range(count):
            slots = state.slots[0, node, state.profile[0, node]]
            rate = world.slot_service_rate[state.holding[0, node]]
            wait = max(0, n[node] - slots + 1) / (slots * rate)
            assert state.advertised_wait_s[0, node] == pytest.approx(wait, abs=1e-12)


@settings(max_examples=60)
@given(world=worlds(), seed=seeds, spans=spans)
def test_invariants(world, seed, spans):
    fleet = Fleet(world, seed)
    rng = np.random.default_rng(0)
    windows = []
    for span in spans:
        move_somewhere(fleet, rng)
        before = fleet.now_s
        windows.append(fleet.advance(span))
        assert fleet.now_s == before + span
        check_state(fleet)
        window = windows[-1]
        assert window.ttft_sum_s >= window.radio_sum_s + window.prefill_sum_s - 1e-9
        assert window.ttft_histogram.sum() == window.first_tokens
        assert window.families.sum(axis=1).tolist() == [
            window.arrivals,
            window.decided,
            window.hits,
        ]
        assert window.nearest_demand.sum() == window.arrivals
    total = reduce(add, windows)
    assert total.arrivals == total.completed + total.rejected + in_system(fleet)
    assert total.first_tokens <= total.arrivals
    assert total.hits <= total.decided <= total.arrivals
    # Everybody is decided in the end.
    fleet.state.scalars[0, NUM_REQUESTS] = fleet.state.scalars[0, NEXT_REQUEST]
    fleet.state.stream_end_s[0] = np.inf
    total = total + fleet.advance(1000.0)
    assert in_system(fleet) == awaiting_first_token(fleet) == 0
    assert total.arrivals == total.decided == total.completed == total.first_tokens


@settings(max_examples=40)
@given(world=worlds(), seed=seeds, spans=spans, cuts=st.integers(0, 2**32))
def test_slicing_does_not_change_a_bit(world, seed, spans, cuts):
    whole, sliced = Fleet(world, seed), Fleet(world, seed)
    rng, cutter = np.random.default_rng(0), np.random.default_rng(cuts)
    for span in spans:
        legal = np.argwhere(whole.legal_moves())
        if len(legal):
            move = legal[rng.integers(len(legal))]
            whole.start_move(*move)
            sliced.start_move(*move)
        parts = [sliced.advance(0.0)]
        left = span
        while left > 0.0:
            part = min(left, cutter.integers(1, 9) / 16)
            parts.append(sliced.advance(part))
            left -= part
        assert reduce(add, parts) == whole.advance(span)
    for name in ("holding", "active", "queued", "in_flight", "advertised_wait_s", "bucket_bytes"):
        np.testing.assert_array_equal(getattr(whole.state, name), getattr(sliced.state, name))


@settings(max_examples=20)
@given(world=worlds(), seed=seeds, spans=spans)
def test_same_seed_same_bits_and_other_seeds_differ(world, seed, spans):
    first, second = Fleet(world, seed), Fleet(world, seed)
    for span in spans:
        assert first.advance(span) == second.advance(span)
    for one, other in zip(first.state, second.state, strict=True):
        np.testing.assert_array_equal(one, other)
    third = Fleet(world, (seed + 1) % 2**64)
    assert third.state.node_x[0, 0] != first.state.node_x[0, 0]
