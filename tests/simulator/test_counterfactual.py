"""Replays against independent simulations of both worlds."""

import math
from typing import Any

import numpy as np
import pytest

from edgegym.simulator import ArraySink, Fleet, replay_counterfactual
from edgegym.simulator.counterfactual import Counterfactual, replay_counterfactuals
from edgegym.simulator.records import NOBODY, ORIGIN, RecordTable
from edgegym.world import Scenario, preset

HORIZON_S = 12.0


def crowded(**overrides: Any) -> Scenario:
    """Return a small fleet with queues, so that a request makes a difference to others."""
    base = {"region": {"width_km": 3.0, "height_km": 3.0}, "nodes": {"count": 9}}
    return preset("paper").with_overrides(
        {**base, "demand.request_intensity": 4.0, "telemetry.period_s": 1.0, **overrides}
    )


def play(scenario: Scenario, seed: int, until_s: float, force: tuple[int, int] | None = None):
    """Return the records of a whole simulation from time 0."""
    sink = ArraySink()
    fleet = Fleet(scenario, seed, records=sink)
    if force is not None:
        fleet.force(*force)
    fleet.advance(until_s)
    return sink.table()


def differences(factual: RecordTable, forced: RecordTable) -> dict[int, tuple[float, float]]:
    """Return (TTFT, end-to-end) forced less factual of all requests that ended in both."""
    found: dict[int, tuple[float, float]] = {}
    ended = {int(number): row for row, number in enumerate(factual["request"])}
    for row, number in enumerate(forced["request"].tolist()):
        if number in ended:
            before = ended[number]
            pair = tuple(
                float(forced[name][row] - factual[name][before])
                for name in ("ttft_s", "end_to_end_s")
            )
            both_rejected = factual["outcome"][before] == forced["outcome"][row] == 2
            found[number] = (0.0, 0.0) if both_rejected else pair
    return found


def check(scenario: Scenario, seed: int, replay: Counterfactual, factual: RecordTable) -> None:
    force = (replay.request, replay.forced_node)
    forced = play(scenario, seed, replay.until_s, force)
    expected = differences(factual, forced)
    own = expected.pop(replay.request, None)
    if own is not None:
        found = (replay.own_ttft_difference_s, replay.own_end_to_end_difference_s)
        np.testing.assert_array_equal(found, own)
    changed = {number: pair for number, pair in expected.items() if pair != (0.0, 0.0)}
    assert sorted(changed) == replay.others.tolist()
    found = np.stack(
        [replay.others_ttft_difference_s, replay.others_end_to_end_difference_s], axis=1
    )
    np.testing.assert_array_equal(found, np.reshape([changed[k] for k in sorted(changed)], (-1, 2)))


ORIGIN_BLOCK = {
    "rtt_s": 0.08,
    "slots": 20,
    "new_connection_share": 0.5,
    "affinity": 0.7,
    "prefill_linear_s": 1e-4,
    "tpot_s": 0.02,
}
WORLDS = {
    "crowded": crowded(),
    "failing": preset("node-failures").with_overrides(
        {
            "nodes.count": 9,
            "region": {"width_km": 3.0, "height_km": 3.0},
            "demand": {"rate_per_node": 8.0},
            "failures": {"nodes": {"mean_up_s": 20.0, "mean_down_s": 5.0}},
            "origin": ORIGIN_BLOCK,
            "admission": {
                "ewma_s": 2.0,
                "node": {"close_above": 1.5, "reopen_below": 1.0},
                "redirect": True,
            },
        }
    ),
    "fetching": preset("scarce-backhaul").with_overrides(
        {
            "nodes.count": 9,
            "region": {"width_km": 3.0, "height_km": 3.0},
            "demand": {"rate_per_node": 2.0},
            "backhaul.access_bytes_per_s": 1e9,
            "telemetry.period_s": 1.0,
        }
    ),
    "radix": crowded(
        cache={"kind": "lru", "budget_bytes": 2 * 10**9}, **{"routing.kind": "lmetric"}
    ),
}


@pytest.mark.parametrize("name", WORLDS)
def test_replays_are_two_independent_simulations(name):
    scenario, seed = WORLDS[name], 5
    generator = np.random.default_rng(1)
    count = 200 if name == "crowded" else 40
    requests = np.sort(generator.choice(900, count, replace=False)).tolist()
    ends = [NOBODY, *range(9), *([ORIGIN] if scenario.origin else [])]
    nodes = generator.choice(ends, count).tolist()
    replays = replay_counterfactuals(scenario, seed, requests, nodes, HORIZON_S)
    assert [replay.request for replay in replays] == requests
    for replay in replays:
        check(scenario, seed, replay, play(scenario, seed, replay.until_s))
    assert sum(replay.num_affected > 0 for replay in replays) > count // 8


def test_one_replay_is_one_of_many():
    scenario = crowded()
    (one,) = replay_counterfactuals(scenario, 5, [700], [3], HORIZON_S)
    same = replay_counterfactual(scenario, 5, 700, 3, one.until_s)
    assert one.until_s == one.arrival_s + HORIZON_S
    assert same.own_ttft_difference_s == one.own_ttft_difference_s
    np.testing.assert_array_equal(same.others, one.others)
    assert same.unfinished == one.unfinished


def test_the_factual_choice_changes_nothing():
    scenario = crowded()
    records = play(scenario, 5, 60.0).by_request()
    row = 500
    request, node = int(records["request"][row]), int(records["node"][row])
    replay = replay_counterfactual(scenario, 5, request, node, 60.0)
    assert (replay.factual_node, replay.own_ttft_difference_s, replay.num_affected) == (node, 0, 0)
    assert replay.factual_ttft_s == records["ttft_s"][row]
    assert replay.arrival_s == records["arrival_s"][row]


def test_a_rejected_request_only_helps_the_others():
    scenario = crowded(**{"routing.kind": "nearest"})
    replay = replay_counterfactual(scenario, 5, 900, NOBODY, 120.0)
    assert math.isnan(replay.own_ttft_difference_s)
    assert (replay.others_ttft_difference_s <= 1e-9).all()
    assert replay.others_ttft_sum_s <= 0.0


def test_what_has_not_ended_is_counted():
    scenario = crowded()
    begin = replay_counterfactual(scenario, 5, 900, 0, 200.0).arrival_s
    at_once = replay_counterfactual(scenario, 5, 900, 0, math.nextafter(begin, math.inf))
    assert math.isnan(at_once.own_ttft_difference_s)
    assert at_once.num_affected == 0
    assert at_once.factual_node is None
    later = replay_counterfactual(scenario, 5, 900, 0, begin + 5.0)
    arrivals = play(scenario, 5, 200.0)["arrival_s"]
    for replay in (at_once, later):
        tables = (
            play(scenario, 5, replay.until_s),
            play(scenario, 5, replay.until_s, (900, 0)),
        )
        ended = np.intersect1d(*(table["request"] for table in tables))
        made = int((arrivals <= replay.until_s).sum())
        assert replay.unfinished == made - len(ended) > 10


@pytest.mark.parametrize(
    ("request_", "node", "message"),
    [
        (10**6, 0, "request = 1000000: is not made by 60 s"),
        (-1, 0, "request = -1: must be an integer"),
        (3, 9, r"node = 9: must be one of 0\.\.8"),
        (3, ORIGIN, "node = -2: the scenario has no origin"),
        (3, -3, "node = -3: must be an integer, at least -2"),
    ],
)
def test_what_is_not_there_is_refused(request_, node, message):
    with pytest.raises(ValueError, match=message):
        replay_counterfactual(crowded(), 5, request_, node, 60.0)


def test_many_replays_are_in_order():
    with pytest.raises(ValueError, match="ascending order"):
        replay_counterfactuals(crowded(), 5, [5, 3], [0, 0], 1.0)
    with pytest.raises(ValueError, match="horizon_s = 0"):
        replay_counterfactuals(crowded(), 5, [3], [0], 0.0)
    assert replay_counterfactuals(crowded(), 5, [], [], 1.0) == []


@pytest.mark.parametrize("until_s", ["60", None, math.nan, math.inf, 0.0, -1.0, True])
def test_a_time_that_is_none_is_refused(until_s):
    with pytest.raises(ValueError, match=r"until_s = .*: must be positive and finite"):
        replay_counterfactual(crowded(), 5, 3, 0, until_s)
    with pytest.raises(ValueError, match=r"horizon_s = .*: must be positive and finite"):
        replay_counterfactuals(crowded(), 5, [3], [0], until_s)


def test_a_request_that_never_comes_is_not_waited_for(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("arrival_s,type,input_tokens,output_tokens\n0,a,2048,8\n1,a,2048,8\n")
    kinds = [
        {
            "name": "a",
            "path": None,
            "input_tokens": 2048,
            "output_tokens": 8,
            "family": "a",
            "share": 1.0,
        }
    ]
    trace = {"kind": "trace", "path": str(path), "repeat": False}
    scenario = crowded(**{"request_types": kinds, "demand.modulations": [trace]})
    with pytest.raises(ValueError, match="request = 2: is not made by"):
        replay_counterfactuals(scenario, 5, [2], [0], 60.0)
    with pytest.raises(ValueError, match="request = 1000000000000: must be below"):
        replay_counterfactuals(crowded(), 5, [10**12], [0], 60.0)


@pytest.mark.parametrize(("scenario", "seed"), [(None, 5), (crowded(), -1), (crowded(), "a")])
def test_the_world_is_checked_first(scenario, seed):
    with pytest.raises((TypeError, ValueError), match=r"(scenario|seed) = .*: must be"):
        replay_counterfactual(scenario, seed, 3, 0, 60.0)
