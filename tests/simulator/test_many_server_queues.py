"""Several slots and services that are not exponential, against queueing theory and other code."""

import heapq
import math

import numpy as np
import pytest

from edgegym.simulator import Fleet
from edgegym.simulator.histogram import bin_edges_s
from tests.simulator.queues import MDc, erlang_c, md1_wait_cdf
from tests.simulator.test_queue_theory import DECODE_S, PREFILL_S, single_node


@pytest.mark.parametrize("load", [0.3, 0.6, 0.9])
def test_mdc_solution_agrees_with_what_is_published(load):
    alone = MDc(1, load)
    assert alone.mean_wait_s == pytest.approx(load / (2.0 * (1.0 - load)), rel=1e-9)
    for wait_s in (0.0, 0.4, 1.0, 2.7):
        assert alone.wait_cdf(wait_s) == pytest.approx(md1_wait_cdf(load, 1.0, wait_s), abs=1e-9)
    # Cosmetatos (1975): within two percent where waits matter.
    for servers in (2, 4, 9):
        mmc = erlang_c(servers, load * servers) / (servers * (1.0 - load))
        more = (1.0 - load) * (servers - 1) * (math.sqrt(4.0 + 5.0 * servers) - 2.0)
        approximation = 0.5 * mmc * (1.0 + more / (16.0 * load * servers))
        if approximation > 0.03:
            assert MDc(servers, load).mean_wait_s == pytest.approx(approximation, rel=0.02)


@pytest.mark.parametrize(("servers", "load"), [(2, 0.6), (4, 0.8), (9, 0.9)])
def test_node_of_several_slots_is_mdc(servers, load):
    exact = MDc(servers, load)
    fleet = Fleet(single_node(servers, load, {"kind": "deterministic"}), seed=servers)
    fleet.advance(1000.0)
    window = fleet.advance(600_000 / exact.rate)
    assert window.wait_sum_s / window.first_tokens == pytest.approx(exact.mean_wait_s, rel=0.03)
    edges = bin_edges_s()[1:-1]
    measured = np.cumsum(window.ttft_histogram)[:-1] / window.first_tokens
    for edge, share in zip(edges, measured, strict=True):
        if 0.01 < edge - PREFILL_S < 4.0:
            assert share == pytest.approx(exact.wait_cdf(edge - PREFILL_S), abs=0.004)


def test_node_of_lognormal_services_waits_as_another_simulation_of_it():
    servers, load, sigma, number = 4, 0.8, 0.8, 300_000
    fleet = Fleet(single_node(servers, load, {"kind": "lognormal", "sigma": sigma}), seed=5)
    fleet.advance(1000.0)
    window = fleet.advance(number / (load * servers))
    measured = window.wait_sum_s / window.first_tokens

    rng = np.random.default_rng(5)
    arrivals = np.cumsum(rng.exponential(1.0 / (load * servers), number))
    marks = np.exp(sigma * rng.standard_normal(number) - sigma**2 / 2.0)
    free, waits = [0.0] * servers, np.empty(number)
    for k, (arrival, mark) in enumerate(zip(arrivals.tolist(), marks.tolist(), strict=True)):
        start = max(free[0], arrival)
        waits[k] = start - arrival
        heapq.heapreplace(free, start + PREFILL_S + DECODE_S * mark)
    # Each mean has a standard error of 2 %, by batch means.
    assert measured == pytest.approx(waits.mean(), rel=0.09)
    scv = DECODE_S**2 * math.expm1(sigma**2)
    mmc = erlang_c(servers, load * servers) / (servers * (1.0 - load))
    assert measured == pytest.approx(0.5 * (1.0 + scv) * mmc, rel=0.09)
