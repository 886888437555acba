"""Wrong arguments of a fleet: named, refused, and nothing half-changed."""

import math
from typing import Any

import numpy as np
import pytest

from edgegym.simulator import ArraySink, Fleet, NpzSink
from edgegym.simulator.columns import FREE_RECORD, HOLDS, PLACE, SITE_BITS, SIZE, USED_LEAVES
from edgegym.simulator.moves import IllegalMove
from edgegym.world import preset
from tests.simulator.test_fleet import assert_same


@pytest.fixture(scope="module")
def fleet():
    fleet = Fleet(preset("toy"), seed=3)
    fleet.advance(30.0)
    return fleet


@pytest.mark.parametrize("scenario", ["toy", None, {}])
def test_scenario(scenario):
    with pytest.raises(TypeError, match=r"scenario = .*: must be a Scenario"):
        Fleet(scenario)


@pytest.mark.parametrize("records", ["requests.parquet", [], ArraySink])
def test_records_are_a_sink(fleet, records):
    with pytest.raises(TypeError, match=r"records = .*: must be a sink"):
        Fleet(preset("toy"), records=records)
    with pytest.raises(TypeError, match=r"records = .*: must be a sink"):
        fleet.fork(records)


@pytest.mark.parametrize("router", ["nearest", lambda candidates, parameters: 0])
def test_a_router_of_the_users_own_is_a_user_router(router):
    with pytest.raises(TypeError, match=r"router = .*: must be a UserRouter"):
        Fleet(preset("toy"), router=router)


def test_no_file_is_begun_for_a_fleet_that_cannot_be_made(tmp_path):
    sink = NpzSink(tmp_path / "requests.npz")
    with pytest.raises(ValueError, match="tier_wait_s: only used"):
        Fleet(preset("toy"), tier_wait_s=[1.0], records=sink)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "wait_s", ["x", ["1", "2", "3"], [True] * 3, [[1], [2, 3]], [math.nan] * 3]
)
def test_tier_wait(wait_s):
    scenario = preset("toy").with_overrides(
        {"routing": {"kind": "load_aware", "advertised_wait": "tier"}}
    )
    with pytest.raises(ValueError, match=r"tier_wait_s = .*: must be"):
        Fleet(scenario, tier_wait_s=wait_s)


@pytest.mark.parametrize(
    ("seconds", "rule"),
    [
        ("3", "must be finite and at least 0"),
        (True, "must be finite and at least 0"),
        (None, "must be finite and at least 0"),
        ([1.0], "must be finite and at least 0"),
        (1e300, "the clock, now 30 s, must stay within 8e[+]09 s"),
        (10**400, "the clock, now 30 s, must stay within 8e[+]09 s"),
        (2e9, "requests are expected in it, must be fewer than 1e[+]09"),
    ],
)
def test_advance(fleet, seconds, rule):
    with pytest.raises(ValueError, match=f"seconds = .*{rule}"):
        fleet.advance(seconds)
    assert fleet.now_s == 30.0


@pytest.mark.parametrize(
    ("node", "profile"), [(True, 1), (0, 1.0), ("0", 1), (None, 0), (-1, 0), (0, -1), (10**30, 1)]
)
def test_start_move(fleet, node, profile):
    before = fleet.fork()
    with pytest.raises(IllegalMove, match=r"(node|profile) "):
        fleet.start_move(node, profile)
    assert_same(fleet, before)


def changed(state: Any, name: str, column: int, value: float) -> Any:
    array = getattr(state, name).copy()
    array[..., column] = value
    return state._replace(**{name: array})


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: None, "state is NoneType"),
        (tuple, "state is tuple: must be a FleetState"),
        (lambda s: s._replace(now=None), "state.now is NoneType"),
        (lambda s: s._replace(now=s.now.astype(int)), "state.now is int64"),
        (lambda s: s._replace(now=s.now * math.nan), "state.now has nan"),
        (lambda s: s._replace(up=s.up[:, :1]), "state.up has shape"),
        (lambda s: s._replace(soon_time=s.soon_time[:, :5]), "state.soon_time has length 5"),
        (lambda s: s._replace(leaf_following=s.leaf_following[:, :5]), "leaf_following has length"),
        (lambda s: s._replace(node_count=s.node_count + 9), "state.node_count has 11 to 11"),
        (lambda s: changed(s, "node_x", 0, math.nan), "state.node_x has nan"),
        (lambda s: changed(s, "profile", 0, 3), "state.profile has .* to 3: must be 0 to 2"),
        (lambda s: changed(s, "node_work", HOLDS, -1), "state.holding has -1"),
        (lambda s: changed(s, "node_work", PLACE, 2), r"state.node_work\[PLACE\] has 2"),
        (lambda s: changed(s, "sites", SITE_BITS, 1.0), "state.sites, holding has"),
        (lambda s: changed(s, "scalars", FREE_RECORD, 10**9), r"state.scalars\[FREE_RECORD\]"),
        (lambda s: changed(s, "record_index", 2, 99), r"state.record_index\[TYPE\]"),
        (lambda s: changed(s, "soon_item", 0, 10**7), "state.soon_item, record has"),
        (lambda s: changed(s, "far_item", 0, 1 << 40), "state.far_item, node has"),
        (lambda s: s._replace(leaf_entries=s.leaf_entries + 10**7), "state.leaf_entries, record"),
        (lambda s: changed(s, "soon_count", SIZE, 10**7), r"state.soon_count\[SIZE\]"),
        (lambda s: changed(s, "page_head", 0, 10**9), "state.page_head has"),
        (lambda s: changed(s, "calendar_num", USED_LEAVES, -1), r"calendar_num\[USED_LEAVES\]"),
        (lambda s: changed(s, "request_type", 0, 99), "state.request_type"),
    ],
)
def test_set_state(fleet, spoil, message):
    before = fleet.fork()
    with pytest.raises(ValueError, match=message):
        fleet.set_state(spoil(fleet.get_state()))
    assert_same(fleet, before)


def test_set_state_of_a_scenario_with_other_prefill_times(fleet):
    slow = Fleet(preset("toy").with_overrides({"hardware.prefill.linear_s": 2.6e-4}))
    with pytest.raises(ValueError, match="must be of a fleet of the same scenario"):
        fleet.set_state(slow.get_state())


def test_set_state_takes_a_busy_fleet_with_other_room():
    scenario = preset("toy").with_overrides({"demand.rate_per_node": 60.0})
    busy, idle = Fleet(scenario, seed=1), Fleet(scenario, seed=2)
    busy.advance(20.0)
    assert busy.state.record_time.shape != idle.state.record_time.shape
    idle.set_state(busy.get_state())
    assert idle.advance(5.0) == busy.advance(5.0)
    assert np.isfinite(idle.state.now).all()


def test_records_go_on_after_a_state_is_put_in():
    scenario, sink = preset("toy"), ArraySink()
    fleet, other = Fleet(scenario, 1, records=sink), Fleet(scenario, 1, full=True)
    other.advance(20.0)
    fleet.set_state(other.get_state())
    made = fleet.advance(20.0).completed
    assert sink.num_rows == made > 0
    # And the other way round: there is nobody to take records.
    other.set_state(fleet.get_state())
    assert other.state.full.log.real.size == 0


def test_windows_of_both_loops_do_not_add_up():
    fast, full = (Fleet(preset("toy"), 1, full=full).advance(1.0) for full in (False, True))
    with pytest.raises(ValueError, match="don't add up"):
        _ = fast + full


@pytest.mark.parametrize("family", [9, -1, "a", True])
def test_families_are_given_by_index(family):
    window = Fleet(preset("toy"), 1, full=True).advance(1.0)
    with pytest.raises(ValueError, match=r"family = .*: must be"):
        window.ttft_quantile_s(0.5, family)
    with pytest.raises(ValueError, match=r"family = .*: must be"):
        window.end_to_end_quantile_s(0.5, family)
