"""Engines driven from a script of operations, and a plain model of the same to hold them to."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from edgegym.jit import kernel
from edgegym.simulator.columns import NUM_NODE_WORK, PREFILL_TIME_TICKS
from edgegym.simulator.full.engine import (
    engine_accrue,
    engine_admit,
    engine_drop,
    engine_fire,
    set_restoring,
)
from edgegym.simulator.full.engine_data import CLASS, Engine, EngineParams, allocate_engine
from edgegym.simulator.full.timers import Timers, allocate_timers, first_station, first_time

# Operations, in rows of (time, what, station, a, b, c, d).
ADMIT = 0  # record, new tokens, prefill_s, tokens to decode
RESTORE = 1  # count
DROP = 2
ACCRUE = 3
STOP = 4
# Events of the log, in rows of (time, station, event, record), beside FIRST_TOKEN and FINISHED.
DROPPED = 2


@kernel
def play_kernel(params, engine, timers, work, operations, log):
    """Do all operations in order, with the events between them; return the events' number."""
    used = 0
    for k in range(len(operations)):
        now = operations[k, 0]
        what, station = int(operations[k, 1]), int(operations[k, 2])
        while first_time(timers) <= now:
            time, where = first_time(timers), first_station(timers)
            while True:
                event, record = engine_fire(params, engine, timers, where, time)
                if event < 0:
                    break
                log[used, 0], log[used, 1], log[used, 2], log[used, 3] = time, where, event, record
                used += 1
        if what == ADMIT:
            engine_admit(
                params,
                engine,
                timers,
                station,
                int(operations[k, 3]),
                operations[k, 4],
                operations[k, 5],
                operations[k, 6],
                now,
            )
        elif what == RESTORE:
            set_restoring(params, engine, timers, station, int(operations[k, 3]), now)
        elif what == ACCRUE:
            engine_accrue(engine, work, station, now)
        elif what == DROP:
            while True:
                record = engine_drop(engine, timers, station, now)
                if record < 0:
                    break
                log[used, 0], log[used, 1], log[used, 2] = now, station, DROPPED
                log[used, 3] = record
                used += 1
    return used


@dataclass
class Played:
    """What came of a script."""

    log: np.ndarray
    engine: Engine
    timers: Timers
    prefill_ticks: np.ndarray


def play(params: EngineParams, operations: Any, stations: int = 1, classes: Any = None) -> Played:
    """Do the operations with the engines proper, compiled."""
    rows = np.zeros((len(operations), 7))
    for row, operation in zip(rows, operations, strict=True):
        row[: len(operation)] = operation
    return play_rows(params, rows, stations, classes)


def play_rows(
    params: EngineParams, rows: np.ndarray, stations: int = 1, classes: Any = None
) -> Played:
    """As :func:`play`, for operations that are an array already."""
    admitted = rows[:, 1] == ADMIT
    records = int(rows[admitted, 3].max()) + 1 if admitted.any() else 1
    engines, timers = allocate_engine(stations, records), allocate_timers(stations)
    engine = Engine._make(array[0] for array in engines)
    if classes is not None:
        engine.state[:, CLASS] = classes
    timers = Timers._make(array[0] for array in timers)
    work = np.zeros((stations, NUM_NODE_WORK), dtype=np.int64)
    log = np.zeros((2 * int(admitted.sum()) + 1, 4))
    used = play_kernel(params, engine, timers, work, rows, log)
    return Played(log[:used], engine, timers, work[:, PREFILL_TIME_TICKS])


@dataclass
class PlainEngine:
    """One engine as a list of prompts and one of sequences, worked out from event to event."""

    step: Any  # g(n, chunk), seconds
    chunked: bool
    step_tokens: int
    slowdown: float
    now: float = 0.0
    prompts: list[Any] = field(default_factory=list)  # [record, tokens left, own_s, decode tokens]
    sequences: list[Any] = field(default_factory=list)  # [record, tokens left]
    restoring: int = 0
    busy_s: float = 0.0

    def rates(self) -> tuple[float, float]:
        """Return prompt tokens per second and output tokens per second of each sequence."""
        n = len(self.sequences)
        decode_s = self.step(n, 0) * (self.slowdown if self.restoring else 1.0) if n else 0.0
        if not self.prompts:
            return 0.0, 1.0 / decode_s if n else 0.0
        own_s = self.prompts[0][2]
        if not self.chunked:
            return 1.0 / own_s if own_s else math.inf, 0.0
        chunk = self.step_tokens - n
        step_s = decode_s + self.step(n, chunk) - (self.step(n, 0) if n else 0.0) + chunk * own_s
        return chunk / step_s, 1.0 / step_s

    def run(self, until: float) -> list[tuple[float, int, int]]:
        """Let time pass and return (time, event, record)."""
        events = []
        while True:
            prompt_rate, rate = self.rates()
            after = until - self.now
            what, least = None, []
            if self.prompts:
                left = self.prompts[0][1]
                first = left / prompt_rate if left > 0 else 0.0
                if first <= after:
                    after, what = first, 0
            if self.sequences:
                least = min(self.sequences, key=lambda item: item[1])
                last = least[1] / rate if rate > 0 else (0.0 if least[1] <= 1e-9 else math.inf)
                if last <= after:
                    after, what = last, 1
            if not math.isinf(after):
                self.now += after
                if self.prompts:
                    self.busy_s += after
                    if not math.isinf(prompt_rate):
                        self.prompts[0][1] -= after * prompt_rate
                for item in self.sequences:
                    item[1] -= after * rate
            if what is None:
                self.now = until
                return events
            if what == 0:
                record, _, _, decode = self.prompts.pop(0)
                self.sequences.append([record, decode])
            else:
                record = least[0]
                self.sequences.remove(least)
            events.append((self.now, what, record))
