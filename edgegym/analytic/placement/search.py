"""What every search of a mix shares: counting, the best so far, progress."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.constraints import MixConstraints
from edgegym.analytic.placement.objective import Objective

FloatArray = NDArray[np.float64]
Report = Callable[[str], None]

# Differences below this are the solver's rounding.
LEAST_GAIN = 1e-7
_REPORT_EVERY_S = 1.0


def check_report(report: object) -> None:
    """Refuse what cannot be told how far a search is."""
    if not (report is None or callable(report)):
        raise TypeError(f"report is {report!r}: must be a function of a line of text, or None")


@dataclass(eq=False)
class Search:
    """One search in progress: a strategy asks it for scores, and it keeps the best mix.

    Attributes
    ----------
    objective : Objective
    constraints : MixConstraints
    start : float64 [S]
        An allowed mix.
    wait : float64
        Waits to solve the start from.
    warm : bool
        Whether the start is a good mix already, so that a local search will do.
    report : callable, optional
        Called with a line of text about once a second.
    total : int
        Mixes that the strategy is going to solve; 0 if it cannot know.
    evaluations : int
        Mixes solved.
    score : float
        Of the best allowed mix so far.
    mix, best_wait : float64
        That mix ``[S]`` and its waits.
    history : list of (int, float)
        Evaluations and score at each improvement.
    """

    objective: Objective
    constraints: MixConstraints
    start: FloatArray
    wait: FloatArray
    warm: bool
    report: Report | None = None
    total: int = 0
    evaluations: int = 0
    score: float = -np.inf
    mix: FloatArray = field(init=False)
    best_wait: FloatArray = field(init=False)
    history: list[tuple[int, float]] = field(default_factory=list)
    _told: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        self.mix = self.start
        self.best_wait = self.wait

    @property
    def size(self) -> int:
        """Number of profiles."""
        return len(self.start)

    def run(self, strategy: "Strategy") -> bool:
        """Search, and return whether the strategy ended by its own rule."""
        converged = strategy.search(self)
        self.tell()
        return converged

    def improvements(self) -> FloatArray:
        """Return the history as an array ``[K, 2]``."""
        return np.array(self.history, dtype=np.float64).reshape(-1, 2)

    def assess(self, mix: FloatArray, wait: FloatArray) -> tuple[float, FloatArray]:
        """Return score and waits of an allowed mix, and keep it if it is the best so far."""
        score, wait = self.solve(mix, wait)
        if score > self.score + LEAST_GAIN:
            self.score, self.mix, self.best_wait = score, mix, wait
            self.history.append((self.evaluations, score))
        if self.report is not None and time.monotonic() - self._told >= _REPORT_EVERY_S:
            self.tell()
        return score, wait

    def solve(self, mix: FloatArray, wait: FloatArray) -> tuple[float, FloatArray]:
        """Return score and waits of shares that need be no allowed mix."""
        self.evaluations += 1
        return self.objective.assess(mix, wait)

    def tell(self) -> None:
        """Report how far the search is."""
        if self.report is None:
            return
        self._told = time.monotonic()
        count = f"{self.evaluations}" + (f" of {self.total}" if self.total else "")
        best = f"best coverage {self.score:.4f}" if self.score >= 0 else "none carries the load yet"
        self.report(f"{count} mixes solved, {best}")


@runtime_checkable
class Strategy(Protocol):
    """A way to search: a frozen dataclass of settings."""

    def search(self, search: Search) -> bool:
        """Assess mixes; return whether the search ended by its own rule, not at a limit."""
        ...
