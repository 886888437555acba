"""Fleets of one node with engines, and with the law of tokens, against queueing theory."""

import numpy as np
import pytest

from edgegym.simulator import Fleet
from edgegym.simulator.histogram import bin_edges_s
from tests.simulator.fleets import scenario
from tests.simulator.queues import MDc, md1_wait_cdf
from tests.simulator.test_queue_theory import PREFILL_S, single_node

SLOTS = 400


def node(service, rate, tpot_s, output_tokens, slots=SLOTS, linear_s=0.001):
    """Return one node at no distance whose prompts of 400 tokens take 0.4 s."""
    plain = single_node(slots, rate / slots, {"kind": "deterministic"})
    only = {"name": "only", "input_tokens": 400, "family": "only", "share": 1.0}
    return plain.with_overrides(
        {
            "hardware.decode": {"kind": "tpot", "tpot_s": tpot_s},
            "hardware.prefill": {"linear_s": linear_s},
            "service": service,
            "request_types": [only | {"output_tokens": output_tokens}],
        }
    )


def after_warmup(world, seed, number):
    """Return the fleet's window with so many requests."""
    rate = world.request_intensity * world.region.area_km2
    fleet = Fleet(world, seed=seed)
    fleet.advance(2000.0 / rate)
    return fleet.advance(number / rate)


def check_engine_is_md1(service, number, mean_tolerance, cdf_tolerance):
    load = 0.7
    world = node(service, load / PREFILL_S, {1: 0.01}, output_tokens=1)
    window = after_warmup(world, 1, number)
    expected = load * PREFILL_S / (2.0 * (1.0 - load))
    assert window.wait_sum_s / window.first_tokens == pytest.approx(expected, rel=mean_tolerance)
    assert window.prefill_sum_s / window.first_tokens == pytest.approx(PREFILL_S, abs=1e-8)
    # The share of time for which a prompt is at the server.
    assert window.prefill_utilization[0] == pytest.approx(load, rel=mean_tolerance)
    edges = bin_edges_s()[1:-1]
    measured = np.cumsum(window.ttft_histogram)[:-1] / window.first_tokens
    for edge, share in zip(edges, measured, strict=True):
        if 0.001 < edge - PREFILL_S < 2.0:
            wait = md1_wait_cdf(load / PREFILL_S, PREFILL_S, edge - PREFILL_S)
            assert share == pytest.approx(wait, abs=cdf_tolerance)


def check_sharing(service, number, tolerance):
    # No prefill, and a token takes 0.02 s times the sequences: M/G/1-PS.
    tokens, token_s, load = 25, 0.02, 0.7
    world = node(
        service,
        load / (tokens * token_s),
        {1: token_s, SLOTS: SLOTS * token_s},
        output_tokens=tokens + 1,
        linear_s=0.0,
    )
    window = after_warmup(world, 2, number)
    number_in_system = window.utilization[0] * SLOTS
    assert number_in_system == pytest.approx(load / (1.0 - load), rel=tolerance)
    assert window.ttft_sum_s / window.first_tokens == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("schedule", ["fifo", "chunked"])
def test_prompts_wait_as_in_md1(schedule):
    service = {"kind": "engine", "schedule": schedule}
    check_engine_is_md1(service, 200_000, mean_tolerance=0.05, cdf_tolerance=0.012)


@pytest.mark.parametrize("output", ["fixed", "geometric"])
def test_sequences_that_share_the_gpu_evenly_are_processor_sharing(output):
    check_sharing({"kind": "engine", "output": output}, 200_000, tolerance=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", ["fifo", "chunked"])
def test_prompts_wait_as_in_md1_to_a_percent(schedule):
    service = {"kind": "engine", "schedule": schedule}
    check_engine_is_md1(service, 10_000_000, mean_tolerance=0.01, cdf_tolerance=0.002)


@pytest.mark.slow
@pytest.mark.parametrize("output", ["fixed", "geometric"])
def test_sequences_share_the_gpu_to_a_percent(output):
    check_sharing({"kind": "engine", "output": output}, 10_000_000, tolerance=0.01)


def test_decoding_prompts_in_chunks_makes_both_slower():
    # Both schedules do the same work in all, and chunks trade TTFT for even decoding.
    waits = {}
    for schedule in ("fifo", "chunked"):
        service = {"kind": "engine", "schedule": schedule, "step_tokens": 512}
        window = after_warmup(node(service, 1.0, {1: 0.02}, 100), 3, 20_000)
        waits[schedule] = window.ttft_sum_s / window.first_tokens
        assert window.prefill_utilization[0] < 1.0
    assert waits["fifo"] < waits["chunked"]


@pytest.mark.parametrize("servers", [1, 3])
def test_law_of_tokens_with_one_pace_is_mdc(servers):
    load, service_s = 0.8, PREFILL_S + 30 * 0.02
    exact = MDc(servers, load, service_s)
    world = node({"kind": "tokens"}, exact.rate, {1: 0.02}, output_tokens=31, slots=servers)
    window = after_warmup(world, 4, 200_000)
    assert window.wait_sum_s / window.first_tokens == pytest.approx(exact.mean_wait_s, rel=0.06)
    assert window.utilization[0] == pytest.approx(load, rel=0.02)


def test_law_of_tokens_goes_by_the_sequences_that_a_request_finds():
    # Slots never run out: the number in system is the birth-death fixed point of one equation.
    rate, token_s, tokens = 2.0, 0.02, 10
    world = node(
        {"kind": "tokens"},
        rate,
        {1: token_s, SLOTS: SLOTS * token_s},
        output_tokens=tokens + 1,
        linear_s=0.0,
    )
    window = after_warmup(world, 5, 100_000)
    # L = rate · tokens · token_s · E[found + 1], and Poisson arrivals find L on average.
    share = rate * tokens * token_s
    assert window.utilization[0] * SLOTS == pytest.approx(share / (1.0 - share), rel=0.03)


@pytest.mark.parametrize("service", ["deterministic", "tokens", "engine"])
def test_more_hit_tokens_lower_ttft_by_exactly_the_prefill_saved(service):
    made = {"kind": "tpot", "tpot_s": {1: 0.01}}
    ttft_s = {}
    for profile in ("none", "small", "big"):
        world = scenario(
            **{
                "nodes": {"count": 1},
                "hardware.decode": made,
                "service": {"kind": service},
                "initial.mix": {profile: 1.0},
                "demand.rate_per_node": 0.01,
                "request_types.chat.share": 1.0 - 1e-6,
                "request_types.code.share": 1e-6,
            }
        )
        fleet, window = Fleet(world, seed=6), None
        while window is None or window.first_tokens == 0:
            window = fleet.advance(20.0)
        assert window.first_tokens == 1
        ttft_s[profile] = window.ttft_sum_s, window.hit_tokens_sum
    for profile in ("small", "big"):
        saved = ttft_s["none"][0] - ttft_s[profile][0]
        assert saved == pytest.approx(0.001 * ttft_s[profile][1], abs=1e-8)
    assert 0 < ttft_s["small"][1] < ttft_s["big"][1]
