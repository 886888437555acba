"""The requests of a replayed trace in any span of an episode, without those before it.

Request j of an episode is request j mod R of the file in cycle j div R. How much later than its
recorded time it comes, and whether it is kept, are drawn by its number j, so that a span can be
made by itself. No request comes later than the next recorded time, so sorting keeps the order of
the file for requests of different times; those of the same time get theirs in the file's order.
"""

import math

import numpy as np

from edgegym.simulator.generators import NumberedStream, stream_generator
from edgegym.simulator.state import Floats, Ints
from edgegym.world.compiled import World

_PIECE = 4096
# Relative to the clock: far above its rounding, far below any step that matters.
_HAIR = 1e-9


class Replay:
    """The replayed trace of one episode.

    Parameters
    ----------
    world : World
        The compiled scenario, with a trace.
    seed : int
        Seed of the episode.
    rate_per_s : float
        Mean rate at which the kept requests are to come.

    Attributes
    ----------
    stretch : float
        Seconds of the episode for each second of the recording.
    begin_s : float
        Time of the recording at which the episode begins.
    """

    def __init__(self, world: World, seed: int, rate_per_s: float) -> None:
        self._table = world.replay
        requests = len(self._table.begin_s)
        self.stretch = self._table.keep * requests / (self._table.cycle_s * rate_per_s)
        self.begin_s = 0.0
        if self._table.random_start:
            draw = float(stream_generator(seed, "replay-start").random())
            self.begin_s = draw * self._table.cycle_s
        self._draws = NumberedStream(seed, "replay")
        self._most_spread_s = float(self._table.spread_s.max())

    def over(self, start_s: float, end_s: float) -> tuple[Floats, Ints]:
        """Return the requests in a span of the episode.

        Parameters
        ----------
        start_s, end_s : float
            The span, seconds; its end is not part of it.

        Returns
        -------
        times : ndarray
            ``[K]`` seconds, never decreasing.
        index : ndarray of int
            ``[K]`` the requests of the file.
        """
        table = self._table
        requests = len(table.begin_s)
        begin = self._number_at(start_s, -1.0)
        end = self._number_at(end_s, 1.0)
        if not table.repeats:
            end = min(end, requests)
        number = np.arange(begin, max(begin, end))
        cycle, index = np.divmod(number, requests)
        recorded = cycle * table.cycle_s + table.begin_s[index]
        kept = np.ones(len(number), dtype=np.bool_)
        if len(number) and (self._most_spread_s > 0.0 or table.keep < 1.0):
            later, draw = self._uniforms(begin, len(number))
            recorded = np.sort(recorded + table.spread_s[index] * later)
            kept = draw < table.keep
        times = (recorded - self.begin_s) * self.stretch
        kept &= (times >= start_s) & (times < end_s)
        return times[kept], index[kept]

    def _number_at(self, time_s: float, side: float) -> int:
        """Return a number beyond all requests that can come after, or before, ``time_s``."""
        table = self._table
        recorded = time_s / self.stretch + self.begin_s
        recorded += side * (self._most_spread_s + _HAIR * (table.cycle_s + abs(recorded)))
        cycle = math.floor(recorded / table.cycle_s)
        index = np.searchsorted(
            table.begin_s, recorded - cycle * table.cycle_s, side="left" if side < 0.0 else "right"
        )
        return max(cycle * len(table.begin_s) + int(index), 0)

    def _uniforms(self, begin: int, count: int) -> tuple[Floats, Floats]:
        """Return two uniforms for each of some consecutive requests."""
        first, last = begin // _PIECE, (begin + count - 1) // _PIECE
        drawn = np.concatenate(
            [self._draws.generator(piece).random((2, _PIECE)) for piece in range(first, last + 1)],
            axis=1,
        )
        chosen = slice(begin - first * _PIECE, begin - first * _PIECE + count)
        return drawn[0, chosen], drawn[1, chosen]
