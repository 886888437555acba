"""Seconds per token, and the decode times that follow from them."""

import numpy as np
import pytest

from edgegym.jit import kernel
from edgegym.simulator.full.engine_data import engine_params
from edgegym.simulator.full.tokens import decode_seconds, tpot_table
from edgegym.world import preset
from edgegym.world.hardware import Hardware

pytestmark = pytest.mark.twin


@kernel
def decode(token_s, klass, active, output):
    return decode_seconds(token_s, klass, active, output)


def hardware(decode):
    return Hardware.model_validate(
        {
            "memory_bytes": 100,
            "kv_bytes_per_token": 1,
            "prefill": {"linear_s": 0.001},
            "decode": decode,
        }
    )


def test_table_has_a_row_for_each_class_and_nothing_without_a_sequence():
    classes = [
        hardware({"kind": "tpot", "tpot_s": {1: 0.1, 3: 0.3}}),
        hardware({"kind": "occupancy", "occupancy_s": 1.0}),
        hardware({"kind": "steps", "step_s": {0: {0: 0.01}, 2: {0: 0.03, 9: 0.5}}}),
    ]
    expected = [[0, 0.1, 0.2, 0.3, 0.3], [0, 0, 0, 0, 0], [0, 0.02, 0.03, 0.03, 0.03]]
    np.testing.assert_allclose(tpot_table(classes, 4), expected)


def test_request_decodes_all_tokens_but_the_first_at_the_pace_that_it_finds():
    table = np.array([[0.0, 0.1, 0.2], [0.0, 0.5, 0.7]])
    assert decode(table, 0, 2, 11.0) == pytest.approx(2.0)
    assert decode(table, 1, 1, 3.0) == pytest.approx(1.0)
    assert decode(table, 1, 1, 1.0) == 0.0
    assert decode(table, 1, 1, 0.0) == 0.0


def test_parameters_come_from_the_scenario():
    scenario = preset("paper").with_overrides(
        {
            "hardware.decode": {"kind": "tpot", "tpot_s": {1: 0.02, 9: 0.04}},
            "service": {"kind": "engine", "schedule": "chunked", "step_tokens": 64},
            "backhaul.restore_bytes_per_s": 1e9,
            "backhaul.restore_slowdown": 1.5,
        }
    )
    params = engine_params(scenario, scenario.compile())
    most = max(scenario.concurrency)
    assert (params.chunked, params.step_tokens, params.most) == (True, 64, most)
    assert params.slowdown == 1.5
    assert params.token_s.shape == params.prompt_s.shape == (1, most + 1)
    assert params.token_s[0, 5] == pytest.approx(0.03)
    linear_s = scenario.hardware.prefill.linear_s
    np.testing.assert_allclose(params.prompt_s[0], linear_s * (64 - np.arange(most + 1)))
    plain = engine_params(preset("paper"), preset("paper").compile())
    assert not plain.chunked
