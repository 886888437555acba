"""The flowing engine against one that goes step by step, each step a whole number of tokens."""

import numpy as np
import pytest

from edgegym.simulator.full.engine import FINISHED, FIRST_TOKEN
from edgegym.simulator.full.engine_data import make_engine_params
from edgegym.world.hardware import Hardware
from tests.simulator.full.engines import ADMIT, STOP, play_rows

STEP_TOKENS, MOST, LINEAR_S = 256, 128, 2e-4
TPOT_S = {1: 0.02, 8: 0.022, 64: 0.04}


def one_step_at_a_time(arrivals, prompts, outputs, step_s):
    """Return first tokens and ends; a step serves every sequence, then prompts in their order."""
    number = len(arrivals)
    left, tokens = prompts.copy(), outputs.copy()
    first, end = np.full(number, np.nan), np.full(number, np.nan)
    waiting, decoding = [], []
    now, coming = 0.0, 0
    while coming < number or waiting or decoding:
        if not waiting and not decoding:
            now = max(now, arrivals[coming])
        while coming < number and arrivals[coming] <= now:
            waiting.append(coming)
            coming += 1
        room = STEP_TOKENS - len(decoding)
        chunk, done = 0, []
        while waiting and room > 0:
            part = min(room, left[waiting[0]])
            left[waiting[0]] -= part
            room -= part
            chunk += part
            if left[waiting[0]] > 0:
                break
            done.append(waiting.pop(0))
        now += step_s(len(decoding), chunk)
        for request in decoding:
            tokens[request] -= 1
            if tokens[request] == 0:
                end[request] = now
        decoding = [request for request in decoding if tokens[request] > 0]
        first[done] = now
        decoding += done
    return first, end


@pytest.mark.parametrize("load", [0.3, 0.8])
def test_flows_are_within_a_few_steps_of_whole_steps(load):
    rng = np.random.default_rng(3)
    number = 3_000
    prompts = rng.integers(100, 4000, number)
    outputs = rng.integers(20, 200, number)
    # Prompts take their share of steps that also carry some ten sequences.
    rate = load / (prompts.mean() * (LINEAR_S + 0.0225 / (STEP_TOKENS - 10)))
    arrivals = np.cumsum(rng.exponential(1.0 / rate, number))
    hardware = Hardware.model_validate(
        {
            "memory_bytes": 100,
            "kv_bytes_per_token": 1,
            "prefill": {"linear_s": LINEAR_S},
            "decode": {"kind": "tpot", "tpot_s": TPOT_S},
        }
    )
    made = make_engine_params([hardware], most=MOST, chunked=True, step_tokens=STEP_TOKENS)
    rows = np.zeros((number + 1, 7))
    rows[:-1, 0], rows[-1, 0] = arrivals, 1e9
    rows[:-1, 1], rows[-1, 1] = ADMIT, STOP
    rows[:-1, 3], rows[:-1, 4] = np.arange(number), prompts
    rows[:-1, 5], rows[:-1, 6] = prompts * LINEAR_S, outputs
    log = play_rows(made, rows).log
    flow = {}
    for event in (FIRST_TOKEN, FINISHED):
        found = log[log[:, 2] == event]
        flow[event] = np.empty(number)
        flow[event][found[:, 3].astype(int)] = found[:, 0]

    decode = [0.0, *np.interp(np.arange(1, MOST + 1), list(TPOT_S), list(TPOT_S.values()))]
    first, end = one_step_at_a_time(
        arrivals, prompts, outputs, lambda n, chunk: decode[n] + LINEAR_S * chunk
    )
    full_step_s = decode[20] + LINEAR_S * STEP_TOKENS
    for exact, flowing in ((first, flow[FIRST_TOKEN]), (end, flow[FINISHED])):
        # Arrivals wait half a step on average for the next one; nothing adds up over time.
        error = (flowing - exact) / full_step_s
        assert np.abs(error).max() < 2.5
        assert -0.6 < error.mean() < 0.0
    pace = (flow[FINISHED] - flow[FIRST_TOKEN]).sum() / (end - first).sum()
    assert pace == pytest.approx(1.0, abs=0.003)
