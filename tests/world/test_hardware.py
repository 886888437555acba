"""Prefill and decode times, memory, and the figures of known hardware."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.world.errors import ScenarioError
from edgegym.world.hardware import (
    Hardware,
    OccupancyDecode,
    Prefill,
    StepsDecode,
    TpotDecode,
    prefill_s,
)
from edgegym.world.hardware_presets import HARDWARE_PRESETS, hardware_figures

SHARED_FIGURES = Path(__file__).parents[3] / "shared" / "data" / "hardware_presets_derived.json"


def test_residual_prefill_by_hand():
    prefill = Prefill(linear_s=0.01, quadratic_s=0.001)
    # 10 new tokens: 0.1 + 0.1; nothing new: 0.
    np.testing.assert_allclose(prefill_s(prefill, [30, 30], [20, 30]), [0.2, 0.0], atol=1e-15)


def test_context_prefill_also_attends_to_cached_tokens():
    prefill = Prefill(linear_s=0.01, quadratic_s=0.001, attention="context")
    assert prefill_s(prefill, 30, 20) == pytest.approx(0.1 + 0.001 * (900 - 400))
    assert prefill_s(prefill, 30, 0) == pytest.approx(0.3 + 0.9)


def test_floor_bounds_the_linear_part_of_any_new_token():
    prefill = Prefill(linear_s=0.01, quadratic_s=0.001, floor_s=0.5)
    np.testing.assert_allclose(prefill_s(prefill, 30, [30, 29, 0]), [0, 0.501, 0.5 + 0.9])


@given(
    st.sampled_from(["residual", "context"]),
    st.floats(0, 1e-3),
    st.floats(0, 1e-6),
    st.floats(0, 0.1),
    st.integers(2, 100_000),
    st.data(),
)
def test_more_cached_tokens_never_take_longer(attention, linear, quadratic, floor, length, data):
    prefill = Prefill(linear_s=linear, quadratic_s=quadratic, floor_s=floor, attention=attention)
    hit = data.draw(st.integers(0, length - 2))
    fewer, more = prefill_s(prefill, length, [hit, hit + 1])
    assert 0 <= more <= fewer


def test_occupancy_decode_is_the_same_for_all():
    np.testing.assert_array_equal(OccupancyDecode(occupancy_s=0.58).seconds(np.ones(2)), [0.58] * 2)


@pytest.mark.parametrize(("batch", "tpot"), [(1, 0.02), (4, 0.03), (10, 0.04), (99, 0.04)])
def test_tpot_decode_reads_between_the_rows(batch, tpot):
    decode = TpotDecode(tpot_s={7: 0.04, 1: 0.02}, batch=batch)
    np.testing.assert_allclose(decode.seconds(np.array([100.0])), [100 * tpot])


STEPS = {0: {0: 0.01, 10: 0.02, 40: 0.08}, 2: {0: 0.05, 20: 0.07}, 8: {5: 0.06, 45: 0.2}}


@pytest.mark.parametrize(
    ("sequences", "tokens", "step"),
    [
        (0, 10, 0.02),  # in the table
        (0, 25, 0.05),  # between chunks
        (2, 90, 0.07),  # beyond them
        (8, 0, 0.06),
        (1, 20, 0.5 * (0.04 + 0.07)),  # between sequences
        (5, 25, 0.5 * (0.07 + 0.13)),  # between both
        (99, 25, 0.13),  # beyond them
    ],
)
def test_steps_decode_reads_between_rows_and_columns(sequences, tokens, step):
    decode = StepsDecode(step_s=STEPS)
    assert decode.step(sequences, tokens) == pytest.approx(step)
    both = decode.step([[sequences], [2]], [tokens, 0])
    assert both.shape == (2, 2)
    np.testing.assert_allclose(np.diag(both), [step, 0.05])


def test_steps_decode_without_a_prompt_is_the_time_per_token():
    decode = StepsDecode(step_s=STEPS, batch=5)
    np.testing.assert_allclose(decode.tpot([0, 2, 5, 8]), [0.01, 0.05, 0.055, 0.06])
    np.testing.assert_allclose(decode.seconds(np.array([100.0])), [5.5])
    assert StepsDecode(step_s={3: {7: 0.5}}).step(1, 2) == 0.5


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ({1: {}}, "1: give the seconds of at least one chunk"),
        ({1: {0: 0.02, 9: 0.01}}, r"1\.9 = 0\.01: a step with more prompt tokens can't take less"),
        ({1: {0: 0.0}}, "greater than 0"),
        ({-1: {0: 0.1}}, "greater than or equal to 0"),
        ({}, "at least 1 item"),
    ],
)
def test_steps_decode_refuses_what_no_engine_does(steps, message):
    with pytest.raises(ValueError, match=message):
        StepsDecode(step_s=steps)


def hardware(**changes) -> Hardware:
    blocks = {
        "memory_bytes": 100,
        "kv_bytes_per_token": 1,
        "prefill": {"linear_s": 0.1},
        "decode": {"kind": "occupancy", "occupancy_s": 1.0},
    }
    return Hardware(**(blocks | changes))


def test_weights_come_off_the_memory_first():
    assert hardware(weights_bytes=60).usable_bytes == 40
    with pytest.raises(ValueError, match=r"weights_bytes = 100: must be below memory_bytes = 100"):
        hardware(weights_bytes=100)


def test_preset_fills_in_what_is_not_stated():
    figures = hardware_figures("llama-3.1-8b@l40s")
    filled = Hardware.model_validate({"preset": "llama-3.1-8b@l40s", "kv_bytes_per_token": 7})
    assert filled.weights_bytes == figures.weights_bytes
    assert filled.kv_bytes_per_token == 7
    assert filled.prefill.attention == "context"
    assert filled.usable_bytes == pytest.approx(figures.usable_kv_gib * 2**30, rel=1e-9)


def test_unknown_preset_is_refused_with_the_known_ones():
    with pytest.raises(ScenarioError, match=r"hardware\.preset = 'abacus': .*llama-3\.1-8b@l4\b"):
        hardware_figures("abacus")


@pytest.mark.parametrize("figures", HARDWARE_PRESETS, ids=lambda figures: figures.name)
def test_every_preset_says_how_far_to_trust_it_and_is_sound(figures):
    assert "not a measurement" in figures.accuracy
    made = Hardware(**figures.as_hardware())
    assert made.usable_bytes > 0
    batches, milliseconds = zip(*figures.decode_ms, strict=True)
    assert list(batches) == sorted(batches)
    assert list(milliseconds) == sorted(milliseconds)


@pytest.mark.skipif(not SHARED_FIGURES.exists(), reason="the source of the figures is not here")
def test_presets_are_the_derived_figures():
    def key(model, gpu, weights, parallel):
        return model, gpu, weights, parallel

    rows = {
        key(row["model"], row["gpu"], row["weights"], row["tp"]): row
        for row in json.loads(SHARED_FIGURES.read_text())
    }
    for figures in HARDWARE_PRESETS:
        row = rows.pop(key(figures.model, figures.gpu, figures.weights, figures.tensor_parallel))
        assert {
            "kv_bytes_per_token": figures.kv_bytes_per_token,
            "weight_bytes": figures.weights_bytes,
            "usable_kv_GiB": figures.usable_kv_gib,
            "a_s_per_token": figures.prefill_linear_s,
            "b_s_per_token2": figures.prefill_quadratic_s,
            "t_floor_s": figures.prefill_floor_s,
            "mfu_linear": figures.flop_utilization[0],
            "mfu_attn": figures.flop_utilization[1],
            "dense_tflops": figures.dense_tflops,
            "bw_GBs": figures.bandwidth_gb_per_s,
            "bw_eff": figures.bandwidth_efficiency,
        }.items() <= row.items()
        assert row["decode_ms"] == {str(batch): value for batch, value in figures.decode_ms}
    assert not rows
