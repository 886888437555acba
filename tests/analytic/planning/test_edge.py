import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgegym.analytic import Serving, edge_advantage

# The published comparison (80 ms to the first token won, a short classification tied, a long answer
# lost) leaves out its parameters. These are reconstructed to be consistent with it: a user 10 ms
# from the edge, which is 80 ms from the origin over an open connection; the same queue and prefill
# at both; 20 ms per token on the large GPUs of the origin and twice that on the edge's.
EDGE = Serving(first_token_s=0.3, tpot_s=0.040)
ORIGIN = Serving(first_token_s=0.3, tpot_s=0.020)
ROUTE = {
    "edge": EDGE,
    "origin": ORIGIN,
    "edge_rtt_s": 0.010,
    "origin_rtt_s": 0.090,
    "backbone_rtt_s": 0.080,
}


def test_the_first_token_is_won_by_80_ms():
    found = edge_advantage(**ROUTE, output_tokens=5)
    assert found.over_gateway is not None
    assert found.edge.ttft_s == pytest.approx(0.310)
    assert found.gateway.ttft_s == found.origin.ttft_s == pytest.approx(0.390)
    assert found.over_gateway.ttft_saving_s == pytest.approx(0.080)
    assert found.over_gateway.ttft_saving_share == pytest.approx(80 / 390)


def test_a_short_answer_ties_and_a_long_one_loses():
    # A label of five tokens: 80 ms won, 4 x 20 ms lost.
    short = edge_advantage(**ROUTE, output_tokens=5).over_gateway
    assert short.total_saving_s == pytest.approx(0.0, abs=1e-12)
    assert short.break_even_tokens == pytest.approx(5.0)
    # Four hundred tokens: the decode of the edge makes it nearly twice as long.
    long = edge_advantage(**ROUTE, output_tokens=400)
    assert long.over_gateway.ttft_saving_s == pytest.approx(0.080)
    assert long.over_gateway.total_saving_s == pytest.approx(0.080 - 399 * 0.020)
    assert long.edge.total_s > 1.9 * long.gateway.total_s


def test_handshakes_are_paid_on_new_connections_alone():
    # Cold connections straight to the origin take three round trips of 90 ms instead of one.
    cold = edge_advantage(**ROUTE, output_tokens=5, new_connection_share=1.0)
    assert cold.edge.network_s == pytest.approx(0.030)
    assert cold.gateway.network_s == pytest.approx(0.110)
    assert cold.origin.network_s == pytest.approx(0.270)
    assert cold.over_origin.ttft_saving_s == pytest.approx(0.240)
    # Two thirds of it needs no GPU at the edge.
    assert cold.over_gateway.ttft_saving_s == pytest.approx(0.080)
    half = edge_advantage(
        **ROUTE, output_tokens=5, new_connection_share=0.5, handshake_round_trips=3
    )
    assert half.origin.network_s == pytest.approx(2.5 * 0.090)


def test_a_busy_edge_can_lose_the_first_token_too():
    busy = edge_advantage(
        **(ROUTE | {"edge": Serving(first_token_s=0.5, tpot_s=0.04)}), output_tokens=1
    )
    assert busy.over_gateway.ttft_saving_s == pytest.approx(-0.120)
    # Slower to start and slower to decode: no length ties.
    assert busy.over_gateway.break_even_tokens == math.inf
    fast = replace(EDGE, first_token_s=0.5, tpot_s=0.010)
    late = edge_advantage(**(ROUTE | {"edge": fast}), output_tokens=20)
    assert late.over_gateway.break_even_tokens == pytest.approx(13.0)
    assert late.over_gateway.total_saving_s > 0


def test_no_backbone_no_gateway():
    found = edge_advantage(**(ROUTE | {"backbone_rtt_s": None}), output_tokens=5)
    assert found.gateway is None
    assert found.over_gateway is None
    nothing = Serving(first_token_s=0.0, tpot_s=0.0)
    still = edge_advantage(
        edge=nothing, origin=nothing, output_tokens=1, edge_rtt_s=0.0, origin_rtt_s=0.0
    )
    assert still.over_origin.ttft_saving_share == still.over_origin.total_saving_share == 0.0
    assert still.over_origin.break_even_tokens == 1.0


@given(
    times=st.tuples(*[st.floats(0.0, 2.0)] * 4),
    trips=st.tuples(*[st.floats(0.0, 0.5)] * 3),
    share=st.floats(0.0, 1.0),
)
def test_totals_tie_at_the_break_even_length(times, trips, share):
    def at(tokens):
        return edge_advantage(
            edge=Serving(first_token_s=times[0], tpot_s=times[1]),
            origin=Serving(first_token_s=times[2], tpot_s=times[3]),
            output_tokens=tokens,
            edge_rtt_s=trips[0],
            origin_rtt_s=trips[1],
            backbone_rtt_s=trips[2],
            new_connection_share=share,
        )

    for which in ("over_origin", "over_gateway"):
        tie = getattr(at(1), which).break_even_tokens
        if tie < 1e6:
            assert getattr(at(tie), which).total_saving_s == pytest.approx(0.0, abs=1e-6)
        elif tie == math.inf:
            signs = {np.sign(getattr(at(n), which).total_saving_s) for n in (1, 10, 1e4)}
            assert len(signs) == 1


@pytest.mark.parametrize("bad", [-1.0, math.nan, math.inf, "1", True, None])
def test_wrong_arguments_are_refused_by_name(bad):
    for field in ("output_tokens", "edge_rtt_s", "origin_rtt_s", "new_connection_share", "edge"):
        with pytest.raises(ValueError, match=rf"^{field} is .*must be"):
            edge_advantage(**({"output_tokens": 5.0} | ROUTE | {field: bad}))
    with pytest.raises(ValueError, match=r"^tpot_s is .*must be"):
        Serving(first_token_s=0.1, tpot_s=bad)
