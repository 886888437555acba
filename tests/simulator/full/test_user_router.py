"""A user's own rule, compiled and called by its address."""

import ctypes
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from edgegym.jit import cache_folder
from edgegym.simulator import Fleet
from edgegym.simulator.columns import ARRIVALS
from edgegym.simulator.full.routing_columns import (
    DISTANCE_SQUARED_KM2,
    DRAW,
    FAMILY,
    FETCH_S,
    HIT_TOKENS,
    INPUT_TOKENS,
    MARGIN_S,
    NODE,
    NUM_FEATURES,
    PREFILL_S,
    PROFILE,
    RADIO_S,
    REQUEST_S,
    REQUESTS,
    SLOTS,
    TOKENS_IN_USE,
    TYPE,
    WAIT_S,
)
from edgegym.simulator.full.user_router import RULE_FAILED, RuleError, UserRouter
from edgegym.world import preset
from tests.simulator.full.stations import CODE, Stations
from tests.simulator.full.test_routers import drawn

twin = pytest.mark.twin


def least_weighted(candidates, parameters):
    """Take the least of a weighted sum of prefill and load."""
    best, least = -1, np.inf
    for row in range(candidates.shape[0]):
        load = candidates[row, REQUESTS] / candidates[row, SLOTS]
        cost = candidates[row, PREFILL_S] + parameters[0] * load
        if cost < least:
            best, least = row, cost
    return best


def none_of_them(candidates, parameters):
    """Take no candidate."""
    return candidates.shape[0] + len(parameters)


@twin
def test_a_users_rule_decides():
    # prefill 1, 0.6, 0.2, 1, 0.2; load 0.75, 0.67, 1.5, 0, 0.5
    for weight, expected in ((0.0, 2), (0.5, 4), (2.0, 3)):
        stations = Stations(user=UserRouter(least_weighted, [weight]))
        decision = stations.route()
        assert decision.node == expected
        assert decision.runner_up == 1
    stations = Stations(user=UserRouter(least_weighted, [2.0], candidates_per_profile=1))
    assert stations.route().node == 1  # of 0, 1, 2: 2.5, 1.93, 3.2


@twin
def test_a_rule_may_take_none():
    assert Stations(user=UserRouter(none_of_them)).route().node == -1
    stations = Stations(user=UserRouter(none_of_them), origin={"rtt_s": 9.0})
    assert stations.route().node == 5


def keep(candidates, parameters):
    """Write the table where the test finds it, and take the first."""
    return 0


@twin
def test_what_a_rule_sees():
    stations = Stations(
        user=UserRouter(keep),
        routing={"kind": "load_aware", "margin": {"moving_s": 0.25}},
    )
    stations.routing.receiving[2] = True
    assert stations.route(index=3).node == 0
    row = stations.routing.state.candidates[2]
    expected = {
        NODE: 2, PROFILE: 2, DISTANCE_SQUARED_KM2: 4.0, RADIO_S: 0.4, PREFILL_S: 0.2,
        WAIT_S: 1.0, FETCH_S: 0.0, MARGIN_S: 0.25, REQUESTS: 3, SLOTS: 2, REQUEST_S: 0.5,
        HIT_TOKENS: 800, INPUT_TOKENS: 1000, TOKENS_IN_USE: 900, TYPE: 0, FAMILY: 0,
        DRAW: drawn(11, 3, 0),
    }  # fmt: skip
    assert sorted(expected) == list(range(NUM_FEATURES))
    for column, value in expected.items():
        assert row[column] == pytest.approx(value), column
    stations.route(CODE)
    assert stations.routing.state.candidates[2, [TYPE, FAMILY, HIT_TOKENS]].tolist() == [1, 1, 0]


@twin
def test_a_c_function_will_do():
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int64,
        ctypes.POINTER(ctypes.c_double),
        ctypes.c_int64,
        ctypes.POINTER(ctypes.c_double),
        ctypes.c_int64,
    )

    def last(candidates, count, parameters, num_parameters):
        assert candidates[NUM_FEATURES * (count - 1) + NODE] == 4
        return int(parameters[num_parameters - 1])

    function = prototype(last)
    address = ctypes.cast(function, ctypes.c_void_p).value
    stations = Stations(user=UserRouter(address, [9.0, 3.0]))
    assert stations.route().node == 3


@twin
def test_a_rule_survives_pickling():
    router = UserRouter(least_weighted, [2.0], candidates_per_profile=1)
    assert router.address != 0
    again = pickle.loads(pickle.dumps(router))
    assert Stations(user=again).route().node == 1


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        (("least",), TypeError, "rule = 'least': must be a function or the address of one"),
        ((least_weighted, [np.nan]), ValueError, "must be finite"),
        ((least_weighted, ["a"]), ValueError, r"parameters = \['a'\]: must be a list of numbers"),
        ((least_weighted, None), ValueError, "parameters = None: must be finite"),
        ((0,), ValueError, "rule = 0: is no address"),
        ((least_weighted, [], 0), ValueError, "candidates_per_profile = 0: must be an integer"),
        ((least_weighted, [], True), ValueError, "candidates_per_profile = True"),
        ((least_weighted, [], 1.5), ValueError, "candidates_per_profile = 1.5"),
    ],
)
def test_what_is_no_rule(arguments, error, words):
    with pytest.raises(error, match=words):
        UserRouter(*arguments)


def divides(candidates, parameters):
    """Fail from some time on: divide by what a rejected request does not leave."""
    if candidates[0, REQUESTS] >= parameters[0]:
        raise ValueError("too many requests")
    return 0


def looks_up(candidates, parameters):
    """Fail at once, without a message of its own."""
    return 1 // int(parameters[0])


def crowded():
    return preset("toy").with_overrides({"demand.rate_per_node": 30.0})


@twin
def test_what_a_rule_raises_ends_the_advance():
    fleet = Fleet(crowded(), 1, router=UserRouter(divides, [4.0]))
    before = fleet.get_state()
    with pytest.raises(RuleError, match="rule = divides: raised ValueError: too many") as caught:
        fleet.advance(60.0)
    assert isinstance(caught.value.__cause__, ValueError)
    # It stops at the request itself, does not go on, and neither does a copy of it.
    arrivals = int(fleet.state.counters[0, ARRIVALS])
    assert 4 < arrivals < 60
    for stuck in (fleet, fleet.fork(), pickle.loads(pickle.dumps(fleet))):
        with pytest.raises(RuleError, match="rule = divides"):
            stuck.advance(1.0)
    assert fleet.state.counters[0, ARRIVALS] == arrivals
    fleet.set_state(before)
    assert fleet.advance(0.01).arrivals <= 4


@twin
def test_an_error_of_the_language_is_the_cause():
    fleet = Fleet(crowded(), 1, router=UserRouter(looks_up, [0.0]))
    with pytest.raises(RuleError, match="rule = looks_up: raised ZeroDivisionError"):
        fleet.advance(60.0)
    assert fleet.state.counters[0, ARRIVALS] == 1


@twin
def test_a_c_function_can_say_that_it_has_failed():
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p, ctypes.c_int64] * 2)
    function = prototype(lambda *_: RULE_FAILED)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    with pytest.raises(RuleError, match=f"rule = {address}: the function there returned -9223"):
        Fleet(crowded(), 1, router=UserRouter(address)).advance(60.0)


def opens_a_file(candidates, parameters):
    """Do what no compiled rule can."""
    with Path(candidates).open() as file:
        return file.read()


def returns_words(candidates, parameters):
    """Return no number."""
    return "the first"


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
@pytest.mark.parametrize("rule", [opens_a_file, returns_words])
def test_what_cannot_be_compiled(rule):
    with pytest.raises(TypeError, match=f"rule = {rule.__name__}: must be a function rule"):
        Stations(user=UserRouter(rule))


_SCRIPT = """
import sys
from pathlib import Path
from edgegym import preset
from edgegym.simulator import Fleet, UserRouter

def rule(candidates, parameters):
    return {row}

world = preset("toy").with_overrides({{"demand.rate_per_node": 1.0}})
print(Fleet(world, 1, router=UserRouter(rule)).advance(20.0).radio_sum_s)
"""


@pytest.mark.slow
def test_another_rule_in_another_process_compiles_no_kernel_again():
    def run(row):
        script = _SCRIPT.format(row=row)
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        return float(done.stdout)

    first = run("0")
    before = sorted(path.name for path in cache_folder().rglob("*.nb*"))
    second = run("candidates.shape[0] - 1")
    assert sorted(path.name for path in cache_folder().rglob("*.nb*")) == before
    assert before
    assert first != second
