"""Ways to find the best path of placements: a local search, and all paths of a few nodes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, pairwise, product
from math import comb
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.path_problem import Counts, PathProblem, path_objective
from edgegym.world.network import checked_number, checked_whole

FloatArray = NDArray[np.float64]

_MOST = 10**9
_MOST_STATES = 2000
_LEAST_GAIN = 1e-7
_COMPARED = 3


class _Step(NamedTuple):
    """A change of a path: one node of a profile holds others over runs of epochs."""

    gain: float
    source: int
    legs: tuple[tuple[int, int, int], ...]  # first epoch, end, profile


@dataclass(frozen=True)
class PathExchange:
    """Local search: one node holds another profile over a run of epochs, while that helps.

    A step takes one node from profile s to t from epoch a to epoch b; where none helps, by a
    profile in between. Steps are ranked by a first-order estimate: the coverage with one node of s
    fewer and with one node of t more, epoch by epoch. The best that the bucket can pay are solved.
    Starts from moving nothing.

    Where the bucket binds, steps that gain most are not those that gain most for their bytes: the
    search is made with bytes priced higher than they are, then goes on at their true price.

    Attributes
    ----------
    screen : int
        Steps solved before the search gives up.
    max_steps : int
        Most steps of one search.
    surcharges : tuple of float
        Extra prices of a byte to begin with, one search for each; in units of the most coverage
        that any single move at the start brings for a byte. The best search counts.
    """

    screen: int = 12
    max_steps: int = 200
    surcharges: tuple[float, ...] = (0.0, 0.3, 0.6)

    def __post_init__(self) -> None:
        checked_whole("screen", self.screen, 1, _MOST)
        checked_whole("max_steps", self.max_steps, 0, _MOST)
        if not isinstance(self.surcharges, tuple) or not self.surcharges:
            raise ValueError(f"surcharges is {self.surcharges!r}: must be a tuple of numbers")
        for index, surcharge in enumerate(self.surcharges):
            checked_number(f"surcharges[{index}]", surcharge, 0.0, 1.0)

    def search(
        self, problem: PathProblem, report: Callable[[str], None]
    ) -> tuple[list[Counts], bool]:
        """Return the best path found, and whether no screened step improves it."""
        found = []
        hold = [problem.start] * len(problem.networks)
        unit = _best_per_byte(problem, hold)
        for surcharge in self.surcharges:
            dearer = replace(problem, weight=problem.weight + surcharge * unit)
            path, converged = self._climb(dearer, hold, report)
            if dearer.weight > problem.weight:
                path, converged = self._climb(problem, path, report)
            found.append((path_objective(problem, path), path, converged))
        _, path, converged = max(found, key=lambda item: item[0])
        return path, converged

    def _climb(
        self, problem: PathProblem, path: list[Counts], report: Callable[[str], None]
    ) -> tuple[list[Counts], bool]:
        """Return the path at which steps end, and whether they ended by themselves."""
        objective = path_objective(problem, path)
        for step in range(self.max_steps):
            better = self._step(problem, path, objective)
            if better is None:
                return path, True
            objective, path = better
            report(f"step {step + 1}: {objective:.6f}")
        return path, False

    def _step(
        self, problem: PathProblem, path: list[Counts], objective: float
    ) -> tuple[float, list[Counts]] | None:
        """Return the best of the first few better paths, or None."""
        worth = np.array([_exchange_worth(problem, k, counts) for k, counts in enumerate(path)])
        for steps in (_runs(worth), _relays(worth)):
            best = None
            for solved, candidate in enumerate(_payable(problem, path, steps)):
                if solved >= self.screen or (best is not None and solved >= _COMPARED):
                    break
                value = path_objective(problem, candidate, path)
                if value > objective + _LEAST_GAIN:
                    objective = value
                    best = (value, candidate)
            if best is not None:
                return best
        return None


@dataclass(frozen=True)
class PathEnumeration:
    """Exact: dynamic programming over all placements, for few nodes and profiles.

    Keeps, for every placement, the paths that no other beats in both worth and bytes left.
    """

    def search(
        self, problem: PathProblem, report: Callable[[str], None]
    ) -> tuple[list[Counts], bool]:
        """Return the best of all paths."""
        nodes, size = sum(problem.start), len(problem.start)
        states = comb(nodes + size - 1, size - 1)
        if states > _MOST_STATES:
            raise ValueError(
                f"method is an enumeration of {states} placements of {nodes} nodes: at most "
                f"{_MOST_STATES} are possible; use 'exchange'"
            )
        placements = list(_compositions(nodes, size))
        labels: dict[Counts, list[_Label]] = {problem.start: [_Label(0.0, problem.level_bytes, ())]}
        for epoch in range(len(problem.networks)):
            reached: dict[Counts, list[_Label]] = {}
            for (before, kept), after in product(labels.items(), placements):
                price = problem.bytes(before, after)
                for label in kept:
                    if price <= label.level_bytes:
                        gain = problem.value(epoch, after) - problem.weight * price
                        level = problem.left(label.level_bytes, price)
                        new = _Label(label.worth + gain, level, (*label.path, after))
                        reached.setdefault(after, []).append(new)
            labels = {counts: _undominated(found) for counts, found in reached.items()}
            report(f"epoch {epoch + 1} of {len(problem.networks)}: {len(labels)} placements")
        best = max((label for kept in labels.values() for label in kept), key=lambda x: x.worth)
        return list(best.path), True


@dataclass(frozen=True)
class _Label:
    """A way to a placement: its worth so far, the bytes left, and the placements on it."""

    worth: float
    level_bytes: float
    path: tuple[Counts, ...]


def _exchanged(counts: Counts, source: int, sink: int) -> Counts:
    """Return the placement with one node of one profile made one of another."""
    changed = list(counts)
    changed[source] -= 1
    changed[sink] += 1
    return tuple(changed)


def _exchange_worth(problem: PathProblem, epoch: int, counts: Counts) -> FloatArray:
    """Return a first-order estimate of every exchange's gain ``[S, S]``; -inf if impossible."""
    here, wait = problem.solved(epoch, counts)
    size = len(counts)
    loss, gain = np.full(size, -np.inf), np.empty(size)
    for s in range(size):
        one = tuple(int(s == t) for t in range(size))
        more = tuple(n + d for n, d in zip(counts, one, strict=True))
        fewer = tuple(n - d for n, d in zip(counts, one, strict=True))
        gain[s] = problem.value(epoch, more, wait) - here
        if counts[s] > 0 and sum(counts) > 1:
            loss[s] = problem.value(epoch, fewer, wait) - here
        elif counts[s] > 0:  # the only node there is
            loss[s] = 0.0
    worth = loss[:, None] + gain[None, :]
    np.fill_diagonal(worth, -np.inf)
    return worth


def _runs(worth: FloatArray) -> Iterator[_Step]:
    """Yield the steps that hold another profile over a run of epochs, the most promising first."""
    epochs, size, _ = worth.shape
    runs = [(a, b) for a in range(epochs) for b in range(a + 1, epochs + 1)]
    gains = np.array([worth[a:b].sum(axis=0).ravel() for a, b in runs])
    for index in np.argsort(-gains, axis=None, kind="stable"):
        run, exchange = divmod(int(index), size * size)
        source, sink = divmod(exchange, size)
        first, end = runs[run]
        yield _Step(float(gains[run, exchange]), source, ((first, end, sink),))


def _relays(worth: FloatArray) -> Iterator[_Step]:
    """Yield the steps that reach a profile by another one, held in between.

    Where the bucket cannot pay for a large profile at once, it may for its parts.
    """
    epochs, size, _ = worth.shape
    relays = [
        (a, m, b)
        for a in range(epochs)
        for m in range(a + 1, epochs)
        for b in range(m + 1, epochs + 1)
    ]
    if not relays:
        return
    gains = np.array(
        [
            worth[a:m].sum(axis=0)[:, :, None] + worth[m:b].sum(axis=0)[:, None, :]
            for a, m, b in relays
        ]
    )
    same = np.arange(size)
    gains[:, :, same, same] = -np.inf
    for index in np.argsort(-gains, axis=None, kind="stable"):
        relay, source, between, sink = (int(i) for i in np.unravel_index(index, gains.shape))
        first, middle, end = relays[relay]
        legs = ((first, middle, between), (middle, end, sink))
        yield _Step(float(gains[relay, source, between, sink]), source, legs)


def _payable(
    problem: PathProblem, path: list[Counts], steps: Iterator[_Step]
) -> Iterator[list[Counts]]:
    """Yield the paths after steps that may pay and that the bucket can pay."""
    spent = problem.spent(path) or 0
    for step in steps:
        # The bytes that a step saves are at most all that are spent.
        if step.gain + problem.weight * spent <= 0.0:
            return
        moved = list(path)
        for first, end, sink in step.legs:
            for epoch in range(first, end):
                moved[epoch] = _exchanged(path[epoch], step.source, sink)
        bytes_moved = problem.spent(moved)
        if bytes_moved is not None and step.gain > problem.weight * (bytes_moved - spent):
            yield moved


def _best_per_byte(problem: PathProblem, path: list[Counts]) -> float:
    """Return the most coverage per byte that one move at the start brings, to first order."""
    worth = np.sum([_exchange_worth(problem, k, counts) for k, counts in enumerate(path)], axis=0)
    priced = (problem.move_bytes > 0) & (worth > 0.0)
    return float((worth[priced] / problem.move_bytes[priced]).max(initial=0.0))


def _compositions(total: int, parts: int) -> Iterator[Counts]:
    """Yield all tuples of so many whole numbers that add up to a total."""
    for bars in combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        yield tuple(b - a - 1 for a, b in pairwise(edges))


def _undominated(labels: list[_Label]) -> list[_Label]:
    """Return the labels that no other beats in both worth and bytes left."""
    kept: list[_Label] = []
    for label in sorted(labels, key=lambda x: (-x.worth, -x.level_bytes)):
        if not kept or label.level_bytes > kept[-1].level_bytes:
            kept.append(label)
    return kept
