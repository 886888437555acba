"""What a path of placements is worth, what it costs, and whether the bucket can pay for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.equilibrium import solve_equilibrium
from edgegym.analytic.performance import evaluate
from edgegym.analytic.placement.objective import CoverageObjective
from edgegym.analytic.planning import MigrationPlan, migration_plan
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Counts = tuple[int, ...]

# An epoch whose queues grow without bound is worse than any that is stable.
_UNSTABLE = 1.0
# Of a placement whose equilibrium is not found.
_WORST = -10.0


@dataclass(frozen=True, eq=False)
class PathPlan:
    """A path of placements over K epochs and what it is worth.

    Attributes
    ----------
    counts : int64 [K, S]
        Nodes that hold each profile in each epoch.
    mixes : float64 [K, S]
        The same as shares.
    moves : int64 [K, S, S]
        Moves at the start of each epoch, from profile to profile; the diagonals are zero.
    bytes : int64 [K]
        Bytes that these moves transfer.
    coverage : float64 [K]
        Coverage of each epoch in its equilibrium.
    objective : float
        Σ coverage − weight · Σ bytes, less 1 for each epoch without a stable equilibrium.
    evaluations : int
        Equilibria solved.
    converged : bool
        Whether the method came to its end, rather than to its limit of steps.
    """

    counts: IntArray
    mixes: FloatArray
    moves: IntArray
    bytes: IntArray
    coverage: FloatArray
    objective: float
    evaluations: int
    converged: bool


@dataclass(frozen=True, eq=False)
class PathProblem:
    """What a method plans for; remembers the coverage of every placement it was asked for."""

    networks: tuple[TieredNetwork, ...]
    target_s: ArrayLike
    start: Counts
    move_bytes: IntArray
    level_bytes: float
    budget_bytes: float
    burst_bytes: float
    weight: float
    objectives: tuple[CoverageObjective, ...]
    known: dict[tuple[int, Counts], tuple[float, FloatArray]] = field(default_factory=dict)
    transitions: dict[tuple[Counts, Counts], MigrationPlan] = field(default_factory=dict)

    def solved(
        self, epoch: int, counts: Counts, near: FloatArray | None = None
    ) -> tuple[float, FloatArray]:
        """Return score and waits ``[S]`` of a placement in an epoch, to a search's accuracy.

        A placement of one node more or fewer than the fleet has is one of a denser or thinner
        network.
        """
        key = (epoch, counts)
        if key not in self.known:
            objective = self.objectives[epoch]
            shares = np.array(counts) / sum(self.start)
            wait = objective.first_wait() if near is None else near
            score, wait = objective.assess(shares, wait)
            self.known[key] = (max(score, _WORST), wait)
        return self.known[key]

    def value(self, epoch: int, counts: Counts, near: FloatArray | None = None) -> float:
        """Return the coverage of a placement in an epoch; far less where it is unstable."""
        return self.solved(epoch, counts, near)[0]

    def exact(self, epoch: int, counts: Counts) -> tuple[float, bool]:
        """Return the coverage of a placement at full accuracy, and whether it is stable."""
        net = self.networks[epoch].with_mix(np.array(counts) / sum(counts))
        equilibrium = solve_equilibrium(net, start=self.solved(epoch, counts)[1])
        return evaluate(net, equilibrium, self.target_s).coverage, equilibrium.stable

    def transition(self, before: Counts, after: Counts) -> MigrationPlan:
        """Return the moves of fewest bytes from one placement to another."""
        key = (before, after)
        if key not in self.transitions:
            self.transitions[key] = migration_plan(before, after, self.move_bytes)
        return self.transitions[key]

    def bytes(self, before: Counts, after: Counts) -> int:
        """Return the bytes of that transition."""
        return 0 if before == after else self.transition(before, after).bytes

    def left(self, level_bytes: float, spent_bytes: float) -> float:
        """Return what the bucket holds an epoch later."""
        return min(level_bytes - spent_bytes + self.budget_bytes, self.burst_bytes)

    def spent(self, path: Sequence[Counts]) -> int | None:
        """Return the bytes of a whole path, or None if the bucket cannot pay for it."""
        total, level, before = 0, self.level_bytes, self.start
        for after in path:
            price = self.bytes(before, after)
            if price > level:
                return None
            total += price
            level = self.left(level, price)
            before = after
        return total

    def plan(self, path: Sequence[Counts], converged: bool) -> PathPlan:
        """Return a path with all that is to be said about it."""
        steps = zip((self.start, *path[:-1]), path, strict=True)
        plans = [self.transition(before, after) for before, after in steps]
        spent = np.array([plan.bytes for plan in plans], dtype=np.int64)
        results = [self.exact(epoch, counts) for epoch, counts in enumerate(path)]
        unstable = sum(not stable for _, stable in results)
        total = sum(coverage for coverage, _ in results) - _UNSTABLE * unstable
        counts = np.array(path, dtype=np.int64)
        return PathPlan(
            counts=counts,
            mixes=counts / sum(self.start),
            moves=np.array([plan.moves for plan in plans]),
            bytes=spent,
            coverage=np.array([coverage for coverage, _ in results]),
            objective=total - self.weight * int(spent.sum()),
            evaluations=len(self.known),
            converged=converged,
        )


def path_objective(
    problem: PathProblem, path: Sequence[Counts], before: Sequence[Counts] | None = None
) -> float:
    """Return the objective of a path that the bucket can pay; waits start from those of another."""
    value = -problem.weight * (problem.spent(path) or 0)
    for epoch, counts in enumerate(path):
        near = None if before is None else problem.solved(epoch, before[epoch])[1]
        value += problem.value(epoch, counts, near)
    return value
