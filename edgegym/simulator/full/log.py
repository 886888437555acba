"""The request log: one row for each request that ends, until Python takes the rows away.

A request ends when it leaves its slot, is rejected, or is interrupted by a failure. The log is a
segment of ``L`` rows; the loop stops with NEEDS_FLUSH where an event could end more requests than
there is room for, and at the end of an advance whoever owns the log takes its rows, so it is empty
between advances and no part of the simulation's state. With ``L = 0`` nothing is logged.
"""

from typing import NamedTuple

import numpy as np

from edgegym.simulator.columns import (
    ARRIVAL_S,
    FIRST_TOKEN_S,
    JOIN_S,
    NODE,
    START_S,
    TYPE,
)
from edgegym.simulator.compiling import helper, inlined
from edgegym.simulator.full.columns import (
    FETCHED_BYTES,
    HIT_TOKENS,
    INPUT_TOKENS,
    LOCAL_HIT_TOKENS,
    NEAREST,
    OUTPUT_TOKENS,
    PREDICTED_S,
    PREFILL_S,
    REDISPATCHES,
    REQUEST,
    RESTORE_S,
    RUNNER_UP,
    RUNNER_UP_S,
    SERVER_WAIT_S,
    STALL_S,
    TRANSFER_WAIT_S,
    X_KM,
    Y_KM,
)
from edgegym.simulator.state import Floats, Ints

# Values of LOG_OUTCOME.
COMPLETED = 0
INTERRUPTED = 1  # its station failed after the first token
REJECTED = 2  # nobody took it
OUTCOMES = ("completed", "interrupted", "rejected")

# Values of LOG_SOURCE: where the state that prefill was spared came from.
NO_STATE = 0
LOCAL = 1  # the node held it
FETCHED = 2  # some of it came over the backhaul for this request
AT_ORIGIN = 3  # the request was served at the origin
SOURCES = ("none", "local", "fetched", "origin")

# Integer columns of the log.
LOG_REQUEST = 0
LOG_TYPE = 1
LOG_STATION = 2  # −1 where it was rejected
LOG_NEAREST = 3
LOG_RUNNER_UP = 4
LOG_OUTCOME = 5
LOG_SOURCE = 6
LOG_INPUT_TOKENS = 7
LOG_OUTPUT_TOKENS = 8
LOG_HIT_TOKENS = 9
LOG_FETCHED_BYTES = 10
LOG_REDISPATCHES = 11
NUM_LOG_NUMS = 12

# Real columns of the log; NaN where the request never came so far.
LOG_ARRIVAL_S = 0
LOG_X_KM = 1
LOG_Y_KM = 2
LOG_RADIO_S = 3  # until it lands at the station that serves it, lost ways included
LOG_WAIT_S = 4  # until it has a slot
LOG_STALL_S = 5  # in the slot, until its fetch is in
LOG_RESTORE_S = 6
LOG_SERVER_WAIT_S = 7  # until the prefill server takes it
LOG_PREFILL_S = 8  # until its first token
LOG_TTFT_S = 9
LOG_END_TO_END_S = 10
LOG_TRANSFER_WAIT_S = 11
LOG_PREDICTED_S = 12
LOG_RUNNER_UP_S = 13
NUM_LOG_REALS = 14

_USUAL_ROWS = 16384


class LogState(NamedTuple):
    """Logs of B fleets."""

    real: Floats  # [B, L, NUM_LOG_REALS]
    num: Ints  # [B, L, NUM_LOG_NUMS]
    used: Ints  # [B, 1] rows in use


class Log(NamedTuple):
    """The log of one fleet."""

    real: Floats  # [L, NUM_LOG_REALS]
    num: Ints  # [L, NUM_LOG_NUMS]
    used: Ints  # [1]
    rows: int  # L

    COLUMNS = (("real", NUM_LOG_REALS), ("num", NUM_LOG_NUMS), ("used", 0))


def allocate_log(records: int, batch: int = 1) -> LogState:
    """Return empty logs.

    Parameters
    ----------
    records : int
        Request records that there are: one event might end all of them, so the log has more room
        than that. 0 for a log that records nothing.
    batch : int
        Number of fleets, B.

    Returns
    -------
    LogState
        With ``L = 0``, or at least 16384 rows and twice the records.
    """
    rows = max(2 * records, _USUAL_ROWS) if records else 0
    return LogState(
        np.zeros((batch, rows, NUM_LOG_REALS)),
        np.zeros((batch, rows, NUM_LOG_NUMS), dtype=np.int64),
        np.zeros((batch, 1), dtype=np.int64),
    )


def log_lane(state: LogState, b: int) -> Log:
    """Return the views of fleet b."""
    return Log(state.real[b], state.num[b], state.used[b], state.real.shape[1])


def take_rows(state: LogState, b: int) -> tuple[Floats, Ints]:
    """Empty the log of fleet b.

    Parameters
    ----------
    state : LogState
        Logs of B fleets, changed in place.
    b : int
        Which fleet.

    Returns
    -------
    tuple of ndarray
        Copies of its rows, ``[n, NUM_LOG_REALS]`` and ``[n, NUM_LOG_NUMS]``, in the order in which
        the requests ended.
    """
    count = int(state.used[b, 0])
    state.used[b, 0] = 0
    return state.real[b, :count].copy(), state.num[b, :count].copy()


@inlined
def has_log_room(log: Log, ending: int) -> bool:
    """Return whether an event may happen that ends so many requests at most."""
    return log.rows == 0 or log.used[0] + ending <= log.rows


@inlined
def _source(tasks_num: Ints, record: int, at_origin: bool) -> int:
    if at_origin:
        return AT_ORIGIN
    hit, local = tasks_num[record, HIT_TOKENS], tasks_num[record, LOCAL_HIT_TOKENS]
    if hit > local:
        return FETCHED
    return LOCAL if hit > 0 else NO_STATE


@helper
def _write_row(
    log: Log, time: Floats, info: Ints, real: Floats, num: Ints, record: int, outcome: int
) -> int:
    """Write what is known of every request; return the row."""
    row = log.used[0]
    log.used[0] = row + 1
    log.num[row, LOG_REQUEST] = num[record, REQUEST]
    log.num[row, LOG_TYPE] = info[record, TYPE]
    log.num[row, LOG_STATION] = -1
    log.num[row, LOG_NEAREST] = num[record, NEAREST]
    log.num[row, LOG_RUNNER_UP] = num[record, RUNNER_UP]
    log.num[row, LOG_OUTCOME] = outcome
    log.num[row, LOG_SOURCE] = NO_STATE
    log.num[row, LOG_INPUT_TOKENS] = num[record, INPUT_TOKENS]
    log.num[row, LOG_OUTPUT_TOKENS] = num[record, OUTPUT_TOKENS]
    log.num[row, LOG_HIT_TOKENS] = 0
    log.num[row, LOG_FETCHED_BYTES] = num[record, FETCHED_BYTES]
    log.num[row, LOG_REDISPATCHES] = num[record, REDISPATCHES]
    log.real[row, LOG_ARRIVAL_S] = time[record, ARRIVAL_S]
    log.real[row, LOG_X_KM] = real[record, X_KM]
    log.real[row, LOG_Y_KM] = real[record, Y_KM]
    for column in range(LOG_RADIO_S, LOG_TRANSFER_WAIT_S + 1):
        log.real[row, column] = np.nan
    log.real[row, LOG_PREDICTED_S] = real[record, PREDICTED_S]
    log.real[row, LOG_RUNNER_UP_S] = real[record, RUNNER_UP_S]
    return row


@helper
def _write_served(
    log: Log,
    time: Floats,
    info: Ints,
    real: Floats,
    num: Ints,
    record: int,
    outcome: int,
    end_s: float,
    origin: int,
) -> None:
    row = _write_row(log, time, info, real, num, record, outcome)
    station = info[record, NODE]
    log.num[row, LOG_STATION] = station
    log.num[row, LOG_SOURCE] = _source(num, record, station == origin)
    log.num[row, LOG_HIT_TOKENS] = num[record, HIT_TOKENS]
    arrival, start = time[record, ARRIVAL_S], time[record, START_S]
    first = time[record, FIRST_TOKEN_S]
    log.real[row, LOG_RADIO_S] = time[record, JOIN_S] - arrival
    log.real[row, LOG_WAIT_S] = start - time[record, JOIN_S]
    log.real[row, LOG_STALL_S] = real[record, STALL_S]
    log.real[row, LOG_RESTORE_S] = real[record, RESTORE_S]
    log.real[row, LOG_SERVER_WAIT_S] = real[record, SERVER_WAIT_S]
    log.real[row, LOG_PREFILL_S] = real[record, PREFILL_S]
    log.real[row, LOG_TTFT_S] = first - arrival
    log.real[row, LOG_END_TO_END_S] = end_s - arrival
    log.real[row, LOG_TRANSFER_WAIT_S] = real[record, TRANSFER_WAIT_S]


@inlined
def log_served(
    log: Log,
    time: Floats,
    info: Ints,
    real: Floats,
    num: Ints,
    record: int,
    outcome: int,
    end_s: float,
    origin: int,
) -> None:
    """Log a request that got its first token and ends now, COMPLETED or INTERRUPTED.

    Parameters
    ----------
    log : Log
        With room for a row.
    time, info : ndarray
        ``records.time`` and ``records.info``.
    real, num : ndarray
        ``tasks.real`` and ``tasks.num``.
    record : int
        Which request; its record must not be released yet.
    outcome : int
        COMPLETED or INTERRUPTED.
    end_s : float
        When its last token came (with its slot, or at the user where that is later).
    origin : int
        Station of the origin, −1 without one.
    """
    if log.rows > 0:
        _write_served(log, time, info, real, num, record, outcome, end_s, origin)


@inlined
def log_rejected(log: Log, time: Floats, info: Ints, real: Floats, num: Ints, record: int) -> None:
    """Log a request that nobody takes, at its routing or later.

    Parameters
    ----------
    log : Log
        With room for a row.
    time, info : ndarray
        ``records.time`` and ``records.info``.
    real, num : ndarray
        ``tasks.real`` and ``tasks.num``.
    record : int
        Which request.
    """
    if log.rows > 0:
        _write_row(log, time, info, real, num, record, REJECTED)
