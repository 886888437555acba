"""Bursts of an episode: two-state Markov chains that any span of time can be made of by itself.

A chain that leaves calm at rate a and bursts at rate b is the same process as one whose state is
drawn anew, a burst with probability a / (a + b), at the points of a Poisson process of rate a + b:
from calm it then changes at rate (a + b) · a / (a + b) = a, from a burst at rate b. So the state at
t was drawn at the last point before t, whatever happened earlier. Points are drawn per interval of
fixed length from a counter-based generator, and the chain is stationary without a beginning.
"""

import math
from typing import NamedTuple

import numpy as np

from edgegym.simulator.generators import NumberedStream
from edgegym.simulator.state import Bools, Floats
from edgegym.world.compiled import World

# Points expected in an interval, so that hardly any interval has none.
_POINTS = 16.0
MOST_POINTS_PER_SPAN = 65536.0
"""Points of a chain that a block of the request stream may have on average."""


class Bursts(NamedTuple):
    """Level of each family over a span, piecewise constant; empty where there are no bursts."""

    start_s: Floats  # [m] where each piece begins; the first is the span's start
    level: Floats  # [m, F] rate relative to the long-run mean


class Chain:
    """One two-state Markov chain in continuous time.

    Parameters
    ----------
    calm_s, burst_s : float
        Mean sojourns, seconds.
    span_s : float
        Usual length of the spans that will be asked for.
    stream : NumberedStream
        Where its randomness comes from.
    """

    def __init__(self, calm_s: float, burst_s: float, span_s: float, stream: NumberedStream):
        self._points_per_s = 1.0 / calm_s + 1.0 / burst_s
        self._burst_share = burst_s / (calm_s + burst_s)
        self._interval_s = max(_POINTS / self._points_per_s, span_s)
        self._stream = stream
        self._last: tuple[int, Floats, Bools] | None = None

    def _interval(self, number: int) -> tuple[Floats, Bools]:
        """Return the times of an interval's points, and whether a burst begins at each."""
        last = self._last
        if last is not None and last[0] == number:
            return last[1], last[2]
        generator = self._stream.generator(number)
        points = int(generator.poisson(self._points_per_s * self._interval_s))
        times = (number + np.sort(generator.random(points))) * self._interval_s
        bursts = generator.random(points) < self._burst_share
        self._last = (number, times, bursts)
        return times, bursts

    def states(self, start_s: float, end_s: float) -> tuple[Floats, Bools]:
        """Return the chain over a span.

        Parameters
        ----------
        start_s, end_s : float
            The span, seconds.

        Returns
        -------
        times : ndarray
            ``[m]`` the start of the span, then where the state changes before its end.
        bursting : ndarray of bool
            ``[m]`` the state from there on.
        """
        first = math.floor(start_s / self._interval_s)
        last = math.floor(end_s / self._interval_s)
        parts = [self._interval(number) for number in range(first, last + 1)]
        times = np.concatenate([part[0] for part in parts])
        bursts = np.concatenate([part[1] for part in parts])
        earlier = first
        while not len(times) or times[0] > start_s:
            earlier -= 1
            before, drawn = self._interval(earlier)
            times, bursts = np.concatenate((before, times)), np.concatenate((drawn, bursts))
        begin = int(np.searchsorted(times, start_s, side="right")) - 1
        end = max(int(np.searchsorted(times, end_s, side="left")), begin + 1)
        times, bursts = times[begin:end], bursts[begin:end]
        changes = np.flatnonzero(np.append(True, bursts[1:] != bursts[:-1]))
        times = times[changes].copy()
        times[0] = start_s
        return times, bursts[changes]


class BurstStream:
    """All bursts of one episode.

    Parameters
    ----------
    world : World
        The compiled scenario.
    seed : int
        Seed of the episode.
    span_s : float
        Usual length of the spans that will be asked for.
    """

    def __init__(self, world: World, seed: int, span_s: float) -> None:
        self._levels = world.mmpp[:, :2]
        self._member = world.mmpp_member
        families = self._member.shape[1]
        self._none = Bursts(np.empty(0), np.empty((0, families)))
        self._chains = [
            Chain(calm_s, burst_s, span_s, NumberedStream(seed, f"mmpp-{number}"))
            for number, (_, _, calm_s, burst_s) in enumerate(world.mmpp.tolist())
        ]

    def over(self, start_s: float, end_s: float) -> Bursts:
        """Return the levels of the families over a span.

        Parameters
        ----------
        start_s, end_s : float
            The span, seconds.

        Returns
        -------
        Bursts
            Empty where the scenario has no bursts.
        """
        if not self._chains:
            return self._none
        states = [chain.states(start_s, end_s) for chain in self._chains]
        start = states[0][0]
        if len(states) > 1:
            start = np.unique(np.concatenate([times for times, _ in states]))
        level = np.ones((len(start), self._member.shape[1]))
        for (times, bursting), (calm, burst), member in zip(
            states, self._levels.tolist(), self._member, strict=True
        ):
            at = np.searchsorted(times, start, side="right") - 1
            level[:, member] *= np.where(bursting[at], burst, calm)[:, None]
        return Bursts(start, level)


def peak_bursts(world: World) -> Floats:
    """Return the highest level that each family can reach, ``[F]``."""
    return np.where(world.mmpp_member, world.mmpp[:, 1:2], 1.0).prod(axis=0)


def longest_span_s(world: World) -> float:
    """Return how long a block may be for the number of changes in it to stay small."""
    if not len(world.mmpp):
        return math.inf
    return MOST_POINTS_PER_SPAN / float((1.0 / world.mmpp[:, 2:]).sum(axis=1).max())
