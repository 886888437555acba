"""Serving engines against queueing theory, driven by Poisson arrivals."""

import math

import numpy as np
import pytest

from edgegym.simulator.full.engine import FINISHED, FIRST_TOKEN
from edgegym.simulator.full.engine_data import make_engine_params
from edgegym.world.hardware import Hardware
from tests.simulator.full.engines import ADMIT, STOP, play_rows
from tests.simulator.queues import check_mean, md1_wait_cdf

MANY = 400_000
WARM = 2_000


def engine(tpot_s, **settings):
    """Return engines that take `tpot_s` a token: a number, or by the sequences up to `most`."""
    table = tpot_s if isinstance(tpot_s, dict) else {1: tpot_s}
    hardware = Hardware.model_validate(
        {
            "memory_bytes": 100,
            "kv_bytes_per_token": 1,
            "prefill": {"linear_s": 0.001},
            "decode": {"kind": "tpot", "tpot_s": table},
        }
    )
    return make_engine_params([hardware], most=max(table), **settings)


def simulate(params, rate, prefill_s, decode_tokens, seed, number=MANY):
    """Return arrivals, first tokens and ends of Poisson requests, seconds each."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((number + 1, 7))
    arrivals = np.cumsum(rng.exponential(1.0 / rate, number))
    rows[:-1, 0], rows[-1, 0] = arrivals, 1e12
    rows[:-1, 1], rows[-1, 1] = ADMIT, STOP
    rows[:-1, 3] = np.arange(number)
    rows[:-1, 4] = prefill_s / 0.001
    rows[:-1, 5] = prefill_s
    rows[:-1, 6] = decode_tokens
    log = play_rows(params, rows).log
    times = np.empty((2, number))
    for event in (FIRST_TOKEN, FINISHED):
        found = log[log[:, 2] == event]
        times[event, found[:, 3].astype(int)] = found[:, 0]
    return arrivals, times[FIRST_TOKEN], times[FINISHED]


@pytest.mark.parametrize("chunked", [False, True])
def test_prompts_without_decoding_wait_as_in_md1(chunked):
    rate, prefill_s = 1.4, 0.5
    made = engine(0.01, chunked=chunked)
    arrivals, first, _ = simulate(made, rate, prefill_s, 0, seed=1)
    wait = (first - arrivals - prefill_s)[WARM:]
    load = rate * prefill_s
    check_mean(wait, load * prefill_s / (2.0 * (1.0 - load)), 0.01)
    for at in (0.0, 0.2, 0.5, 1.0, 2.0):
        check_mean(wait > at + 1e-7, 1.0 - md1_wait_cdf(rate, prefill_s, at), 0.06)


def test_prompts_of_two_lengths_wait_as_pollaczek_and_khinchine_say():
    rate = 1.0
    prefill_s = np.where(np.random.default_rng(7).random(MANY) < 0.8, 0.25, 2.0)
    arrivals, first, _ = simulate(engine(0.01), rate, prefill_s, 0, seed=2)
    mean, square = 0.8 * 0.25 + 0.2 * 2.0, 0.8 * 0.25**2 + 0.2 * 4.0
    expected = rate * square / (2.0 * (1.0 - rate * mean))
    check_mean((first - arrivals - prefill_s)[WARM:], expected, 0.02)


def test_decoding_does_not_hold_up_prompts_served_whole():
    rate, prefill_s = 1.2, 0.5
    made = engine(0.01)
    none, many = (simulate(made, rate, prefill_s, tokens, seed=3)[1] for tokens in (0, 300))
    np.testing.assert_array_equal(none, many)


def lengths(law, mean, seed):
    if law == "fixed":
        return np.full(MANY, mean)
    return np.random.default_rng(seed).geometric(1.0 / mean, MANY).astype(np.float64)


@pytest.mark.parametrize("law", ["fixed", "geometric"])
def test_sequences_that_share_the_gpu_evenly_are_processor_sharing(law):
    # A token takes 0.02 s times the sequences: M/G/1-PS, insensitive to the law of lengths.
    mean_tokens, token_s, load = 25.0, 0.02, 0.7
    rate = load / (mean_tokens * token_s)
    made = engine({n: token_s * n for n in range(1, 200)})
    tokens = lengths(law, mean_tokens, seed=11)
    arrivals, _, end = simulate(made, rate, 0.0, tokens, seed=4)
    check_mean((end - arrivals)[WARM:], mean_tokens * token_s / (1.0 - load), 0.02)
    # What arrivals find is geometric: (1 - load) load^k.
    found = (np.arange(MANY) - np.searchsorted(np.sort(end), arrivals))[WARM:]
    for k in range(8):
        check_mean(found == k, (1.0 - load) * load**k, 0.05)
    # A long sequence is slowed down as much as a short one.
    if law == "geometric":
        slowdown = (end - arrivals) / (tokens * token_s)
        for chosen in (tokens < 10, tokens > 40):
            check_mean(slowdown[WARM:][chosen[WARM:]], 1.0 / (1.0 - load), 0.03)


@pytest.mark.parametrize("law", ["fixed", "geometric"])
def test_sequences_that_do_not_slow_each_other_are_poisson_in_number(law):
    mean_tokens, token_s, rate = 25.0, 0.02, 6.0
    tokens = lengths(law, mean_tokens, seed=12)
    arrivals, _, end = simulate(engine(token_s), rate, 0.0, tokens, seed=5)
    np.testing.assert_allclose(end - arrivals, tokens * token_s, atol=1e-7)
    found = (np.arange(MANY) - np.searchsorted(np.sort(end), arrivals))[WARM:]
    mean = rate * mean_tokens * token_s
    for k in range(9):
        check_mean(found == k, mean**k / math.factorial(k) * math.exp(-mean), 0.05)


def test_prompts_interrupt_decoding_for_whole_busy_periods():
    # After its first token a request waits for the prompts behind it and all that come meanwhile;
    # then it decodes, and each second of that is stretched by the server's idle share.
    rate, prefill_s, tokens, token_s = 1.2, 0.5, 40.0, 0.02
    load = rate * prefill_s
    arrivals, first, end = simulate(engine(token_s), rate, prefill_s, tokens, seed=6)
    behind = load + load**2 / (2.0 * (1.0 - load))
    check_mean((end - first)[WARM:], (behind * prefill_s + tokens * token_s) / (1.0 - load), 0.01)
    assert (first > arrivals).all()


def test_chunked_engine_is_busy_as_long_as_its_steps_take():
    # One sequence decodes for ever: each prompt token costs 0.001 s and 0.02 / 511 s of its steps.
    rate, prefill_s = 1.0, 0.5
    made = engine(0.02, chunked=True)
    number = 100_000
    tokens = np.zeros(number)
    tokens[0] = 1e15
    prompts = np.full(number, prefill_s)
    prompts[0] = 0.0
    arrivals, first, _ = simulate(made, rate, prompts, tokens, seed=8, number=number)
    stretched_s = 500 * (0.001 + 0.02 / 511)
    load = rate * stretched_s
    wait = (first - arrivals - stretched_s)[WARM:]
    check_mean(wait, load * stretched_s / (2.0 * (1.0 - load)), 0.02)
