"""Filling memory by value per byte."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from edgegym.profiles.demand import MOST_BYTES, ForestDemand, check_demand
from edgegym.profiles.value import checked_value_s, density
from edgegym.world.network import checked_whole


class Fill(Protocol):
    """Chooses what to keep within a number of bytes."""

    def fill(
        self,
        demand: ForestDemand,
        value_s: NDArray[np.float64],
        room_bytes: int,
        scope: Iterable[int] | None = None,
    ) -> frozenset[int]:
        """Return an ancestor-closed set of at most ``room_bytes``.

        Parameters
        ----------
        demand : ForestDemand
            The forest.
        value_s : ndarray of float64, shape [V]
            Additive value of each vertex, at least 0.
        room_bytes : int
            Bytes that the set may take.
        scope : iterable of int, optional
            Vertices to choose among, by default all. Their ancestors come along and count.

        Raises
        ------
        ValueError
            If the room or a value is out of range, or the scope has other than vertices.
        """
        ...


@dataclass(frozen=True)
class Greedy:
    """Adds the vertex with most value per byte, its missing ancestors included, while one fits.

    Fast and usually near the optimum; :class:`~edgegym.profiles.knapsack.Knapsack` finds it.
    """

    def fill(
        self,
        demand: ForestDemand,
        value_s: NDArray[np.float64],
        room_bytes: int,
        scope: Iterable[int] | None = None,
    ) -> frozenset[int]:
        """Return the set; the lower number first among equals.

        The value of ancestors outside the scope counts for what brings them along.
        """
        check_demand(demand)
        wanted = np.zeros(demand.num_vertices, dtype=np.bool_)
        everything = range(demand.num_vertices)
        wanted[everything if scope is None else demand.checked_vertices("scope:", scope)] = True
        packages = _Packages(demand, checked_value_s(value_s, demand))
        left = checked_whole("room_bytes", room_bytes, 0, MOST_BYTES)
        while True:
            gain = np.where(
                wanted & (packages.bytes <= left), density(packages.value_s, packages.bytes), 0.0
            )
            best = int(np.argmax(gain)) if len(gain) else -1
            if best < 0 or gain[best] <= 0.0:
                return frozenset(packages.held)
            left -= int(packages.bytes[best])
            packages.hold(best)


class _Packages:
    """What each vertex costs and brings with its ancestors that are not held yet."""

    def __init__(self, demand: ForestDemand, value_s: NDArray[np.float64]) -> None:
        self._demand = demand
        self._own_value_s = value_s.tolist()
        self._own_bytes = demand.bytes.tolist()
        self._order, self._end = demand.walk
        self._place = np.empty(demand.num_vertices, dtype=np.int64)
        self._place[self._order] = np.arange(demand.num_vertices)
        self.value_s = np.zeros(demand.num_vertices)
        self.bytes = np.zeros(demand.num_vertices, dtype=np.int64)
        self.held: set[int] = set()
        self._sum_up(self._order.tolist())

    def hold(self, vertex: int) -> None:
        """Hold a vertex and its ancestors."""
        missing = [v for v in self._demand.path(vertex) if v not in self.held]
        self.held.update(missing)
        # Only what hangs on them gets cheaper.
        start = int(self._place[missing[0]])
        self._sum_up(self._order[start : self._end[start]].tolist())

    def _sum_up(self, vertices: list[int]) -> None:
        parent = self._demand.parent
        for vertex in vertices:
            value, size = 0.0, 0
            if vertex not in self.held:
                above = int(parent[vertex])
                if above >= 0:
                    value, size = float(self.value_s[above]), int(self.bytes[above])
                value, size = value + self._own_value_s[vertex], size + self._own_bytes[vertex]
            self.value_s[vertex], self.bytes[vertex] = value, size
