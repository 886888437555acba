"""The fleets of a vector environment, and what observes and values them, behind one face."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from edgegym.interface.batch import BatchObserver
from edgegym.simulator.batch import FleetBatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgegym.envs.settings import Setting, Settings
    from edgegym.interface.layout import ObservationLayout
    from edgegym.threads import Crew

    Ints = NDArray[np.int64]


class FleetGroup(Protocol):
    """B fleets with their observers and rewards."""

    @property
    def settings(self) -> "Sequence[Setting]":
        """What the current episode of each plays, B of them."""
        ...

    @property
    def moves_per_epoch(self) -> "Ints":
        """Moves that each may start before its epoch runs, ``[B]``."""
        ...

    @property
    def horizon_epochs(self) -> "Ints":
        """Epochs of an episode of each, ``[B]``."""
        ...

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, ``[B, N, F]``."""
        ...

    def begin(self, rows: "Ints", seeds: "Sequence[int]") -> None:
        """Start episodes, up to the end of their warm-up."""
        ...

    def start_moves(self, rows: "Ints", nodes: "Ints", profiles: "Ints") -> None:
        """Start one legal move in each of some fleets."""
        ...

    def run_epochs(self, rows: "Ints") -> "dict[str, NDArray[Any]]":
        """Serve an epoch in some fleets.

        Returns
        -------
        dict of ndarray, shape [R]
            The values of ``EPOCH_KEYS``, but for what the agent did.
        """
        ...

    def write(
        self, rows: "Ints", observations: "NDArray[np.float32]", masks: "NDArray[np.bool_]"
    ) -> None:
        """Write observations ``[B, N·K + G]`` and masks ``[B, N·S + 1]`` of some."""
        ...


_OF_WINDOW = (
    "arrivals",
    "decided",
    "hits",
    "first_tokens",
    "rejected",
    "completed",
    "ttft_sum_s",
    "bytes_moved",
)


class AlikeFleets:
    """Fleets of one scenario in one state: what they need is done for all of them at once.

    Parameters
    ----------
    settings : Settings
        Of a draw that always gives the same scenario.
    layout : ObservationLayout
        Of the observations.
    num_envs : int
        B.
    crew : Crew
        Threads that work.
    """

    def __init__(
        self, settings: "Settings", layout: "ObservationLayout", num_envs: int, crew: "Crew"
    ) -> None:
        setting = settings.first
        self._setting = setting
        self._num_envs = num_envs
        self._fleets = FleetBatch(setting.scenario, num_envs, crew, setting.tier_wait_s)
        self._observer = BatchObserver(
            setting.scenario, layout, num_envs, crew, settings.draw.layout_scenario
        )

    @property
    def settings(self) -> "Sequence[Setting]":
        """What each plays: the same."""
        return (self._setting,) * self._num_envs

    @property
    def moves_per_epoch(self) -> "Ints":
        """Moves that each may start before its epoch runs, ``[B]``."""
        return np.full(self._num_envs, self._setting.scenario.control.moves_per_epoch)

    @property
    def horizon_epochs(self) -> "Ints":
        """Epochs of an episode of each, ``[B]``."""
        return np.full(self._num_envs, self._setting.scenario.control.horizon_epochs)

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, ``[B, N, F]``."""
        return self._observer.demand_per_s

    def begin(self, rows: "Ints", seeds: "Sequence[int]") -> None:
        """Start episodes, up to the end of their warm-up."""
        self._fleets.reset(rows.tolist(), seeds)
        self._observer.reset(self._fleets.state, rows)
        warmup_s = self._setting.scenario.initial.warmup_s
        if warmup_s > 0.0:
            self._advance(rows, warmup_s)

    def _advance(self, rows: "Ints", seconds: float) -> Any:
        windows = self._fleets.advance(rows, seconds)
        demand = self._fleets.state.window_nearest_demand
        self._observer.update(rows, demand, windows.seconds)
        return windows

    def start_moves(self, rows: "Ints", nodes: "Ints", profiles: "Ints") -> None:
        """Start one legal move in each of some fleets."""
        self._fleets.start_moves(rows, nodes, profiles)

    def run_epochs(self, rows: "Ints") -> "dict[str, NDArray[Any]]":
        """Serve an epoch in some fleets: see :meth:`FleetGroup.run_epochs`."""
        windows = self._advance(rows, self._setting.scenario.control.epoch_s)
        service, migration = self._setting.reward.batch_components(windows)
        nodes = self._fleets.state.node_count[rows]
        values: dict[str, NDArray[Any]] = {key: getattr(windows, key) for key in _OF_WINDOW}
        return values | {
            "reward_service": service,
            "reward_migration": migration,
            "utilization": windows.utilization.sum(axis=1) / nodes,
            "prefill_utilization": windows.prefill_utilization.sum(axis=1) / nodes,
        }

    def write(
        self, rows: "Ints", observations: "NDArray[np.float32]", masks: "NDArray[np.bool_]"
    ) -> None:
        """Write observations ``[B, N·K + G]`` and masks ``[B, N·S + 1]`` of some."""
        level_bytes = self._fleets.bucket_bytes()
        self._observer.write(rows, self._fleets.state, level_bytes, observations, masks)
