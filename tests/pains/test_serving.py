"""Pains of people who read what serving simulators say: each shown to be absent."""

import numpy as np
import pytest

from edgegym.evaluation import compare
from edgegym.simulator import Fleet
from edgegym.world import preset
from tests.envs.workers import SHORT


def test_prefix_hits_are_credited():
    """The same requests, with their prefixes held and without."""
    windows = {}
    for profile in ("none", "hold_a"):
        world = preset("toy").with_overrides({"initial.mix": {profile: 1.0}})
        windows[profile] = Fleet(world, seed=1).advance(300.0)
    cold, warm = windows["none"], windows["hold_a"]
    assert cold.arrivals == warm.arrivals
    assert cold.hit_tokens_sum == 0 < warm.hit_tokens_sum
    assert warm.mean_ttft_s < cold.mean_ttft_s
    for window in (cold, warm):
        charged = window.cold_prefill_sum_s - window.saved_prefill_sum_s
        assert window.prefill_sum_s == pytest.approx(charged, rel=1e-6)


def test_kv_capacity_follows_from_bytes_and_is_reported():
    world = preset("moving-hotspot")
    for held_bytes, slots in zip(world.state_bytes, world.concurrency, strict=True):
        left = world.hardware.usable_bytes - held_bytes
        assert slots == left // world.runtime_bytes_per_sequence
    fleet = Fleet(world.with_overrides({"initial.mix": {"deep_1": 1.0}}), seed=0)
    tokens = int(world.catalogue.hit_tokens[2].max())
    np.testing.assert_array_equal(fleet.cached_tokens, tokens)


def test_the_parts_of_ttft_add_up():
    window = Fleet(preset("moving-hotspot"), seed=0).advance(60.0)
    parts = window.radio_sum_s, window.wait_sum_s, window.prefill_sum_s
    assert min(parts) > 0.0
    assert sum(parts) == pytest.approx(window.ttft_sum_s, rel=1e-9)


def test_attainment_and_percentiles_are_in_every_report():
    result = compare({"static": "static"}, "toy", [1], overrides=SHORT, workers=1, progress=False)
    (row,) = result.table
    assert 0.0 <= row.coverage <= 1.0
    assert 0.0 < row.p50_ttft_s <= row.p90_ttft_s <= row.p99_ttft_s
    assert Fleet(preset("moving-hotspot"), seed=0).advance(20.0).goodput_tokens_sum > 0


def test_a_move_takes_bytes_of_a_budget_and_time_on_the_link():
    world = preset("toy").with_overrides({"initial.mix": {"none": 1.0}})
    fleet = Fleet(world, seed=0)
    before = fleet.bucket_bytes
    fleet.start_move(0, 1)
    price = int(world.compile().move_bytes[0, 1])
    assert price == world.state_bytes[1] > 0
    assert before - fleet.bucket_bytes == price
    fleet.advance(30.0)
    state = fleet.state
    seconds = state.transfer_end_s[0, 0] - state.transfer_start_s[0, 0]
    assert seconds == pytest.approx(price / world.backhaul.rate_bytes_per_s)
