"""The scenario as arrays: every value of a small world by hand, and promises for all worlds."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from edgegym.world import Scenario, preset, presets
from tests.world.documents import changed, documents, minimal


def test_minimal_world_by_hand():
    world = Scenario(**minimal()).compile()
    assert (world.num_profiles, world.num_types, world.num_families) == (3, 2, 2)
    assert world.num_holdings == 3  # profiles are nested: no further intersections
    np.testing.assert_array_equal(world.hit_tokens, [[0, 0], [100, 100], [400, 100]])
    np.testing.assert_allclose(world.prefill_s, [[0.5, 0.2], [0.4, 0.1], [0.1, 0.1]])
    np.testing.assert_allclose(world.cold_prefill_s, [0.5, 0.2])
    np.testing.assert_allclose(world.min_prefill_s, [0.1, 0.1])
    np.testing.assert_array_equal(world.meet, [[0, 0, 0], [0, 1, 1], [0, 1, 2]])
    np.testing.assert_array_equal(world.move_bytes, [[0, 1000, 4000], [0, 0, 3000], [0, 0, 0]])
    np.testing.assert_array_equal(world.slots, [10, 9, 6])
    np.testing.assert_array_equal(world.type_family, [0, 1])
    # Mean occupancy of the first profile: 0.25 * (0.5 + 0.5) + 0.75 * (0.2 + 0.5).
    assert world.slot_service_rate[0] == pytest.approx(1 / 0.775)
    assert world.base_rate_per_s == pytest.approx(6.0)  # 3 nodes at 2 requests/s
    assert world.mean_rate_per_s == world.base_rate_per_s


def test_drift_equalises_its_members_in_the_long_run():
    drift = {"kind": "drift", "zipf_exponent": 1.0, "period_s": 60.0}
    world = Scenario(**changed("demand.modulations", [drift])).compile()
    np.testing.assert_allclose(world.family_base_share, [0.25, 0.75])
    np.testing.assert_allclose(world.family_share, [0.5, 0.5])
    np.testing.assert_allclose(world.type_share, [0.5, 0.5])


def test_families_outside_a_drift_keep_their_share():
    world = preset("popularity-drift").compile()
    np.testing.assert_allclose(world.family_share, [0.1] * 6 + [0.4])
    np.testing.assert_array_equal(world.drift_member, [True] * 6 + [False])


def test_flash_crowds_add_to_rate_and_to_their_families():
    flash = {
        "kind": "flash_crowd",
        "families": ["f"],
        "interval_s": 100.0,
        "duration_s": 20.0,
        "magnitude": 2.5,
        "sigma_km": 0.1,
    }
    world = Scenario(**changed("demand.modulations", [flash])).compile()
    assert world.mean_rate_per_s == pytest.approx(6.0 * 1.5)  # 2.5 * 20 / 100 on top
    np.testing.assert_allclose(world.family_share, [(0.25 + 0.5) / 1.5, 0.75 / 1.5])
    np.testing.assert_allclose(world.type_share, world.family_share)


def test_hotspot_members_are_numbered_in_order():
    assert preset("moving-hotspot").compile().hotspot_order.tolist() == [0, 1, 2, 3, 4, 5, -1]
    assert preset("stationary").compile().hotspot_order.tolist() == [-1] * 7


def test_a_random_phase_is_not_a_number_and_a_stated_one_is_kept():
    swing = {"kind": "diurnal", "amplitude": 0.5, "period_s": 60.0}
    both = [swing, swing | {"phase": 0.25, "phase_turns_per_km": 0.1}]
    world = Scenario(**changed("demand.modulations", both)).compile()
    np.testing.assert_array_equal(world.diurnal, [[0.5, 60, np.nan, 0], [0.5, 60, 0.25, 0.1]])


def test_bursts_change_no_mean():
    bursts = {"kind": "mmpp", "burst_level": 3.0, "burst_s": 2.0, "calm_s": 6.0}
    both = [bursts, bursts | {"families": ["g"]}]
    world = Scenario(**changed("demand.modulations", both)).compile()
    np.testing.assert_allclose(world.mmpp, [[1 / 3, 3, 6, 2]] * 2)
    np.testing.assert_array_equal(world.mmpp_member, [[True, True], [False, True]])
    assert world.mean_rate_per_s == world.base_rate_per_s
    np.testing.assert_allclose(world.family_share, [0.25, 0.75])


def test_radio_latency_of_types():
    plain = Scenario(**minimal()).compile()
    np.testing.assert_array_equal(plain.type_xi_factor, [1.0, 1.0])
    world = Scenario(**changed("request_types.1.xi_factor", 2.5)).compile()
    np.testing.assert_array_equal(world.type_xi_factor, [1.0, 2.5])


def test_output_lengths_are_random_where_the_service_says_so():
    assert not Scenario(**minimal()).compile().output_geometric
    document = changed("service", {"kind": "tokens", "output": "geometric"})
    document["hardware"]["decode"] = {"kind": "tpot", "tpot_s": {1: 0.02}, "batch": 1}
    assert Scenario(**document).compile().output_geometric


def _check_world(scenario: Scenario) -> None:
    world = scenario.compile()
    S, Q, F, H = world.num_profiles, world.num_types, world.num_families, world.num_holdings
    assert world.hit_tokens.shape == world.prefill_s.shape == (H, Q)
    assert world.meet.shape == world.move_bytes.shape == (S, S)
    assert world.slots.shape == world.initial_mix.shape == (S,)
    assert world.family_share.shape == world.hotspot_order.shape == (F,)
    for shares in (world.type_share, world.family_share, world.family_base_share):
        assert shares.sum() == pytest.approx(1)
        assert (shares > 0).all()
    in_family = np.bincount(world.type_family, world.type_share_in_family, F)
    np.testing.assert_allclose(in_family, 1)
    by_family = np.bincount(world.type_family, world.type_share, F)
    np.testing.assert_allclose(by_family, world.family_share)
    assert (world.hit_tokens <= world.input_tokens - 1).all()
    assert (world.prefill_s <= world.cold_prefill_s).all()
    assert (world.prefill_s >= world.min_prefill_s).all()
    # A move leaves the node with no more than either end, and fetches just what is missing.
    ends = world.holding_bytes[:S]
    left = world.holding_bytes[world.meet]
    np.testing.assert_array_equal(world.move_bytes, ends[None, :] - left)
    assert (left <= np.minimum(ends[:, None], ends[None, :])).all()
    hit, meet = world.hit_tokens[:S], world.hit_tokens[world.meet]
    np.testing.assert_array_equal(meet, np.minimum(hit[:, None], hit[None, :]))
    if scenario.nodes.classes:
        # Slots are means over the nodes that the profile fits; tests of classes look at each.
        assert (world.slots <= world.classes.slots.max(axis=0)).all()
        assert (world.slots >= 1).all()
        return
    used = ends + world.slots * world.runtime_bytes_per_sequence
    assert (used <= world.usable_bytes).all()
    assert (used + world.runtime_bytes_per_sequence > world.usable_bytes).all()


@given(documents())
def test_promises_hold_for_random_worlds(document):
    _check_world(Scenario(**document))


@pytest.mark.parametrize("name", presets())
def test_promises_hold_for_presets(name):
    _check_world(preset(name))


@pytest.mark.parametrize("name", presets())
def test_arrays_keep_their_types_and_stay_writable_through_pickle(name):
    # Numba compiles a kernel once for each set of array types: copies must not differ.
    world = preset(name).compile()
    copied = pickle.loads(pickle.dumps(world))
    _check_same_types(world, copied)


def _check_same_types(world: tuple[Any, ...], copied: tuple[Any, ...]) -> None:
    for before, after in zip(world, copied, strict=True):
        assert type(before) is type(after)
        if isinstance(before, np.ndarray):
            assert before.dtype in (np.float64, np.int64, np.bool_)
            assert before.dtype == after.dtype
            assert before.flags["C_CONTIGUOUS"]
            assert after.flags["C_CONTIGUOUS"]
            assert before.flags["WRITEABLE"]
            assert after.flags["WRITEABLE"]
            np.testing.assert_array_equal(before, after)
        elif isinstance(before, tuple):
            _check_same_types(before, after)
        else:
            assert type(before) in (float, int, bool)
