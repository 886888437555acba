"""Many fleets of one scenario in one state, advanced by threads."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from edgegym.simulator.arguments import checked_tier_wait
from edgegym.simulator.columns import (
    ARRIVALS,
    BUSY_TICKS,
    BYTES_MOVED,
    CAPACITY_TICKS,
    COMPLETED,
    DECIDED,
    FIRST_TOKENS,
    GOODPUT_TOKENS,
    HITS,
    PENDING_BYTES,
    PENDING_MOVES,
    PREFILL_TICKS,
    PREFILL_TIME_TICKS,
    RADIO_TICKS,
    REJECTED,
    WAIT_TICKS,
)
from edgegym.simulator.full.counts import RESTORE_TICKS, STALL_TICKS
from edgegym.simulator.loops import event_loop
from edgegym.simulator.room import with_block_capacity
from edgegym.simulator.state import (
    TICKS_PER_S,
    FleetState,
    Floats,
    Ints,
    to_ticks,
)
from edgegym.simulator.step import DONE, NEEDS_BLOCK
from edgegym.simulator.stream import RequestStream
from edgegym.simulator.tree import map_arrays, named_arrays
from edgegym.simulator.window import WindowStats
from edgegym.threads import Crew
from edgegym.world.compiled import World
from edgegym.world.scenario import Scenario


class FleetBatch:
    """B fleets of a scenario; each is to the bit the :class:`Fleet` of the same seed.

    Parameters
    ----------
    scenario : Scenario
        The world.
    batch : int
        Number of fleets, B.
    crew : Crew
        Threads that advance them; results do not depend on their number.
    tier_wait_s : array_like, optional
        As of :class:`~edgegym.simulator.Fleet`.

    Notes
    -----
    A fleet must be reset before anything else is done to it.
    """

    def __init__(
        self, scenario: Scenario, batch: int, crew: Crew, tier_wait_s: ArrayLike | None = None
    ) -> None:
        self._world: World = scenario.compile()
        self._scenario = scenario
        self._crew = crew
        self._loop = event_loop(scenario)
        # What a reset copies into its row: grows with the state, so that the shapes stay alike.
        self._blank = self._loop.allocate(1)
        self._blank.tier_wait_s[0] = checked_tier_wait(self._world, tier_wait_s)
        self._streams: list[RequestStream | None] = [None] * batch
        self._adopt(self._loop.allocate(batch))
        self._loop.resolve(self._lanes[0])

    def _adopt(self, state: FleetState) -> None:
        self._state = state
        rows = range(len(state.now))
        self._rows = [map_arrays(lambda array, b=b: array[b : b + 1], state) for b in rows]
        self._lanes: list[Any] = [self._loop.lane_of(state, b) for b in rows]

    @property
    def world(self) -> World:
        """The compiled scenario."""
        return self._world

    @property
    def state(self) -> FleetState:
        """The live state; arrays are replaced when fleets need room: don't hold on."""
        return self._state

    def bucket_bytes(self) -> Floats:
        """Return what moves may cost now, ``[B]``."""
        world, state = self._world, self._state
        level = state.bucket_bytes + world.budget_bytes_per_s * (state.now - state.bucket_time_s)
        return np.minimum(float(world.burst_bytes), level)

    def reset(self, rows: Sequence[int], seeds: Sequence[int]) -> None:
        """Start fleets anew at time 0.

        Parameters
        ----------
        rows : sequence of int
            Which fleets.
        seeds : sequence of int
            Their seeds, in [0, 2^64).
        """
        self._crew.each(self._reset_row, zip(rows, seeds, strict=True))

    def _reset_row(self, which: tuple[int, int]) -> None:
        b, seed = which
        row = self._rows[b]
        for (_, array), (_, blank) in zip(
            named_arrays(row), named_arrays(self._blank), strict=True
        ):
            array[...] = blank
        self._loop.begin(row, 0, seed)
        # Its first block is loaded when the fleet first needs one.
        self._streams[b] = RequestStream(self._world, seed)
        self._lanes[b] = self._loop.lane_of(self._state, b)

    def start_moves(self, rows: Ints, nodes: Ints, profiles: Ints) -> None:
        """Start one move in each of some fleets.

        Parameters
        ----------
        rows : ndarray of int
            Which fleets, each at most once.
        nodes, profiles : ndarray of int
            Moves that are legal now.
        """
        world, state = self._world, self._state
        current = state.profile[rows, nodes]
        price_bytes = world.move_bytes[current, profiles]
        state.bucket_bytes[rows] = self.bucket_bytes()[rows] - price_bytes
        state.bucket_time_s[rows] = state.now[rows]
        state.scalars[rows, PENDING_MOVES] += 1
        state.scalars[rows, PENDING_BYTES] += price_bytes
        moves = zip(
            rows.tolist(),
            nodes.tolist(),
            profiles.tolist(),
            world.meet[current, profiles].tolist(),
            price_bytes.tolist(),
            strict=True,
        )
        for b, *move in moves:
            self._loop.change_profile(self._lanes[b], *move)

    def advance(self, rows: Ints, seconds: float) -> "WindowBatch":
        """Serve traffic in some fleets.

        Parameters
        ----------
        rows : ndarray of int
            Which fleets, each at most once.
        seconds : float
            How long, finite and not negative.

        Returns
        -------
        WindowBatch
            What happened. It reads the state, so it holds until these fleets are advanced again.
        """
        begin = self._state.now[rows].tolist()
        until = [start + seconds for start in begin]
        left = list(zip(rows.tolist(), until, strict=True))
        while left:
            short: dict[int, tuple[int, FleetState]] = {}

            def work(
                which: tuple[int, float], short: dict[int, tuple[int, FleetState]] = short
            ) -> None:
                self._advance_row(*which, short)

            self._crew.each(work, left)
            if short:
                self._make_room(short)
            left = [which for which in left if which[0] in short]
        ticks = [to_ticks(end) - to_ticks(start) for start, end in zip(begin, until, strict=True)]
        return WindowBatch(self._state, rows, np.array(ticks, dtype=np.int64))

    def _advance_row(self, b: int, until: float, short: dict[int, tuple[int, FleetState]]) -> None:
        """Advance a fleet; note what it needs, and its row, if the state has too little room."""
        lane, stream, row = self._lanes[b], self._streams[b], self._rows[b]
        assert stream is not None
        while (code := self._loop.advance(lane, until)) != DONE:
            filled = self._loop.fill(stream, row, 0) if code == NEEDS_BLOCK else row
            if code != NEEDS_BLOCK or filled is not row:
                short[b] = code, filled
                return

    def _make_room(self, short: dict[int, tuple[int, FleetState]]) -> None:
        """Lengthen the arrays for rows that were noted as short; no thread may be at work."""
        state, blank = self._state, self._blank
        capacity = max(row.request_time_s.shape[1] for _, row in short.values())
        for code in sorted({code for code, _ in short.values()} - {NEEDS_BLOCK}):
            state = self._loop.with_more_room(state, code)
            blank = self._loop.with_more_room(blank, code)
        self._adopt(with_block_capacity(state, capacity))
        self._blank = with_block_capacity(blank, capacity)
        for b, (code, row) in short.items():
            if code == NEEDS_BLOCK:
                for block, mine in zip(_block(row), _block(self._state), strict=True):
                    mine[b, : block.shape[1]] = block[0]

    def __getstate__(self) -> dict[str, Any]:
        # The rest follows from it.
        kept = ("_scenario", "_world", "_crew", "_blank", "_streams", "_state")
        return {name: self.__dict__[name] for name in kept}

    def __setstate__(self, pickled: dict[str, Any]) -> None:
        """Restore from :meth:`__getstate__`."""
        self.__dict__.update(pickled)
        self._loop = event_loop(self._scenario)
        self._adopt(self._state)
        self._loop.resolve(self._lanes[0])


def _block(state: FleetState) -> list[Any]:
    """Return the arrays of the loaded stream block."""
    plain = [getattr(state, name) for name in state._fields if name.startswith("request_")]
    return plain if state.full is None else [*plain, *state.full.lengths]


class WindowBatch:
    """What happened in a window of time in R fleets: the names of WindowStats, ``[R]`` each.

    Parameters
    ----------
    state : FleetState
        Of B fleets, whose windows an advance has just closed.
    rows : ndarray of int
        Which fleets.
    ticks : ndarray of int
        Lengths of their windows.
    """

    def __init__(self, state: FleetState, rows: Ints, ticks: Ints) -> None:
        self._state = state
        self._rows = rows
        self.ticks = ticks
        self._num_nodes = state.node_x.shape[1]
        self._counters = state.counters[rows]

    def stats(self) -> list[WindowStats]:
        """Return the window of each fleet by itself, independent of the state."""
        rows, ticks = self._rows.tolist(), self.ticks.tolist()
        return [
            WindowStats.of_window(self._state, *which) for which in zip(rows, ticks, strict=True)
        ]

    @property
    def seconds(self) -> Floats:
        """Lengths of the windows."""
        return self.ticks / TICKS_PER_S

    @property
    def arrivals(self) -> Ints:
        """Requests made."""
        return self._counters[:, ARRIVALS]

    @property
    def decided(self) -> Ints:
        """Requests whose target was met, missed, or that were rejected."""
        return self._counters[:, DECIDED]

    @property
    def hits(self) -> Ints:
        """Requests whose first token came within their target."""
        return self._counters[:, HITS]

    @property
    def first_tokens(self) -> Ints:
        """Requests that got their first token."""
        return self._counters[:, FIRST_TOKENS]

    @property
    def rejected(self) -> Ints:
        """Requests that no node could take."""
        return self._counters[:, REJECTED]

    @property
    def completed(self) -> Ints:
        """Requests that left their slot."""
        return self._counters[:, COMPLETED]

    @property
    def ttft_sum_s(self) -> Floats:
        """Sums of TTFT over the first tokens: the sums of its parts."""
        parts = self._counters[:, (RADIO_TICKS, WAIT_TICKS, PREFILL_TICKS)].sum(axis=1)
        full = self._state.full
        if full is not None:
            parts += full.counts.extra[self._rows][:, (STALL_TICKS, RESTORE_TICKS)].sum(axis=1)
        return parts / TICKS_PER_S

    @property
    def goodput_tokens_sum(self) -> Ints:
        """Output tokens of the requests within target."""
        return self._counters[:, GOODPUT_TOKENS]

    @property
    def bytes_moved(self) -> Ints:
        """Bytes charged for moves, counted in the window that follows their start."""
        return self._counters[:, BYTES_MOVED]

    @property
    def utilization(self) -> Floats:
        """Share of slot time in use, ``[R, N]``."""
        work = self._state.node_work[self._rows, : self._num_nodes]
        return work[:, :, BUSY_TICKS] / np.maximum(work[:, :, CAPACITY_TICKS], 1)

    @property
    def prefill_utilization(self) -> Floats:
        """GPU-seconds of prefill per second, ``[R, N]``."""
        prefill = self._state.node_work[self._rows, : self._num_nodes, PREFILL_TIME_TICKS]
        return prefill / np.maximum(self.ticks, 1)[:, None]
