"""The exchange search: nodes go from one profile to another while it helps."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.placement.lattice import Lattice
from edgegym.analytic.placement.objective import SEED_SHARE
from edgegym.analytic.placement.search import LEAST_GAIN, Search
from edgegym.world.network import checked_number, checked_whole

FloatArray = NDArray[np.float64]

_COMPARED = 3
_LEAST_STEP = 1e-8
_MOST = 10**9
_NOTHING = 1e-9
# Steps of a search from scratch, in multiples of the last.
_COARSE = (4, 1)
_LARGEST_COARSE_STEP = 0.25


@dataclass(frozen=True)
class Exchange:
    """Move `step` of the nodes from one profile to another while it helps.

    The S(S-1) exchanges are ranked by a first-order estimate, and the best `screen` of them solved;
    each equilibrium starts from the one before. At a binding budget pairs of exchanges are tried
    too. If one over the step is a whole number N, the search visits mixes of N nodes (floors
    rounded up and caps down), where the constraints leave any.

    From scratch it climbs from several mixes (the most promising of: the network's own, equal
    shares, and as much as is allowed of one profile), first with larger steps. From a `start`
    given to :func:`optimize_placement` it only climbs from there.

    Parameters
    ----------
    step : float
        Mass moved at a time, from 1e-8 to 1: 1/N for a fleet of N nodes.
    screen : int
        Neighbours solved before the search gives up; S(S-1) makes it exhaustive.
    max_moves : int, optional
        Most exchanges of one climb.
    restarts : int
        Further climbs of a search from scratch.

    Raises
    ------
    ValueError
        If a setting breaks its rule.
    """

    step: float = 0.02
    screen: int = 12
    max_moves: int | None = None
    restarts: int = 4

    def __post_init__(self) -> None:
        changes = {
            "step": checked_number("step", self.step, _LEAST_STEP, 1.0),
            "screen": checked_whole("screen", self.screen, 1, _MOST),
            "restarts": checked_whole("restarts", self.restarts, 0, _MOST),
        }
        if self.max_moves is not None:
            changes["max_moves"] = checked_whole("max_moves", self.max_moves, 0, _MOST)
        for name, value in changes.items():
            object.__setattr__(self, name, value)

    def search(self, search: Search) -> bool:
        """Climb from the start, and from scratch from other mixes too."""
        lattice = Lattice.within(search.constraints, self.step)
        constraints = search.constraints if lattice is None else lattice.constraints()

        def settled(mix: FloatArray) -> FloatArray:
            mix = search.constraints.project(mix)
            return mix if lattice is None else lattice.snap(mix)

        if search.warm or self.restarts == 0:
            starts, coarse = [(settled(search.start), search.wait)], (1,)
            search.assess(search.start, search.wait)
        else:
            starts, coarse = self._promising(search, settled), _COARSE
        ended = True
        seen: set[bytes] = set()
        for mix, wait in starts:
            here = True
            for multiple in coarse:
                step = multiple * self.step
                if multiple == 1 or step <= _LARGEST_COARSE_STEP:
                    climb = _Climb(search, constraints, step, self.screen, self.max_moves)
                    mix, wait, here = climb.run(mix, wait, seen)
            ended = ended and here
        return ended

    def _promising(
        self, search: Search, settled: Callable[[FloatArray], FloatArray]
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Return mixes to climb from and their waits, the best first."""
        corners = np.eye(search.size)
        centre = np.full(search.size, 1.0 / search.size)
        found = []
        for anchor in (search.start, centre, *corners):
            mix = settled(anchor)
            if not any(np.array_equal(mix, other) for _, other, _ in found):
                score, wait = search.assess(mix, search.wait)
                found.append((score, mix, wait))
        found.sort(key=lambda entry: -entry[0])
        return [(mix, wait) for _, mix, wait in found[: self.restarts + 1]]


@dataclass(frozen=True, eq=False)
class _Climb:
    """One climb with one step."""

    found: Search
    constraints: MixConstraints
    step: float
    screen: int
    max_moves: int | None

    def run(
        self, mix: FloatArray, wait: FloatArray, seen: set[bytes]
    ) -> tuple[FloatArray, FloatArray, bool]:
        """Exchange mass while it helps; return mix, waits, and whether nothing helps any more.

        It stops where an earlier climb has been with this step: the rest would be the same.
        """
        score, wait = self.found.assess(mix, wait)
        moves = 0
        while self.max_moves is None or moves < self.max_moves:
            mark = np.round(mix, 9).tobytes() + np.float64(self.step).tobytes()
            if mark in seen:
                return mix, wait, True
            seen.add(mark)
            worth, wait = self._worth(mix, wait)
            better = None
            for neighbours in (self._singles, self._pairs):
                better = self._best(neighbours(mix, worth), score, wait)
                if better is not None:
                    break
            if better is None:
                return mix, wait, True
            score, mix, wait = better
            moves += 1
        return mix, wait, False

    def _amount(self, mix: FloatArray, source: int) -> float:
        """Return the mass that an exchange takes: a step, or what the profile's floor leaves."""
        return min(self.step, float(mix[source] - self.constraints.minimum[source]))

    def _moved(self, mix: FloatArray, exchanges: list[tuple[int, int]]) -> FloatArray | None:
        """Return the mix after these exchanges, or None if the constraints forbid it."""
        result = mix.copy()
        for source, sink in exchanges:
            amount = self._amount(result, source)
            if amount <= _NOTHING:
                return None
            result[source] -= amount
            result[sink] += amount
            if result[source] < 1e-12:
                result[sink] += result[source]
                result[source] = 0.0
        return result if self.constraints.allows(result) else None

    def _worth(
        self, mix: FloatArray, wait: FloatArray
    ) -> tuple[dict[tuple[int, int], float], FloatArray]:
        """Return a first-order estimate of every exchange's gain, the best first, and the waits.

        Sources and sinks are judged one by one, by the score with a step of mass taken away or
        added; an exchange is worth the sum of its two. The waits include those that empty profiles
        would have with few nodes.
        """
        seeded = np.maximum(mix, SEED_SHARE)
        score, seeded_wait = self.found.solve(seeded, wait)
        sources = [s for s in range(len(mix)) if self._amount(mix, s) > _NOTHING]
        sinks = [t for t in range(len(mix)) if mix[t] < self.constraints.maximum[t] - _NOTHING]
        probe = self.found.objective.probe
        loss = {s: probe(seeded, seeded_wait, s, -self.step) - score for s in sources}
        gain = {t: probe(seeded, seeded_wait, t, self.step) - score for t in sinks}
        exchanges = [(s, t) for s in sources for t in sinks if s != t]
        exchanges.sort(key=lambda exchange: -(loss[exchange[0]] + gain[exchange[1]]))
        return {(s, t): loss[s] + gain[t] for s, t in exchanges}, seeded_wait

    def _singles(
        self, mix: FloatArray, worth: dict[tuple[int, int], float]
    ) -> Iterator[FloatArray]:
        """Yield the allowed neighbours one exchange away, the most promising first."""
        for exchange in worth:
            if (candidate := self._moved(mix, [exchange])) is not None:
                yield candidate

    def _pairs(self, mix: FloatArray, worth: dict[tuple[int, int], float]) -> Iterator[FloatArray]:
        """Yield the allowed neighbours two exchanges away that a budget keeps apart.

        At a binding budget no single exchange towards a larger profile is allowed: another has to
        free the bytes. Where no budget is set, two exchanges are no more than one after the other.
        """
        weight = self.constraints.weight
        exchanges = list(worth)
        used = np.array([weight[t] - weight[s] for s, t in exchanges])
        value = np.array(list(worth.values()))
        frees, takes = np.flatnonzero(used < 0), np.flatnonzero(used > 0)
        if not len(frees) or not len(takes):
            return
        total = (value[frees][:, None] + value[takes]).ravel()
        for k in np.argsort(-total, kind="stable"):
            first, second = frees[k // len(takes)], takes[k % len(takes)]
            candidate = self._moved(mix, [exchanges[first], exchanges[second]])
            if candidate is not None:
                yield candidate

    def _best(
        self, candidates: Iterator[FloatArray], score: float, wait: FloatArray
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """Return a candidate that beats `score`, if there is one.

        Of the first `screen`: the best of the first few, or beyond them the first that is better.
        """
        best = None
        for solved, candidate in enumerate(islice(candidates, self.screen)):
            if best is not None and solved >= _COMPARED:
                break
            candidate_score, candidate_wait = self.found.assess(candidate, wait)
            if candidate_score > score + LEAST_GAIN:
                score = candidate_score
                best = (score, candidate, candidate_wait)
        return best
