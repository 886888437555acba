"""Serving engines: schedules computed by hand, and random ones against a plain model."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgegym.simulator.full.engine import FINISHED, FIRST_TOKEN
from edgegym.simulator.full.engine_data import (
    BEGIN_S,
    DECODING,
    FIRST_PROMPT,
    LEFT_S,
    PROMPTS,
    RESTORING,
    ROOT,
    make_engine_params,
    with_more_requests,
)
from edgegym.world.hardware import Hardware
from tests.simulator.full.engines import (
    ACCRUE,
    ADMIT,
    DROP,
    DROPPED,
    RESTORE,
    STOP,
    PlainEngine,
    play,
)

pytestmark = pytest.mark.twin
MOST = 24
TICK_S = 2.0**-30


def hardware(decode, prefill=None):
    return Hardware.model_validate(
        {
            "memory_bytes": 100,
            "kv_bytes_per_token": 1,
            "prefill": prefill or {"linear_s": 0.001},
            "decode": decode,
        }
    )


# A token takes 0.1 s alone, 0.2 s for two sequences, 0.3 s for three: the GPU is shared evenly.
EVEN = hardware({"kind": "tpot", "tpot_s": {n: 0.1 * n for n in range(1, MOST + 1)}})
TABLE = hardware(
    {
        "kind": "steps",
        "step_s": {
            0: {0: 0.01, 10: 0.02, 40: 0.08},
            2: {0: 0.05, 20: 0.07, 40: 0.09},
            8: {0: 0.06, 40: 0.2},
        },
    },
    {"linear_s": 0.002, "quadratic_s": 1e-5, "floor_s": 0.01, "attention": "residual"},
)


def params(machine=EVEN, **settings):
    return make_engine_params([machine], most=MOST, **settings)


def events(played):
    """Return [(time, event, record)], times rounded to what ticks resolve."""
    return [(round(t, 8), int(what), int(record)) for t, _, what, record in played.log]


def test_prompts_are_served_one_by_one_while_decoding_pauses():
    played = play(
        params(),
        [
            (1.0, ADMIT, 0, 0, 1000, 1.0, 10),
            (1.5, ADMIT, 0, 1, 500, 0.5, 5),  # waits until 2.0
            (2.75, ADMIT, 0, 2, 250, 0.25, 0),  # 0.25 s after both began to decode
            (99.0, STOP, 0),
            (99.0, ACCRUE, 0),
        ],
    )
    # From 2.5 both decode, 0.2 s a token: 1.25 tokens by 2.75, then a pause until 3.0, where the
    # third is finished at once. The second has 3.75 tokens to go, the first then 5 more alone.
    assert events(played) == [
        (2.0, FIRST_TOKEN, 0),
        (2.5, FIRST_TOKEN, 1),
        (3.0, FIRST_TOKEN, 2),
        (3.0, FINISHED, 2),
        (3.75, FINISHED, 1),
        (4.25, FINISHED, 0),
    ]
    assert played.prefill_ticks[0] * TICK_S == pytest.approx(1.75, abs=1e-8)
    assert played.engine.request[:, BEGIN_S].tolist() == [1.0, 2.0, 2.75]


def test_chunks_share_each_step_with_decoding():
    # Steps of 10 tokens; a prompt token 0.01 s, a decode token 0.1 s for one, 0.2 s for two.
    machine = hardware({"kind": "tpot", "tpot_s": {1: 0.1, 2: 0.2}}, {"linear_s": 0.01})
    played = play(
        params(machine, chunked=True, step_tokens=10),
        [
            (0.0, ADMIT, 0, 0, 100, 1.0, 20),  # alone: its prefill time exactly
            (1.0, ADMIT, 0, 1, 90, 0.9, 3),
            (99.0, STOP, 0),
            (99.0, ACCRUE, 0),
        ],
    )
    # Beside one sequence: chunks of 9 tokens in steps of 0.1 + 0.09 s, ten of them. The first has
    # made 10 tokens by then; with both a token takes 0.2 s: three more, then seven alone.
    assert events(played) == [
        (1.0, FIRST_TOKEN, 0),
        (2.9, FIRST_TOKEN, 1),
        (3.5, FINISHED, 1),
        (4.2, FINISHED, 0),
    ]
    assert played.log[0, 0] == 1.0
    assert played.prefill_ticks[0] * TICK_S == pytest.approx(2.9, abs=1e-8)


def test_sequence_that_ends_with_a_prompt_goes_first():
    machine = hardware({"kind": "tpot", "tpot_s": {1: 0.125}}, {"linear_s": 1 / 64})
    script = [(0.0, ADMIT, 0, 0, 64, 1.0, 8), (1.0, ADMIT, 0, 1, 64, 1.0, 0), (9.0, STOP, 0)]
    played = play(params(machine, chunked=True, step_tokens=9), script)
    assert [tuple(row[[0, 2, 3]]) for row in played.log] == [
        (1.0, FIRST_TOKEN, 0),
        (3.0, FINISHED, 0),
        (3.0, FIRST_TOKEN, 1),
        (3.0, FINISHED, 1),
    ]


def test_endless_sequence_leaves_no_rounding_to_those_after_it():
    machine = hardware({"kind": "tpot", "tpot_s": {1: 1e-6}})
    script = [(0.0, ADMIT, 0, 0, 0, 0.0, 1e14), (2e8, ADMIT, 0, 1, 0, 0.0, 1e5)]
    played = play(params(machine), [*script, (3e8, STOP, 0)])
    assert played.log[3, 0] == 2e8 + 0.1


def test_restorations_slow_decoding_while_any_is_in_progress():
    played = play(
        params(slowdown=2.0),
        [
            (0.0, ADMIT, 0, 0, 100, 0.5, 10),
            (0.0, RESTORE, 0, 1),  # no matter for a prompt
            (0.7, RESTORE, 0, 2),  # one token made since 0.5, at 0.2 s
            (0.9, RESTORE, 0, 1),  # two
            (1.1, RESTORE, 0, 0),  # three
            (99.0, STOP, 0),
        ],
    )
    assert events(played) == [(0.5, FIRST_TOKEN, 0), (1.8, FINISHED, 0)]


def test_stations_are_served_by_their_own_class():
    slow = hardware({"kind": "tpot", "tpot_s": {1: 1.0}})
    made = make_engine_params([EVEN, slow], most=MOST)
    script = [(0.0, ADMIT, k, k, 100, 0.5, 4) for k in range(2)]
    played = play(made, [*script, (99.0, STOP, 0)], stations=2, classes=[1, 0])
    assert [tuple(row[:3]) for row in played.log[2:]] == [
        (pytest.approx(0.9), 1, FINISHED),
        (4.5, 0, FINISHED),
    ]


def test_failing_station_loses_its_requests_and_starts_anew():
    made = params(slowdown=2.0)
    script = [
        (0.0, ADMIT, 0, 0, 100, 0.1, 50),
        (0.0, ADMIT, 0, 1, 100, 0.1, 40),
        (0.5, ADMIT, 0, 2, 1000, 1.0, 40),
        (0.5, ADMIT, 0, 3, 1000, 1.0, 40),
        (0.5, RESTORE, 0, 3),
        (0.75, DROP, 0),
    ]
    played = play(made, script)
    assert [tuple(row[1:]) for row in played.log[2:]] == [
        (0, DROPPED, record) for record in (2, 3, 1, 0)
    ]
    assert played.engine.state[0, [PROMPTS, DECODING, RESTORING]].tolist() == [0, 0, 0]
    assert played.engine.state[0, [FIRST_PROMPT, ROOT]].tolist() == [-1, -1]
    assert math.isinf(played.timers.time_s[0])
    later = [(2.0, ADMIT, 0, 0, 100, 0.125, 2), (9.0, STOP, 0), (9.0, ACCRUE, 0)]
    played = play(made, script + later)
    assert events(played)[-2:] == [(2.125, FIRST_TOKEN, 0), (2.325, FINISHED, 0)]
    assert played.prefill_ticks[0] * TICK_S == pytest.approx(0.2 + 0.25 + 0.125, abs=1e-8)


@pytest.mark.parametrize("quadratic_s", [0.0, 1e-6])
def test_idle_engine_takes_the_prefill_time_of_its_hardware_to_the_bit(quadratic_s):
    prefill = {"linear_s": 3e-4, "quadratic_s": quadratic_s, "floor_s": 0.01}
    machine = hardware({"kind": "tpot", "tpot_s": {1: 0.1}}, prefill)
    for chunked in (False, True):
        for new in (1, 20, 777, 10_000):
            alone_s = max(3e-4 * new, 0.01) + quadratic_s * new**2
            made = params(machine, chunked=chunked)
            played = play(made, [(0.0, ADMIT, 0, 0, new, alone_s, 0), (999.0, STOP, 0)])
            assert played.log[0, 0] == alone_s


def test_idle_engine_with_a_table_takes_full_steps_and_the_prompts_attention():
    made = params(TABLE, chunked=True, step_tokens=40)
    new, linear_s, attention_s = 100, 0.2, 1e-5 * 100**2
    played = play(made, [(0.0, ADMIT, 0, 0, new, linear_s + attention_s, 0), (99.0, STOP, 0)])
    assert played.log[0, 0] == pytest.approx(new * 0.08 / 40 + attention_s)


def test_table_is_read_linearly_in_both_directions():
    made = params(TABLE, chunked=True, step_tokens=40)
    # 5 sequences and 35 tokens: 0.085 at two, 0.1825 at eight.
    step = 0.5 * (0.085 + 0.06 + 35 / 40 * 0.14)
    assert made.token_s[0, 5] == pytest.approx(0.055)
    assert made.token_s[0, 5] + made.prompt_s[0, 5] == pytest.approx(step)
    assert made.prompt_s[0, 0] == pytest.approx(0.08)
    assert made.token_s[0, 24] == pytest.approx(0.06)


def test_more_requests_find_room():
    played = play(params(), [(0.0, ADMIT, 0, 0, 100, 0.1, 50), (1.0, STOP, 0)])
    batch = played.engine._make(array[None] for array in played.engine)
    grown = with_more_requests(batch, 7)
    assert grown.request.shape[1] == grown.link.shape[1] == 7
    np.testing.assert_array_equal(grown.request[:, :1], batch.request)
    np.testing.assert_array_equal(grown.link[:, :1], batch.link)


# Random schedules


@st.composite
def scripts(draw):
    """Return a script for two stations, with ends at all times that tell something."""
    script, record, restoring = [], 0, [0, 0]
    now = 0.0
    for _ in range(draw(st.integers(1, 25))):
        now += draw(st.sampled_from([0.0, 0.01, 0.125, 0.3, 1.0, 5.0]))
        station = draw(st.integers(0, 1))
        what = draw(st.sampled_from([ADMIT] * 8 + [RESTORE] * 2 + [DROP]))
        if what == ADMIT:
            new = draw(st.sampled_from([0, 1, 7, 40, 333]))
            prefill_s = 0.0 if new == 0 else max(0.002 * new, 0.01) + 1e-5 * new**2
            decode = draw(st.sampled_from([0, 1, 2, 9, 30]))
            script.append((now, ADMIT, station, record, new, prefill_s, decode))
            record += 1
        elif what == RESTORE:
            restoring[station] = draw(st.integers(0, 2))
            script.append((now, RESTORE, station, restoring[station]))
        else:
            script.append((now, DROP, station))
    return script


def machine_of(kind):
    if kind == "table":
        return TABLE
    prefill = {"linear_s": 0.002, "quadratic_s": 1e-5, "floor_s": 0.01}
    return hardware({"kind": "tpot", "tpot_s": {1: 0.02, 3: 0.03, 9: 0.09}}, prefill)


def plain_step(kind, machine):
    if kind == "table":
        return lambda n, chunk: float(machine.decode.step(n, chunk))
    return lambda n, chunk: (float(machine.decode.tpot(n)) if n else 0.0) + 0.002 * chunk


def plain_events(script, kind, chunked, until):
    """Return all events by the plain model, and the models as they are at the end."""
    step = plain_step(kind, machine_of(kind))
    models = [PlainEngine(step, chunked, 40, 1.5) for _ in range(2)]
    log = []
    for operation in [*script, (until, STOP, 0)]:
        now, what, station, *rest = operation
        for k, model in enumerate(models):
            log += [(time, k, event, record) for time, event, record in model.run(now)]
        model = models[station]
        if what == ADMIT:
            record, new, prefill_s, decode = rest
            if new == 0:
                own_s = 0.0
            elif not chunked:
                own_s = prefill_s / new
            elif kind == "table":
                own_s = 1e-5 * new
            else:
                own_s = prefill_s / new - 0.002
            model.prompts.append([record, float(new), own_s, float(decode)])
        elif what == RESTORE:
            model.restoring = rest[0]
        elif what == DROP:
            gone = [item[0] for item in model.prompts + model.sequences]
            log += [(now, station, DROPPED, record) for record in gone]
            model.prompts, model.sequences, model.restoring = [], [], 0
    return log, models


def by_station_and_record(log):
    return {(int(row[1]), int(row[2]), int(row[3])): row[0] for row in log}


@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("kind", ["tpot", "table"])
@settings(max_examples=60)
@given(script=scripts(), after=st.sampled_from([0.5, 3.0, 1000.0]))
def test_random_schedules_are_those_of_the_plain_model(kind, chunked, script, after):
    made = params(machine_of(kind), chunked=chunked, step_tokens=40, slowdown=1.5)
    until = script[-1][0] + after
    ends = [(until, ACCRUE, 0), (until, ACCRUE, 1)]
    played = play(made, [*script, *ends], stations=2)
    expected, models = plain_events(script, kind, chunked, until)
    expected = by_station_and_record(expected)
    found = by_station_and_record(played.log)
    # An event within rounding of an operation or of the end may fall on either side.
    edges = [operation[0] for operation in script] + [until]
    for key in set(found) ^ set(expected):
        time = found.get(key, expected.get(key))
        assert min(abs(time - edge) for edge in edges) < 1e-9, key
    for key in set(found) & set(expected):
        assert found[key] == pytest.approx(expected[key], abs=1e-8), key
    if len(found) == len(expected):
        for k, model in enumerate(models):
            busy_s = played.prefill_ticks[k] * TICK_S
            assert busy_s == pytest.approx(model.busy_s, abs=1e-7)
            assert played.engine.state[k, DECODING] == len(model.sequences)
            assert played.engine.state[k, PROMPTS] == len(model.prompts)


@pytest.mark.parametrize("chunked", [False, True])
@given(script=scripts())
def test_time_goes_forward_first_tokens_keep_their_order_and_nothing_is_lost(chunked, script):
    made = params(machine_of("tpot"), chunked=chunked, step_tokens=40, slowdown=1.5)
    played = play(made, [*script, (script[-1][0] + 1000.0, STOP, 0)], stations=2)
    log = played.log
    assert (np.diff(log[:, 0]) >= 0.0).all()
    admitted = {op[3]: op for op in script if op[1] == ADMIT}
    first = by_station_and_record(log[log[:, 2] == FIRST_TOKEN])
    for station in range(2):
        order = [record for k, _, record in first if k == station]
        assert order == sorted(order)
    ends = log[log[:, 2] != FIRST_TOKEN, 3]
    assert sorted(ends.tolist()) == sorted(admitted)
    if not chunked:
        # Never two prompts at the server, and each has it for exactly its prefill time.
        free = {0: 0.0, 1: 0.0}
        for (station, _, record), time in first.items():
            begin = max(admitted[record][0], free[station])
            dropped = [op[0] for op in script if op[1] == DROP and op[2] == station]
            if not any(free[station] <= drop <= begin for drop in dropped):
                assert time == begin + admitted[record][5]
            free[station] = time


@pytest.mark.parametrize("chunked", [False, True])
@given(script=scripts(), cuts=st.lists(st.floats(0.0, 40.0), max_size=8))
def test_ends_of_windows_change_nothing_to_the_bit(chunked, script, cuts):
    made = params(machine_of("table"), chunked=chunked, step_tokens=40, slowdown=1.5)
    until = max([script[-1][0] + 50.0, *cuts])
    ends = [(until, ACCRUE, 0), (until, ACCRUE, 1)]
    whole = play(made, [*script, *ends], stations=2)
    accruals = [(cut, ACCRUE, k) for cut in cuts for k in range(2)]
    cut = play(made, [*sorted([*script, *accruals], key=lambda op: op[0]), *ends], stations=2)
    np.testing.assert_array_equal(whole.log, cut.log)
    np.testing.assert_array_equal(whole.prefill_ticks, cut.prefill_ticks)
    np.testing.assert_array_equal(whole.engine.station[:, LEFT_S], cut.engine.station[:, LEFT_S])
