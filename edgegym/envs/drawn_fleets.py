"""The fleets of a vector environment whose episodes play different scenarios."""

from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.info import epoch_values
from edgegym.interface.actions import PlacementActions, fleet_action_mask
from edgegym.interface.observation import Observer
from edgegym.simulator import Fleet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from edgegym.envs.settings import Setting, Settings
    from edgegym.interface.layout import ObservationLayout
    from edgegym.threads import Crew

    Ints = NDArray[np.int64]


class _Episode:
    """One fleet with its observer and its reward.

    Parameters
    ----------
    setting : Setting
        What it plays.
    seed : int
        Of the episode.
    observer : Observer
        Of that scenario.
    """

    def __init__(self, setting: "Setting", seed: int, observer: Observer) -> None:
        self.setting = setting
        self.observer = observer
        self.fleet = Fleet(setting.scenario, seed=seed, tier_wait_s=setting.tier_wait_s)
        observer.reset(self.fleet.state)
        warmup_s = setting.scenario.initial.warmup_s
        if warmup_s > 0.0:
            self._advance(warmup_s)

    def _advance(self, seconds: float) -> Any:
        window = self.fleet.advance(seconds)
        self.observer.update(window.nearest_demand, window.seconds)
        return window

    def run_epoch(self) -> dict[str, int | float]:
        """Serve an epoch; return its values, but for what the agent did."""
        window = self._advance(self.setting.scenario.control.epoch_s)
        nodes = int(self.fleet.state.node_count[0])
        reward = self.setting.reward.components(window)
        return epoch_values(window, nodes=nodes, moves=0, illegal_actions=0, reward=reward)


class DrawnFleets:
    """Fleets of scenarios that are drawn for every episode, each in a state of its own.

    To the face of :class:`~edgegym.envs.fleet_group.FleetGroup`.

    Parameters
    ----------
    settings : Settings
        Draws what episodes play.
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
        self._settings = settings
        self._layout = layout
        self._actions = PlacementActions(
            num_nodes=layout.num_nodes, num_profiles=layout.num_profiles
        )
        self._crew = crew
        self._episodes: list[_Episode | None] = [None] * num_envs

    @property
    def settings(self) -> "Sequence[Setting]":
        """What the current episode of each plays."""
        first = self._settings.first
        return tuple(first if one is None else one.setting for one in self._episodes)

    @property
    def moves_per_epoch(self) -> "Ints":
        """Moves that each may start before its epoch runs, ``[B]``."""
        return np.array([one.scenario.control.moves_per_epoch for one in self.settings])

    @property
    def horizon_epochs(self) -> "Ints":
        """Epochs of an episode of each, ``[B]``."""
        return np.array([one.scenario.control.horizon_epochs for one in self.settings])

    @property
    def demand_per_s(self) -> "NDArray[np.float64]":
        """Estimated requests/s nearest to each node, by family, ``[B, N, F]``."""
        shape = self._layout.num_nodes, self._layout.num_families
        return np.stack(
            [
                np.zeros(shape) if one is None else one.observer.demand_per_s
                for one in self._episodes
            ]
        )

    def begin(self, rows: "Ints", seeds: "Sequence[int]") -> None:
        """Start episodes, up to the end of their warm-up."""
        self._crew.each(self._begin_row, zip(rows.tolist(), seeds, strict=True))

    def _begin_row(self, which: tuple[int, int]) -> None:
        b, seed = which
        setting, episode = self._settings.of_episode(seed), self._episodes[b]
        if episode is not None and episode.setting is setting:
            observer = episode.observer
        else:
            reference = self._settings.draw.layout_scenario
            observer = Observer(setting.scenario, self._layout, reference)
        self._episodes[b] = _Episode(setting, seed, observer)

    def _episode(self, b: int) -> _Episode:
        episode = self._episodes[b]
        assert episode is not None
        return episode

    def start_moves(self, rows: "Ints", nodes: "Ints", profiles: "Ints") -> None:
        """Start one legal move in each of some fleets."""
        for b, *move in zip(rows.tolist(), nodes.tolist(), profiles.tolist(), strict=True):
            self._episode(b).fleet.start_move(*move)

    def run_epochs(self, rows: "Ints") -> "dict[str, NDArray[Any]]":
        """Serve an epoch in some fleets: see :meth:`FleetGroup.run_epochs`."""
        done: dict[int, dict[str, int | float]] = {}

        def work(b: int) -> None:
            done[b] = self._episode(b).run_epoch()

        self._crew.each(work, rows.tolist())
        values = [done[b] for b in rows.tolist()]
        return {key: np.array([one[key] for one in values]) for key in values[0]}

    def write(
        self, rows: "Ints", observations: "NDArray[np.float32]", masks: "NDArray[np.bool_]"
    ) -> None:
        """Write observations ``[B, N·K + G]`` and masks ``[B, N·S + 1]`` of some."""

        def work(b: int) -> None:
            episode = self._episode(b)
            fleet = episode.fleet
            observations[b] = episode.observer.observe(fleet.state, fleet.bucket_bytes)
            masks[b] = fleet_action_mask(fleet, self._actions)

        self._crew.each(work, rows.tolist())
