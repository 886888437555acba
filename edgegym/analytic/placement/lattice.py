"""Mixes whose shares are multiples of a step: those that a fleet of 1/step nodes can have."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from edgegym.analytic.constraints import MixConstraints, cheapest_mix_bytes

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class Lattice:
    """The allowed mixes ``counts / parts``.

    Build with :meth:`within`.

    Attributes
    ----------
    parts : int
        One over the step.
    least, most : int64 [S]
        Bounds on the counts.
    weight : float64 [S]
        As in :class:`MixConstraints`.
    """

    parts: int
    least: IntArray
    most: IntArray
    weight: FloatArray

    @classmethod
    def within(cls, constraints: MixConstraints, step: float) -> "Lattice | None":
        """Return the lattice within constraints; None if it is empty or 1/step no whole number."""
        parts = round(1.0 / step)
        if abs(parts * step - 1.0) > _ROUNDING:
            return None
        least = np.ceil(constraints.minimum * parts - parts * _ROUNDING).astype(np.int64)
        most = np.floor(constraints.maximum * parts + parts * _ROUNDING).astype(np.int64)
        if (least > most).any() or least.sum() > parts or most.sum() < parts:
            return None
        if cheapest_mix_bytes(constraints.weight, least / parts, most / parts) > 1 + _ROUNDING:
            return None
        return cls(parts, least, most, constraints.weight)

    def constraints(self) -> MixConstraints:
        """Return the bounds moved inwards to the lattice, and the budget."""
        return MixConstraints(self.least / self.parts, self.most / self.parts, self.weight)

    def snap(self, mix: FloatArray) -> FloatArray:
        """Return a mix of the lattice near `mix` ``[S]``."""
        counts = np.clip(np.floor(mix * self.parts + 1e-6).astype(np.int64), self.least, self.most)
        while (missing := self.parts - counts.sum()) != 0:
            deficit = mix * self.parts - counts
            if missing > 0:
                counts[np.argmax(np.where(counts < self.most, deficit, -np.inf))] += 1
            else:
                counts[np.argmin(np.where(counts > self.least, deficit, np.inf))] -= 1
        # Over the budget: one node after the other from the heaviest profile to the lightest.
        while self.weight @ counts > self.parts * (1 + _ROUNDING):
            heaviest = np.argmax(np.where(counts > self.least, self.weight, -np.inf))
            lightest = np.argmin(np.where(counts < self.most, self.weight, np.inf))
            counts[heaviest] -= 1
            counts[lightest] += 1
        return counts / self.parts

    def size_without_budget(self) -> int:
        """Return how many mixes the bounds leave."""
        ways = [1] + [0] * self.parts
        for least, most in zip(self.least.tolist(), self.most.tolist(), strict=True):
            up_to = list(accumulate(ways, initial=0))
            ways = [
                up_to[total - least + 1] - up_to[max(total - most, 0)] if total >= least else 0
                for total in range(self.parts + 1)
            ]
        return ways[self.parts]

    def mixes(self) -> Iterator[FloatArray]:
        """Yield all mixes ``[S]``; from one to the next mostly one node changes its profile."""
        room_after = np.concatenate([np.cumsum(self.most[::-1])[::-1][1:], [0]])
        need_after = np.concatenate([np.cumsum(self.least[::-1])[::-1][1:], [0]])
        limit = self.parts * (1 + _ROUNDING)

        def tails(s: int, left: int, used: float, upwards: bool) -> Iterator[tuple[int, ...]]:
            low = max(int(self.least[s]), left - int(room_after[s]))
            high = min(int(self.most[s]), left - int(need_after[s]))
            counts = range(low, high + 1) if upwards else range(high, low - 1, -1)
            for count in counts:
                bytes_used = used + self.weight[s] * count
                if bytes_used > limit:
                    continue
                if s == len(self.least) - 1:
                    yield (count,)
                    continue
                # Back and forth, so that the next tail begins where this one ended.
                for tail in tails(s + 1, left - count, bytes_used, (count - low) % 2 == 0):
                    yield (count, *tail)

        for counts in tails(0, self.parts, 0.0, True):
            yield np.array(counts) / self.parts
