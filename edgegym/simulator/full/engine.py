"""A serving engine at each station: one prefill server, and decoding that all sequences share.

Requests that hold a slot and whose state is ready queue for the prefill server, first in first out.
After its first token a request decodes; all decoding sequences progress together, one token a step.
Between events prompts and sequences flow evenly; at events everything is exact.

* ``fifo``: a prompt is prefilled whole, in its own prefill time, and decoding pauses meanwhile.
* ``chunked``: a step has a token of each of the n sequences and fills up with tokens of the prompt
  at the server. It takes g(n, chunk) seconds and the prompt's own attention besides.

A station's progress counts the tokens that a sequence which had been decoding since the station was
last without one would have made. A request is finished when progress reaches its mark, the progress
at its first token plus its tokens, so a change of pace touches no request.
"""

import numpy as np

from edgegym.simulator.accounting import ticks
from edgegym.simulator.columns import PREFILL_TIME_TICKS
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.engine_data import (
    BEGIN_S,
    BUSY_SINCE_TICK,
    BUSY_TICKS,
    CLASS,
    CLOCK_S,
    DECODING,
    DUE,
    FIRST_PROMPT,
    LAST_PROMPT,
    LEFT_S,
    NEXT_PROMPT,
    NEXT_RANK,
    OWN_S,
    PREFILL_END_S,
    PROGRESS,
    PROMPTS,
    RESTORING,
    ROOT,
    TOKENS,
    WORK_S,
    Engine,
    EngineParams,
)
from edgegym.simulator.full.marks import MARK, RANK, add_mark, without_first
from edgegym.simulator.full.timers import Timers, set_timer
from edgegym.simulator.state import Ints

# Events.
NOTHING = -1
FIRST_TOKEN = 0
FINISHED = 1


@inlined
def _step_s(params: EngineParams, engine: Engine, station: int) -> float:
    """Return the seconds in which each decoding sequence gets a token: inf while they pause."""
    state = engine.state
    klass: int = state[station, CLASS]
    n: int = min(state[station, DECODING], params.most)
    seconds: float = params.token_s[klass, n]
    if state[station, RESTORING] > 0:
        seconds *= params.slowdown
    prompt: int = state[station, FIRST_PROMPT]
    if prompt < 0:
        return seconds
    if not params.chunked:
        return np.inf
    chunk = params.step_tokens - state[station, DECODING]
    return seconds + params.prompt_s[klass, n] + chunk * engine.request[prompt, OWN_S]


@inlined
def _stretch(params: EngineParams, engine: Engine, station: int, step_s: float) -> float:
    """Return how much longer the prompt at the server takes than it would alone (chunks)."""
    state = engine.state
    n = state[station, DECODING]
    if n == 0:
        return 1.0
    klass, prompt = state[station, CLASS], state[station, FIRST_PROMPT]
    own_s = engine.request[prompt, OWN_S]
    alone = params.prompt_s[klass, 0] / params.step_tokens + own_s
    return step_s / (params.step_tokens - n) / alone


@inlined
def _move_on(params: EngineParams, engine: Engine, station: int, now: float) -> None:
    """Let the flows of a station go on until now."""
    row, state = engine.station, engine.state
    elapsed = now - row[station, CLOCK_S]
    row[station, CLOCK_S] = now
    if elapsed <= 0.0:
        return
    step_s = _step_s(params, engine, station)
    if state[station, DECODING] > 0:
        row[station, PROGRESS] += elapsed / step_s
    if params.chunked and row[station, LEFT_S] > 0.0:
        elapsed_alone = elapsed / _stretch(params, engine, station, step_s)
        row[station, LEFT_S] = max(row[station, LEFT_S] - elapsed_alone, 0.0)


@helper
def _set_next(params: EngineParams, engine: Engine, timers: Timers, station: int) -> None:
    """Set the timer of a station, whose flows are worked out, to its next event."""
    row, state = engine.station, engine.state
    clock = row[station, CLOCK_S]
    prompt, first = state[station, FIRST_PROMPT], state[station, ROOT]
    step_s = _step_s(params, engine, station)
    if params.chunked and prompt >= 0:
        left = row[station, LEFT_S]
        if left > 0.0:
            left *= _stretch(params, engine, station, step_s)
        row[station, PREFILL_END_S] = clock + left
    time, due = row[station, PREFILL_END_S], FIRST_TOKEN
    if first >= 0:
        tokens = engine.request[first, MARK] - row[station, PROGRESS]
        finish = clock if tokens <= 0.0 else clock + tokens * step_s
        if finish <= time:
            time, due = finish, FINISHED
    state[station, DUE] = due
    set_timer(timers, station, time)


@inlined
def _serve(engine: Engine, station: int, now: float) -> None:
    """Put the first prompt of the queue to the server."""
    row, state = engine.station, engine.state
    prompt = state[station, FIRST_PROMPT]
    work_s = engine.request[prompt, WORK_S]
    engine.request[prompt, BEGIN_S] = now
    row[station, LEFT_S] = work_s
    row[station, PREFILL_END_S] = now + work_s
    state[station, BUSY_SINCE_TICK] = ticks(now)


@inlined
def _take_prompt(engine: Engine, station: int, now: float) -> int:
    """Take the prompt at the server away and count the server's time."""
    row, state = engine.station, engine.state
    record = state[station, FIRST_PROMPT]
    state[station, BUSY_TICKS] += ticks(now) - state[station, BUSY_SINCE_TICK]
    state[station, FIRST_PROMPT] = engine.link[record, NEXT_PROMPT]
    state[station, PROMPTS] -= 1
    row[station, LEFT_S] = 0.0
    row[station, PREFILL_END_S] = np.inf
    return record


@helper
def engine_admit(
    params: EngineParams,
    engine: Engine,
    timers: Timers,
    station: int,
    record: int,
    new_tokens: float,
    prefill_s: float,
    decode_tokens: float,
    now: float,
) -> None:
    """Let a request that holds a slot, and whose state is ready, queue for its prefill.

    Parameters
    ----------
    params, engine, timers
        The engines.
    station, record : int
        Where, and which request.
    new_tokens, prefill_s : float
        Prompt tokens to compute, and the seconds of it alone, as ``prefill_seconds`` has them.
    decode_tokens : float
        Output tokens after the first.
    now : float
        Not before the station's last event.
    """
    state, request = engine.state, engine.request
    klass = state[station, CLASS]
    request[record, WORK_S] = prefill_s
    request[record, OWN_S] = 0.0
    request[record, TOKENS] = max(decode_tokens, 0.0)
    if params.chunked and new_tokens > 0.0:
        linear_s = params.linear_s[klass] * new_tokens
        if params.tabulated[klass]:
            own_s = max(prefill_s - max(linear_s, params.floor_s[klass]), 0.0) / new_tokens
            alone_s = params.prompt_s[klass, 0] / params.step_tokens + own_s
            request[record, WORK_S] = new_tokens * alone_s
        else:
            own_s = (prefill_s - linear_s) / new_tokens
        request[record, OWN_S] = own_s
    engine.link[record, NEXT_PROMPT] = -1
    state[station, PROMPTS] += 1
    if state[station, PROMPTS] > 1:
        engine.link[state[station, LAST_PROMPT], NEXT_PROMPT] = record
        state[station, LAST_PROMPT] = record
        return
    _move_on(params, engine, station, now)
    state[station, FIRST_PROMPT] = record
    state[station, LAST_PROMPT] = record
    _serve(engine, station, now)
    _set_next(params, engine, timers, station)


@helper
def engine_fire(
    params: EngineParams, engine: Engine, timers: Timers, station: int, now: float
) -> tuple[int, int]:
    """Let the next event of a station happen, if it is due.

    Call it until it says that nothing is due. Several events can come at the same time.

    Parameters
    ----------
    params, engine, timers
        The engines.
    station : int
        Where.
    now : float
        The time of the timer.

    Returns
    -------
    event : int
        ``FIRST_TOKEN``, ``FINISHED``, or ``NOTHING`` when nothing is due now.
    record : int
        Whose; -1 for nothing.
    """
    row, state = engine.station, engine.state
    time = timers.time_s[station]
    if time > now:
        return NOTHING, -1
    event = state[station, DUE]
    _move_on(params, engine, station, time)
    if event == FIRST_TOKEN:
        record = _take_prompt(engine, station, time)
        engine.request[record, MARK] = row[station, PROGRESS] + engine.request[record, TOKENS]
        engine.link[record, RANK] = state[station, NEXT_RANK]
        state[station, NEXT_RANK] += 1
        state[station, DECODING] += 1
        state[station, ROOT] = add_mark(engine.request, engine.link, state[station, ROOT], record)
        if state[station, PROMPTS] > 0:
            _serve(engine, station, time)
    else:
        record = state[station, ROOT]
        row[station, PROGRESS] = max(row[station, PROGRESS], engine.request[record, MARK])
        state[station, ROOT] = without_first(engine.request, engine.link, record)
        state[station, DECODING] -= 1
        if state[station, DECODING] == 0:
            row[station, PROGRESS] = 0.0
            state[station, NEXT_RANK] = 0
    _set_next(params, engine, timers, station)
    return event, record


@helper
def set_restoring(
    params: EngineParams, engine: Engine, timers: Timers, station: int, count: int, now: float
) -> None:
    """Say how many restorations are in progress at a station: decoding is slower while any is."""
    _move_on(params, engine, station, now)
    engine.state[station, RESTORING] = count
    _set_next(params, engine, timers, station)


@helper
def engine_drop(engine: Engine, timers: Timers, station: int, now: float) -> int:
    """Take one request away from a station that fails.

    Call it until it returns -1: prompts come first, in their order, then decoding sequences. Then
    the engine is as new, but for the server's time that is not yet handed over.
    """
    row, state = engine.station, engine.state
    record = -1
    if state[station, FIRST_PROMPT] >= 0:
        record = _take_prompt(engine, station, now)
        state[station, BUSY_SINCE_TICK] = ticks(now)
    elif state[station, ROOT] >= 0:
        record = state[station, ROOT]
        state[station, ROOT] = without_first(engine.request, engine.link, record)
        state[station, DECODING] -= 1
    else:
        row[station, PROGRESS] = 0.0
        state[station, NEXT_RANK] = 0
        state[station, RESTORING] = 0
        set_timer(timers, station, np.inf)
    row[station, CLOCK_S] = now
    return record


@inlined
def engine_wait_s(engine: Engine, record: int, ready_s: float) -> float:
    """Return how long a request waited for the prefill server since it was ready.

    Known from when its prompt is put to the server, until the record is used again.
    """
    return engine.request[record, BEGIN_S] - ready_s


@inlined
def engine_accrue(engine: Engine, work: Ints, station: int, now: float) -> None:
    """Hand the time for which the prefill server was busy over to ``PREFILL_TIME_TICKS``.

    Windows may end at any time: nothing else changes, and ticks add up to the same however often
    they are handed over.
    """
    state = engine.state
    if state[station, FIRST_PROMPT] >= 0:
        tick = ticks(now)
        state[station, BUSY_TICKS] += tick - state[station, BUSY_SINCE_TICK]
        state[station, BUSY_SINCE_TICK] = tick
    work[station, PREFILL_TIME_TICKS] += state[station, BUSY_TICKS]
    state[station, BUSY_TICKS] = 0
