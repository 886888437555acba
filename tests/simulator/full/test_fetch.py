"""Fetch or recompute: decisions by hand on both sides of break-even, and exact externalities."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.jit import kernel
from edgegym.simulator.compiling import lend
from edgegym.simulator.full.fetch import (
    ALWAYS,
    CONTROLLERS,
    INDEPENDENT,
    JOINT,
    NEVER,
    FetchParams,
    best_held_hit,
    choose_fetch,
    exposed_stall_s,
    fetch_params,
    missing_prefix,
    restore_seconds,
)
from edgegym.simulator.full.flows import FETCH
from edgegym.simulator.full.link import add_flow, allocate_link, set_link_up
from tests.simulator.fleets import GB, scenario
from tests.simulator.full.links import ADD, one_of, params, play


def controller(kind, *, budget_share=1.0, target_s=100.0, from_origin=False):
    """Return the constants for one type whose path holds 400, then 800 tokens in 1 and 3 GB."""
    return FetchParams(
        controller=kind,
        budget_share=budget_share,
        from_origin=from_origin,
        target_s=np.array([target_s]),
        path_length=np.array([2]),
        path_tokens=np.array([[400.0, 800.0]]),
        path_bytes=np.array([[GB, 3 * GB]]),
    )


@kernel
def _choose(fetch, link_params, state, flows, size, wait, compute, fetched, age, now, up):
    """Let flows of given bytes begin at 0; weigh a fetch at some time."""
    link = lend(state)
    for k in range(len(flows)):
        add_flow(link_params, link, 0.0, FETCH, k, 0, 1, flows[k])
    if not up:
        set_link_up(link_params, link, 0.0, False)
    choice = choose_fetch(fetch, link_params, link, now, 0, 0, size, wait, compute, fetched, age)
    return choice.fetch, choice.fetch_s, choice.compute_s, choice.imposed_s


def choose(
    fetch, link_params, *, size, flows=(), wait=0.0, compute, fetched, age=0.0, now=0.0, up=True
):
    """Weigh a fetch; return whether, its time, that of computing, and the delay imposed."""
    link = one_of(allocate_link(link_params, 3))
    flows = np.array(flows, dtype=np.int64)
    return _choose(fetch, link_params, link, flows, size, wait, compute, fetched, age, now, up)


@pytest.mark.twin
def test_tables_of_paths_by_hand():
    tables = fetch_params(scenario(fetch={"controller": "joint"}))
    assert CONTROLLERS[tables.controller] == "joint"
    assert list(tables.path_length) == [2, 1]
    np.testing.assert_array_equal(tables.path_tokens, [[400, 800], [500, 0]])
    np.testing.assert_array_equal(tables.path_bytes, [[GB, 2 * GB], [GB, 0]])
    assert not tables.from_origin


def test_weights_and_vertices_without_tokens_are_not_fetched():
    """The model's weights must be held anyway; the last token of a prompt is always computed."""
    forest = [
        {"name": "model", "depth_tokens": 0, "bytes": 5 * GB, "weights": True},
        {"name": "small", "parent": "model", "depth_tokens": 400, "bytes": GB},
        {"name": "same", "parent": "small", "depth_tokens": 400, "bytes": GB},
        {"name": "big", "parent": "same", "depth_tokens": 1000, "bytes": GB},
        {"name": "other", "parent": "model", "depth_tokens": 500, "bytes": GB},
    ]
    world = scenario(
        forest=forest,
        **{
            "hardware.memory_bytes": 30 * GB,
            "profiles": [{"name": "none", "vertices": ["model"]}],
            "initial.mix": {"none": 1.0},
        },
    )
    tables = fetch_params(world)
    np.testing.assert_array_equal(tables.path_tokens[0], [400, 999])
    np.testing.assert_array_equal(tables.path_bytes[0], [GB, 3 * GB])


@kernel
def _missing(fetch, hit_tokens, holders, local_hit, origin_up):
    best = best_held_hit(fetch, hit_tokens, holders, 0, origin_up)
    return missing_prefix(fetch, 0, local_hit, best)


@pytest.mark.twin
@pytest.mark.parametrize(
    ("holders", "local", "origin", "origin_up", "size", "hit"),
    [
        ([3, 0, 0], 0.0, False, False, 0, 0.0),  # nobody holds anything
        ([3, 2, 0], 0.0, False, False, GB, 400.0),
        ([3, 2, 1], 0.0, False, False, 3 * GB, 800.0),
        ([3, 0, 1], 400.0, False, False, 2 * GB, 800.0),
        ([3, 2, 0], 400.0, False, False, 0, 400.0),
        ([3, 2, 1], 800.0, False, False, 0, 800.0),
        ([3, 0, 0], 0.0, True, True, 3 * GB, 800.0),  # the origin's store has everything
        ([3, 1, 0], 0.0, True, False, GB, 400.0),  # while it is up
    ],
)
def test_missing_prefix_by_hand(holders, local, origin, origin_up, size, hit):
    table = np.array([[0.0], [400.0], [800.0]])
    fetch = controller(ALWAYS, from_origin=origin)
    assert _missing(fetch, table, np.array(holders), local, origin_up) == (size, hit)


# 1 GB at 1 GB/s: T = 1 s. Computing takes 2 s longer than with the prefix. With 4 GB/s, D = 0.25 s.
LINK = params(1e9, restore=4e9)


@pytest.mark.twin
def test_never_and_always():
    for kind, fetches in ((NEVER, False), (ALWAYS, True)):
        result = choose(controller(kind), LINK, size=9 * GB, compute=2.1, fetched=0.1)
        assert result[0] == fetches
    assert not choose(controller(ALWAYS), LINK, size=0, compute=2.0, fetched=2.0)[0]
    assert not choose(controller(ALWAYS), LINK, size=GB, compute=2.0, fetched=1.0, up=False)[0]


@pytest.mark.twin
@pytest.mark.parametrize("kind", [INDEPENDENT, JOINT])
@pytest.mark.parametrize(
    ("wait", "saved", "fetches"),
    [
        # Q = 0: T + D = 1.25 s must be less than what prefill saves.
        (0.0, 1.26, True),
        (0.0, 1.24, False),
        # Q = 0.6: 0.4 s of the transfer stick out; with D they make 0.65 s.
        (0.6, 0.66, True),
        (0.6, 0.64, False),
        # Q = 3: the transfer hides in the wait, D does not.
        (3.0, 0.26, True),
        (3.0, 0.24, False),
    ],
)
def test_break_even_on_an_empty_link(kind, wait, saved, fetches):
    result = choose(controller(kind), LINK, size=GB, wait=wait, compute=0.1 + saved, fetched=0.1)
    assert result[0] == fetches
    assert result[1] == pytest.approx(max(wait, 1.0) + 0.25 + 0.1, rel=1e-14)
    assert result[2] == pytest.approx(wait + 0.1 + saved, rel=1e-14)


@pytest.mark.twin
def test_independent_controllers_act_on_what_was_advertised():
    """Three flows of 10 GB since 0; period 1 s. At 0.5 s the link still passes for empty (T = 1 s),
    from 1 s on for one of which a fourth flow gets a quarter (T = 4 s)."""
    busy = {"flows": [10 * GB] * 3, "size": GB, "compute": 3.1, "fetched": 0.1}
    early = choose(controller(INDEPENDENT), LINK, now=0.5, **busy)
    late = choose(controller(INDEPENDENT), LINK, now=1.5, **busy)
    assert early[:2] == (True, pytest.approx(1.35))
    assert late[:2] == (False, pytest.approx(4.35))
    # The joint one knows at once: each of the three loses 1 s to it, and it waits as long for them.
    joint = choose(controller(JOINT), LINK, now=0.5, **busy)
    assert joint == (False, pytest.approx(4.35), pytest.approx(3.1), pytest.approx(3.0))


@pytest.mark.twin
@pytest.mark.parametrize(("saved", "fetches"), [(3.865, False), (3.885, True)])
def test_joint_adds_the_delay_of_others(saved, fetches):
    """One flow has 5 GB left, 1.5 GB more would end after 3 s and delay it by 1.5 s.

    With a slot after 1 s, 2 s of the transfer stick out; with 0.375 s of restoration and the other
    flow's 1.5 s, a fetch pays when it saves more than 3.875 s of prefill.
    """
    result = choose(
        controller(JOINT),
        LINK,
        flows=[5 * GB],
        size=3 * GB // 2,
        wait=1.0,
        compute=0.1 + saved,
        fetched=0.1,
    )
    assert result[0] == fetches
    assert result[3] == pytest.approx(1.5)


@pytest.mark.twin
@pytest.mark.parametrize(
    ("share", "age", "target", "fetches"),
    [
        # The fetch takes 1.35 s, computing 3.1 s.
        (1.0, 0.0, 4.0, True),
        (0.5, 0.0, 4.0, True),
        (0.3, 0.0, 4.0, False),
        (1.0, 2.6, 4.0, True),
        (1.0, 2.7, 4.0, False),
        (10.0, 9.0, 4.0, True),
    ],
)
def test_joint_keeps_within_its_share_of_the_target(share, age, target, fetches):
    fetch = controller(JOINT, budget_share=share, target_s=target)
    assert choose(fetch, LINK, size=GB, compute=3.1, fetched=0.1, age=age)[0] == fetches


@pytest.mark.twin
@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 600), max_size=8),
    size=st.integers(1, 600),
    access=st.sampled_from([math.inf, 60.0]),
)
def test_externality_is_the_difference_of_two_simulations(sizes, size, access):
    """What `joint` puts on the flows that are there is what they lose, with it and without it."""
    link_params = params(100.0, access=access)
    before = [(0.0, ADD, 1, other) for other in sizes]
    without = play(link_params, before or [(0.0, ADD, 1, 1)]).ends[: len(sizes)]
    with_it = play(link_params, [*before, (0.0, ADD, 0, size)]).ends
    _, fetch_s, _, imposed_s = choose(
        controller(JOINT, target_s=1e9),
        link_params,
        flows=sizes,
        size=size,
        compute=1e6,
        fetched=1.0,
    )
    assert imposed_s == pytest.approx((with_it[:-1] - without).sum(), rel=1e-9, abs=1e-9)
    assert fetch_s == pytest.approx(with_it[-1] + 1.0, rel=1e-12)


@kernel
def _stall(layers, begin, end, slot, busy):
    return exposed_stall_s(layers, begin, end, slot, busy)


def pipeline_stall(layers, begin, end, slot, busy):
    """Return the stall from a simulation of the two stages, layer by layer."""
    arrivals = [begin + (end - begin) * (k + 1) / layers for k in range(layers)]
    done = slot
    for arrival in arrivals:
        done = max(done, arrival) + busy / layers
    return done - slot - busy


@pytest.mark.twin
@given(
    layers=st.sampled_from([1, 2, 3, 32]),
    begin=st.floats(0.0, 5.0),
    transfer=st.floats(0.0, 5.0),
    slot=st.floats(0.0, 10.0),
    busy=st.floats(0.0, 5.0),
)
def test_layers_hide_all_but_the_critical_path(layers, begin, transfer, slot, busy):
    slot, end = max(begin, slot), begin + transfer
    expected = pipeline_stall(layers, begin, end, slot, busy)
    assert _stall(layers, begin, end, slot, busy) == pytest.approx(expected, abs=1e-12)


@pytest.mark.twin
def test_layers_by_hand():
    """4 layers, 4 s of transfer, 2 s of work from 0: the last layer comes at 4 and takes 0.5 s."""
    assert _stall(4, 0.0, 4.0, 0.0, 2.0) == 2.5
    # 8 s of work: the first layer comes at 1, then work is the slower stage.
    assert _stall(4, 0.0, 4.0, 0.0, 8.0) == 1.0
    assert _stall(1, 0.0, 4.0, 1.0, 8.0) == 3.0
    assert _stall(4, 0.0, 4.0, 5.0, 8.0) == 0.0


@kernel
def _restore(link_params, size):
    return restore_seconds(link_params, size)


@pytest.mark.twin
def test_restoration_by_hand():
    assert _restore(LINK, 2 * GB) == 0.5
    assert _restore(params(1e9), 2 * GB) == 0.0
