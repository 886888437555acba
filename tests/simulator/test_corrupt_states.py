"""States with wrong numbers in them are refused: kernels follow indices without looking."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgegym.simulator import AskingFleet, Fleet
from edgegym.simulator.full import columns, engine_data, flows, lru_data
from edgegym.simulator.tree import named_arrays
from edgegym.world import preset
from tests.simulator.fleets import GB, scenario
from tests.simulator.full.random_worlds import worlds

WRONG = (-(10**9), -3, 10**9)


def spoilt(fleet, name, at, value):
    """Return the fleet's state with one number of an array replaced."""
    state = fleet.get_state()
    dict(named_arrays(state))[name][at] = value
    return state


@pytest.fixture(scope="module")
def busy():
    """Return a fleet with an engine, a shared link, failures and radio ways."""
    world = scenario(
        **{
            "nodes": {"count": 3},
            "demand.rate_per_node": 9.0,
            "service": {"kind": "engine", "schedule": "fifo"},
            "hardware.decode": {"kind": "tpot", "tpot_s": {1: 0.01, 4: 0.02}, "batch": 2},
            "backhaul": {"rate_bytes_per_s": 0.5 * GB, "sharing": "shared"},
            "fetch": {"controller": "always"},
            "failures": {"nodes": {"mean_up_s": 4.0, "mean_down_s": 0.7}},
        }
    )
    fleet = Fleet(world, 3)
    fleet.advance(2.0)
    return fleet


@pytest.mark.twin
@pytest.mark.parametrize(
    ("name", "at", "value", "words"),
    [
        (
            "full.tasks.num",
            (0, 0, columns.FLOW),
            64,
            r"tasks.num\[FLOW\] has -1 to 64: must be -1 to",
        ),
        ("full.tasks.num", (0, 0, columns.HIT_DEPTH), 9, r"tasks.num\[HIT_DEPTH\]"),
        ("full.scalars", (0, columns.FORCED_STATION), 3, r"scalars\[FORCED_STATION\]"),
        ("full.node_class", (0, 0), -1, "node_class"),
        ("full.node_flows.num", (0, 0, columns.NODE_FLOW), -2, r"node_flows.num\[NODE_FLOW\]"),
        ("full.timers.heap", (0, 0), 3, "timers.heap has .* to 3: must be 0 to 2"),
        ("full.engine.state", (0, 0, engine_data.ROOT), 10**6, r"engine.state\[ROOT\]"),
        ("full.engine.link", (0, 0, 0), -2, "engine.link has -2"),
        ("full.link.num", (0, flows.NUM_FLOWS), 10**6, r"link.num\[NUM_FLOWS\]"),
        ("full.link.flow", (0, 0, flows.NEXT_SIBLING), 64, r"link.flow\[NEXT_SIBLING\]"),
        ("full.link.group_of", (0, 0), 1, "link.group_of"),
        ("full.routing.failed_count", (0, 0), 1, "routing.failed_count has 1 to 1"),
        ("node_work", (0, 0, 1), 10**9, r"node_work\[WAITING\]"),
        ("cells", (0, 0), 10**9, "cells is"),
    ],
)
def test_indices_of_the_full_loop_are_checked(busy, name, at, value, words):
    with pytest.raises(ValueError, match=f"state.*{words}"):
        busy.fork().set_state(spoilt(busy, name, at, value))


@pytest.mark.twin
@pytest.mark.parametrize("column", ["OLDEST", "NEWEST", "PINNED_BYTES"])
def test_indices_of_radix_caches_are_checked(column):
    world = scenario(cache={"kind": "lru", "budget_bytes": 2 * GB})
    fleet = Fleet(world, 3)
    fleet.advance(2.0)
    state = spoilt(fleet, "full.lru.stations", (0, 0, getattr(lru_data, column)), -2)
    with pytest.raises(ValueError, match=f"lru.stations.{column}. has -2"):
        fleet.set_state(state)


@pytest.mark.twin
@pytest.mark.parametrize(
    "name", ["tasks.num", "engine.request", "link.listed", "lengths.input_tokens"]
)
def test_arrays_that_grow_grow_together(busy, name):
    state = busy.get_state()
    group, field = name.split(".")
    part = getattr(state.full, group)
    short = part._replace(**{field: getattr(part, field)[:, :3]})
    full = state.full._replace(**{group: short})
    with pytest.raises(ValueError, match=r"state.full.*has length .*: must be"):
        busy.fork().set_state(state._replace(full=full))


@pytest.mark.twin
def test_a_fleet_does_not_go_on_where_another_has_asked():
    asking, fleet = (
        kind(preset("toy"), 1, **more)
        for kind, more in ((AskingFleet, {}), (Fleet, {"full": True}))
    )
    fleet.set_state(asking.get_state())
    asking.ask()
    with pytest.raises(ValueError, match="state is of an AskingFleet that has begun to ask"):
        fleet.set_state(asking.get_state())


@pytest.mark.twin
@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") != "1", reason="compiled, it would crash")
@settings(
    max_examples=12,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(worlds(), st.integers(0, 2**20))
def test_wrong_numbers_are_refused_or_harmless(world, seed):
    """Any number of any integer array: no kernel leaves its arrays."""
    random = np.random.default_rng(seed)
    fleet = Fleet(world, seed, full=True)
    fleet.advance(1.5)
    arrays = [(name, a) for name, a in named_arrays(fleet.state) if a.dtype.kind == "i" and a.size]
    for index in random.choice(len(arrays), size=25, replace=False):
        name, array = arrays[index]
        in_use = np.flatnonzero(array > 0)
        at = random.choice(in_use if in_use.size else array.size)
        state = spoilt(fleet, name, np.unravel_index(at, array.shape), random.choice(WRONG))
        other = fleet.fork()
        try:
            other.set_state(state)
        except ValueError:
            continue
        with np.errstate(over="ignore"):
            other.advance(0.3)
