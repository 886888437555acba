"""What a path of placements is worth, what it costs, and whether the bucket can pay for it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegym.analytic.equilibrium import solve_equilibrium
from edgegym.analytic.performance import evaluate
from edgegym.analytic.planning import MigrationPlan, migration_plan
from edgegym.world.network import TieredNetwork

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Counts = tuple[int, ...]

# An epoch whose queues grow without bound is worse than any that is stable.
_UNSTABLE = 1.0


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
    known: dict[tuple[int, Counts], tuple[float, float, FloatArray]] = field(default_factory=dict)
    transitions: dict[tuple[Counts, Counts], MigrationPlan] = field(default_factory=dict)

    def solved(
        self, epoch: int, counts: Counts, near: FloatArray | None = None
    ) -> tuple[float, float, FloatArray]:
        """Return value, coverage and waits ``[S]`` of a placement in an epoch.

        A placement of one node more or fewer than the fleet has is one of a denser or thinner
        network.
        """
        key = (epoch, counts)
        if key not in self.known:
            net = self.networks[epoch]
            nodes = sum(counts)
            density = net.density_per_km2 * nodes / sum(self.start)
            mix = np.array(counts) / nodes
            changed = replace(net, density_per_km2=density, profile_probabilities=mix)
            equilibrium = solve_equilibrium(changed, start=near)
            coverage = evaluate(changed, equilibrium, self.target_s).coverage
            value = coverage if equilibrium.stable else coverage - _UNSTABLE
            self.known[key] = (value, coverage, equilibrium.assumed_wait_s)
        return self.known[key]

    def value(self, epoch: int, counts: Counts, near: FloatArray | None = None) -> float:
        """Return the coverage of a placement in an epoch, less 1 if it is unstable."""
        return self.solved(epoch, counts, near)[0]

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
        results = [self.solved(epoch, counts) for epoch, counts in enumerate(path)]
        counts = np.array(path, dtype=np.int64)
        return PathPlan(
            counts=counts,
            mixes=counts / sum(self.start),
            moves=np.array([plan.moves for plan in plans]),
            bytes=spent,
            coverage=np.array([coverage for _, coverage, _ in results]),
            objective=sum(value for value, _, _ in results) - self.weight * int(spent.sum()),
            evaluations=len(self.known),
            converged=converged,
        )


def path_objective(
    problem: PathProblem, path: Sequence[Counts], before: Sequence[Counts] | None = None
) -> float:
    """Return the objective of a path that the bucket can pay; waits start from those of another."""
    value = -problem.weight * (problem.spent(path) or 0)
    for epoch, counts in enumerate(path):
        near = None if before is None else problem.solved(epoch, before[epoch])[2]
        value += problem.value(epoch, counts, near)
    return value
