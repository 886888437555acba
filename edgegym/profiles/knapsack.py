"""Filling memory with as much value as it can hold: the tree knapsack, exactly."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles.demand import ForestDemand
from edgegym.profiles.greedy import Greedy
from edgegym.profiles.value import checked_value_s, density
from edgegym.world.network import checked_whole

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

_ROUNDING = 1e-12


@dataclass(frozen=True)
class Knapsack:
    """The ancestor-closed set of most value within the bytes.

    Walks the forest depth first. At each vertex a partial choice either takes it and goes on to the
    next, or leaves it and its whole subtree out. Of the partial choices that stand at the same
    vertex only those are kept that no other beats in both bytes and value, and that can still beat
    the greedy choice when what is left of the forest could be split at will (a bound from above).
    Neither drops an optimum; bytes stay integers. Of equal sets the one with fewest bytes wins.
    """

    most_choices: int = 5_000_000
    """Partial choices kept in all. Beyond it the choice is refused, never approximated."""

    def __post_init__(self) -> None:
        checked_whole("most_choices", self.most_choices, 1, 10**9)

    def fill(
        self,
        demand: ForestDemand,
        value_s: FloatArray,
        room_bytes: int,
        scope: Iterable[int] | None = None,
    ) -> frozenset[int]:
        """Return the set; only what lies in the scope counts as value.

        Raises
        ------
        ValueError
            If more partial choices must be compared than ``most_choices``, the room or a value is
            out of range, or the scope has other than vertices.
        """
        values = checked_value_s(value_s, demand)
        if scope is not None:
            outside = np.ones(demand.num_vertices, dtype=np.bool_)
            outside[demand.checked_vertices("scope:", scope)] = False
            values[outside] = 0.0
        greedy = Greedy().fill(demand, values, room_bytes)
        search = _Search(demand, values, room_bytes, float(values[list(greedy)].sum()))
        return search.run(self.most_choices)


@dataclass(frozen=True)
class _Choices:
    """Partial choices at one place of the walk, in order of bytes."""

    bytes: IntArray
    value: FloatArray
    origin: IntArray
    """Twice the place that they come from, plus 1 if its vertex was taken; -1 at the start."""
    index: IntArray
    """Which choice of that place."""

    def undominated(self) -> "_Choices":
        order = np.lexsort((-self.value, self.bytes))
        value = self.value[order]
        best_before = np.maximum.accumulate(np.concatenate(([-np.inf], value)))[:-1]
        return self.only(order[value > best_before])

    def only(self, kept: IntArray | NDArray[np.bool_]) -> "_Choices":
        return _Choices(self.bytes[kept], self.value[kept], self.origin[kept], self.index[kept])


class _Search:
    """One walk through the forest.

    Place i is that of the i-th vertex in depth-first order. A choice that stands at a place has
    taken all ancestors of its vertex.
    """

    def __init__(
        self, demand: ForestDemand, value_s: FloatArray, room_bytes: int, reached: float
    ) -> None:
        self._order, self._end = demand.walk
        self._bytes = demand.bytes[self._order]
        self._value = value_s[self._order]
        self._room = room_bytes
        self._reached = reached
        self._by_density = np.argsort(-density(self._value, self._bytes), kind="stable")

    def run(self, most_choices: int) -> frozenset[int]:
        count = len(self._order)
        arriving: list[list[_Choices]] = [[] for _ in range(count + 1)]
        arriving[0].append(
            _Choices(
                np.zeros(1, dtype=np.int64),
                np.zeros(1),
                np.full(1, -1, dtype=np.int64),
                np.zeros(1, dtype=np.int64),
            )
        )
        standing: list[_Choices] = []
        total = 0
        for place in range(count + 1):
            here = self._promising(_joined(arriving[place]), place)
            arriving[place] = []
            standing.append(here)
            total += len(here.bytes)
            if total > most_choices:
                raise ValueError(
                    f"most_choices is {most_choices}: must be larger for an exact choice among "
                    f"{count} vertices, or use Greedy"
                )
            if place < count:
                self._go_on(here, place, arriving)
        return self._traced_back(standing)

    def _go_on(self, here: _Choices, place: int, arriving: list[list[_Choices]]) -> None:
        index = np.arange(len(here.bytes))
        left_out = np.full(len(index), 2 * place)
        arriving[self._end[place]].append(_Choices(here.bytes, here.value, left_out, index))
        size = here.bytes + self._bytes[place]
        taken = _Choices(size, here.value + self._value[place], left_out + 1, index)
        arriving[place + 1].append(taken.only(size <= self._room))

    def _promising(self, choices: _Choices, place: int) -> _Choices:
        """Return the choices that can still be, or lead to, a best one."""
        kept = choices.undominated()
        rest = self._by_density[self._by_density >= place]
        free = self._bytes[rest] == 0
        sized = rest[~free]
        size = np.concatenate(([0.0], np.cumsum(self._bytes[sized], dtype=np.float64)))
        value = np.concatenate(([0.0], np.cumsum(self._value[sized])))
        left = (self._room - kept.bytes) * (1.0 + _ROUNDING)
        at_most = kept.value + self._value[rest[free]].sum() + np.interp(left, size, value)
        return kept.only(at_most >= self._reached * (1.0 - _ROUNDING))

    def _traced_back(self, standing: list[_Choices]) -> frozenset[int]:
        found = []
        place, index = len(standing) - 1, int(np.argmax(standing[-1].value))
        while place > 0:
            origin = int(standing[place].origin[index])
            index = int(standing[place].index[index])
            place, taken = divmod(origin, 2)
            if taken:
                found.append(int(self._order[place]))
        return frozenset(found)


def _joined(parts: list[_Choices]) -> _Choices:
    return _Choices(
        np.concatenate([part.bytes for part in parts]),
        np.concatenate([part.value for part in parts]),
        np.concatenate([part.origin for part in parts]),
        np.concatenate([part.index for part in parts]),
    )
