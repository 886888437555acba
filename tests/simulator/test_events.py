"""The event order, computed by hand."""

import numpy as np
import pytest

from edgegym.simulator import Fleet
from tests.simulator.fleets import feed, place, scenario

pytestmark = pytest.mark.twin
CHAT, CODE = 0, 1
NONE, SMALL, BIG, OTHER = range(4)
CORNERS = [(0.0, 0.0), (10.0, 0.0), (0.0, 10.0), (10.0, 10.0), (5.0, 5.0)]


def one_node(**overrides):
    return Fleet(scenario(nodes={"count": 1}, **overrides))


def test_ttft_parts_add_up_and_are_those_computed_by_hand():
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [SMALL])
    feed(fleet, [(1.0, 5.0, 7.0, CHAT)])  # radio 0.1 · 4, prefill 0.6
    window = fleet.advance(10.0)
    assert window.arrivals == window.first_tokens == window.completed == 1
    assert window.radio_sum_s == pytest.approx(0.4, abs=1e-8)
    assert window.wait_sum_s == 0.0
    assert window.prefill_sum_s == pytest.approx(0.6, abs=1e-8)
    assert window.cold_prefill_sum_s == pytest.approx(1.0, abs=1e-8)
    assert window.saved_prefill_sum_s == pytest.approx(0.4, abs=1e-8)
    assert window.ttft_sum_s == pytest.approx(1.0, abs=1e-8)
    assert window.hit_tokens_sum == 400
    assert window.utilization[0] == pytest.approx(1.1 / (3 * 10.0), abs=1e-8)
    assert window.prefill_utilization[0] == pytest.approx(0.06, abs=1e-8)


def test_each_stage_happens_at_its_time():
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [SMALL])
    feed(fleet, [(1.0, 5.0, 7.0, CHAT)])
    state = fleet.state
    fleet.advance(1.25)
    assert (state.in_flight[0, 0], state.active[0, 0]) == (1, 0)
    fleet.advance(0.25)
    assert (state.in_flight[0, 0], state.active[0, 0]) == (0, 1)
    assert fleet.advance(0.375).first_tokens == 0
    assert fleet.advance(0.25).first_tokens == 1  # at 2.0
    assert fleet.advance(0.25).completed == 0
    assert fleet.advance(0.25).completed == 1  # at 2.5
    assert state.active[0, 0] == 0


def test_queue_is_first_in_first_out():
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [BIG])  # two slots, chat: prefill 0.2, occupancy 0.7
    feed(fleet, [(0.25 * k, 5.0, 5.0, CHAT) for k in range(4)])
    window = fleet.advance(10.0)
    # Starts at 0, 0.25, max(0.5, 0.7) and max(0.75, 0.95).
    assert window.wait_sum_s == pytest.approx(0.2 + 0.2, abs=1e-8)


def test_a_slot_that_ends_when_a_request_arrives_is_free_for_it():
    # The slot end is before the arrival at the node at the same time.
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [BIG])
    first_end = 0.0 + (1e-3 * 200 + 0.5)
    feed(
        fleet,
        [(0.0, 5.0, 5.0, CHAT), (0.0, 5.0, 5.0, CHAT), (first_end, 5.0, 5.0, CHAT)],
    )
    assert fleet.advance(10.0).wait_sum_s == 0.0


def test_a_request_at_the_end_of_a_window_belongs_to_it():
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [NONE])
    feed(fleet, [(1.0, 5.0, 5.0, CHAT)])
    assert fleet.advance(1.0).arrivals == 1
    assert fleet.advance(1.0).arrivals == 0


def test_decision_comes_at_the_first_token_or_at_the_deadline():
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [SMALL])
    # Target 1 s. In time: TTFT 0.6. Late: radio 0.9 + prefill 0.6.
    feed(fleet, [(1.0, 5.0, 5.0, CHAT), (1.0, 5.0, 8.0, CHAT)])
    window = fleet.advance(1.5)
    assert (window.decided, window.hits) == (0, 0)
    window = fleet.advance(0.25)
    assert (window.decided, window.hits, window.first_tokens) == (1, 1, 1)
    window = fleet.advance(0.5)  # the late one has passed its deadline, without a first token
    assert (window.decided, window.hits, window.first_tokens) == (1, 0, 0)
    window = fleet.advance(1.0)
    assert (window.decided, window.hits, window.first_tokens) == (0, 0, 1)


def test_a_request_still_in_the_queue_is_decided_at_its_deadline():
    fleet = one_node()
    place(fleet, [(5.0, 5.0)], [BIG])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)] * 6)  # slots until 0.7, 1.4 (TTFT 0.9), 2.1
    window = fleet.advance(1.25)
    assert (window.decided, window.hits) == (6, 4)
    assert window.coverage == pytest.approx(4 / 6)
    assert fleet.advance(5.0).decided == 0


def test_exponential_service_frees_the_slot_before_the_first_token():
    fleet = one_node(service={"kind": "exponential"})
    place(fleet, [(5.0, 5.0)], [NONE])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)])
    fleet.state.request_mark[0, 0] = 0.1  # slot until 0.15, first token at 1.0
    assert fleet.advance(0.5).completed == 1
    window = fleet.advance(0.25)
    assert (window.completed, window.first_tokens) == (0, 0)
    window = fleet.advance(0.5)
    assert (window.first_tokens, window.hits) == (1, 1)
    assert window.ttft_sum_s == pytest.approx(1.0, abs=1e-8)


def test_load_aware_routing_of_five_nodes_by_hand():
    fleet = Fleet(scenario())
    place(fleet, CORNERS, [BIG, NONE, NONE, NONE, NONE])
    # At (4, 4) the radio costs 0.2 to the centre (node 4), 3.2 to node 0. At (2, 2): 1.8 to the
    # centre and 0.8 to node 0, and prefill 1.0 against 0.2.
    feed(fleet, [(0.0, 4.0, 4.0, CHAT), (0.0, 2.0, 2.0, CHAT), (0.0, 2.0, 2.0, CODE)])
    fleet.advance(0.0)
    assert fleet.state.in_flight[0].tolist() == [2, 0, 0, 0, 1]
    assert fleet.state.window_nearest_demand[0].tolist() == [[1, 1], [0, 0], [0, 0], [0, 0], [1, 0]]


def test_load_aware_routing_avoids_a_backlog():
    fleet = Fleet(scenario(nodes={"count": 2}))
    place(fleet, [(4.0, 5.0), (6.0, 5.0)], [BIG, NONE])
    # Node 0: 2 slots, mean occupancy (0.7 + 1.1) / 2. From (5, 5) both are at radio 0.1; chat costs
    # 0.2 there and 1.0 at node 1, so node 0 is chosen until its wait exceeds 0.8: with n = 3 it is
    # (3 − 2 + 1) · 0.9 / 2 = 0.9.
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)] * 4)
    fleet.advance(0.0)
    assert fleet.state.in_flight[0].tolist() == [3, 1]


@pytest.mark.parametrize(("predict", "expected"), [(False, [6, 0]), (True, [3, 3])])
def test_stale_telemetry_herds_unless_the_router_predicts(predict, expected):
    fleet = Fleet(
        scenario(nodes={"count": 2}, telemetry={"period_s": 10.0, "predict_on_route": predict})
    )
    place(fleet, [(4.0, 5.0), (6.0, 5.0)], [BIG, NONE])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)] * 6)
    fleet.advance(0.0)
    assert fleet.state.in_flight[0].tolist() == expected


def test_telemetry_reports_on_its_grid_what_the_node_has():
    fleet = Fleet(scenario(nodes={"count": 1}, telemetry={"period_s": 0.5}))
    place(fleet, [(5.0, 5.0)], [BIG])
    feed(fleet, [(0.25, 5.0, 5.0, CODE)] * 5 + [(0.375, 5.0, 5.0 + 2.0, CODE)])
    fleet.advance(0.4375)
    assert fleet.state.advertised_wait_s[0, 0] == 0.0
    fleet.advance(0.0625)  # 2 active, 3 queued, 1 in flight: it can't know of that one
    assert fleet.state.advertised_wait_s[0, 0] == pytest.approx((5 - 2 + 1) * 0.9 / 2)


def test_a_report_does_not_see_a_request_that_arrives_at_the_same_time():
    radio = {"xi": 0.1, "alpha": 2.0, "base_s": 0.5}
    fleet = one_node(telemetry={"period_s": 0.5}, radio=radio)
    place(fleet, [(5.0, 5.0)], [BIG])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)] * 5)
    fleet.advance(0.5)
    assert fleet.state.active[0, 0] + fleet.state.queued[0, 0] == 5
    assert fleet.state.advertised_wait_s[0, 0] == 0.0


def test_prediction_keeps_what_a_report_cannot_have_seen():
    fleet = Fleet(
        scenario(nodes={"count": 1}, telemetry={"period_s": 0.5, "predict_on_route": True})
    )
    place(fleet, [(5.0, 5.0)], [BIG])
    feed(fleet, [(0.25, 5.0, 5.0, CODE)] * 5 + [(0.375, 5.0, 7.0, CODE), (0.625, 5.0, 5.0, CODE)])
    fleet.advance(0.5)
    assert fleet.state.advertised_wait_s[0, 0] == pytest.approx((6 - 2 + 1) * 0.9 / 2)
    fleet.advance(0.125)
    assert fleet.state.advertised_wait_s[0, 0] == pytest.approx((7 - 2 + 1) * 0.9 / 2)


def test_measured_wait_is_an_average_that_fades():
    routing = {"kind": "load_aware", "advertised_wait": "measured"}
    fleet = Fleet(
        scenario(nodes={"count": 1}, routing=routing, telemetry={"period_s": 1.0, "ewma_s": 2.0})
    )
    place(fleet, [(5.0, 5.0)], [BIG])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)] * 3)  # waits 0, 0 and, at 0.7, 0.7
    fleet.advance(1.0)
    faded = np.exp(-0.7 / 2.0)
    mean = 0.7 / (2.0 * faded + 1.0)
    assert fleet.state.advertised_wait_s[0, 0] == pytest.approx(mean * np.exp(-0.3 / 2.0))


def test_nearest_and_prefix_aware_routing_ignore_queues():
    for kind, expected in (("nearest", [0, 6]), ("prefix_aware", [6, 0])):
        fleet = Fleet(scenario(nodes={"count": 2}, routing={"kind": kind}))
        place(fleet, [(4.0, 5.0), (6.0, 5.0)], [BIG, NONE])
        feed(fleet, [(0.0, 5.5, 5.0, CHAT)] * 6)
        fleet.advance(0.0)
        assert fleet.state.in_flight[0].tolist() == expected


def test_ties_go_to_the_lower_index():
    fleet = Fleet(scenario(nodes={"count": 2}, routing={"kind": "nearest"}))
    place(fleet, [(6.0, 5.0), (4.0, 5.0)], [NONE, NONE])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)])
    fleet.advance(0.0)
    assert fleet.state.in_flight[0].tolist() == [1, 0]


def test_requests_without_any_node_up_are_rejected():
    fleet = Fleet(scenario(nodes={"count": 2}))
    fleet.state.up[0] = False
    place(fleet, [(4.0, 5.0), (6.0, 5.0)], [NONE, NONE])
    feed(fleet, [(0.0, 5.0, 5.0, CHAT)])
    window = fleet.advance(1.0)
    assert (window.arrivals, window.rejected, window.decided, window.hits) == (1, 1, 1, 0)
    assert window.coverage == 0.0


def test_more_hit_tokens_lower_ttft():
    sums = []
    for profile in (NONE, SMALL, BIG):
        fleet = one_node()
        place(fleet, [(5.0, 5.0)], [profile])
        feed(fleet, [(0.0, 5.0, 5.0, CHAT)])
        sums.append(fleet.advance(5.0).ttft_sum_s)
    assert sums == pytest.approx([1.0, 0.6, 0.2], abs=1e-8)
