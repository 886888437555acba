"""A reference that sees the future: moves chosen by simulating the very fleet."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from edgegym.policies.base import CounterRandom, Memory
from edgegym.policies.bound import BoundPolicy
from edgegym.policies.lookahead import MoveScores
from edgegym.world.network import checked_number, checked_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from edgegym.policies.view import FleetView
    from edgegym.simulator import Fleet
    from edgegym.world.scenario import Scenario

_LARGEST = 1e9


@dataclass(frozen=True, kw_only=True)
class ClairvoyantSettings:
    """How much is simulated for each decision: ``1 + moves + beam * second_moves`` futures.

    Attributes
    ----------
    horizon_epochs : int
        Epochs that are simulated, H; fewer near the end of the episode.
    moves : int
        First moves that are simulated, besides the no-op.
    beam : int
        First moves after which a second one is tried, one epoch later; 0 for none.
    second_moves : int
        Second moves that are tried after each.
    least_gain : float
        Reward that a move must gain over doing nothing.

    Raises
    ------
    ValueError
        If a value is out of range.
    """

    horizon_epochs: int = 8
    moves: int = 24
    beam: int = 3
    second_moves: int = 12
    least_gain: float = 0.0

    def __post_init__(self) -> None:
        checked_whole("horizon_epochs", self.horizon_epochs, 1, 10**6)
        checked_whole("moves", self.moves, 1, 10**6)
        checked_whole("beam", self.beam, 0, 10**6)
        checked_whole("second_moves", self.second_moves, 1, 10**6)
        checked_number("least_gain", self.least_gain, 0.0, _LARGEST)


class Future(NamedTuple):
    """A first move, or none, and what came of it."""

    action: int
    first: float
    """Reward of the first epoch."""
    rest: float
    """Reward of the other epochs without further moves."""
    fleet: "Fleet"
    """After the first epoch."""

    @property
    def value(self) -> float:
        """Reward of all epochs."""
        return self.first + self.rest


class ClairvoyantPolicy(BoundPolicy):
    """Simulates the true future of its fleet under many moves, and makes the best.

    A fork of the fleet meets the same requests as the fleet itself will. So each decision:

    1. The fleet is forked and does nothing for H epochs: that is the demand to come, and the value
       of the no-op.
    2. The fluid model of ``greedy_lookahead``, with that demand, picks the most promising legal
       moves; each is simulated on a fork for H epochs.
    3. After the best of them (the no-op among them) a second move is tried in the next epoch.
    4. The first move of the best sequence is made, if it gains enough over doing nothing.

    Values are the environment's own rewards. A strong reference, not a bound: it looks only H
    epochs ahead and at two moves, and a lucky policy may do better. It costs some hundred times as
    much as ``analytic_local``; it makes no random choice, and remembers nothing.

    Parameters
    ----------
    scenario : Scenario
        The world.
    settings : ClairvoyantSettings, optional
        How much is simulated.
    seed : int
        Not used.
    """

    def __init__(
        self, scenario: "Scenario", settings: ClairvoyantSettings | None = None, seed: int = 0
    ) -> None:
        super().__init__(scenario, seed)
        self.settings = ClairvoyantSettings() if settings is None else settings
        if not isinstance(self.settings, ClairvoyantSettings):
            raise TypeError(f"settings is {settings!r}: must be ClairvoyantSettings")
        self._epoch_s = float(scenario.control.epoch_s)
        self._scores = MoveScores(scenario, self.settings.horizon_epochs * self._epoch_s)

    def decide(
        self, view: "FleetView", memory: Memory, random: CounterRandom
    ) -> tuple[int, Memory]:
        """Return the first move of the best simulated sequence, or the no-op."""
        del random
        if not view.legal.any():
            return view.no_op, memory
        fleet, epochs = self.env.fleet, self._epochs()
        nothing, demand = self._do_nothing(fleet, epochs, view.no_op)
        futures = [nothing]
        for action in self._promising(fleet, view.legal, demand, self.settings.moves):
            futures.append(self._future(fleet, action, epochs))
        best = max(futures, key=lambda future: future.value)
        action, value = best.action, best.value
        if epochs > 1:
            by_value = sorted(futures, key=lambda future: -future.value)
            for future in by_value[: self.settings.beam]:
                after = future.first + self._best_second(future, demand, epochs - 1)
                if after > value:
                    action, value = future.action, after
        gained = value - nothing.value
        return (action if gained > self.settings.least_gain else view.no_op), memory

    def _epochs(self) -> int:
        """Return the epochs to simulate: no more than the episode has left."""
        left = self.scenario.control.horizon_epochs - self.env.epoch
        horizon = self.settings.horizon_epochs
        return min(horizon, left) if left > 0 else horizon

    def _reward(self, fleet: "Fleet", epochs: int) -> float:
        """Return the reward of some epochs without further moves; the fleet advances."""
        components = self.env.reward.components
        return sum(sum(components(fleet.advance(self._epoch_s))) for _ in range(epochs))

    def _do_nothing(
        self, fleet: "Fleet", epochs: int, no_op: int
    ) -> tuple[Future, "NDArray[np.float64]"]:
        """Return the future without a move, and its requests/s nearest to each node ``[N, F]``."""
        fork = fleet.fork()
        rewards, counts = [], np.zeros(fork.state.window_nearest_demand[0].shape)
        later = fork
        for epoch in range(epochs):
            window = fork.advance(self._epoch_s)
            counts += window.nearest_demand
            rewards.append(sum(self.env.reward.components(window)))
            if epoch == 0:
                later = fork.fork()
        future = Future(no_op, rewards[0], sum(rewards[1:]), later)
        return future, counts / (epochs * self._epoch_s)

    def _future(self, fleet: "Fleet", action: int, epochs: int) -> Future:
        fork = fleet.fork()
        fork.start_move(*divmod(action, self.layout.num_profiles))
        first = self._reward(fork, 1)
        later = fork.fork()
        return Future(action, first, self._reward(fork, epochs - 1), later)

    def _best_second(self, future: Future, demand: "NDArray[np.float64]", epochs: int) -> float:
        """Return the best reward of the remaining epochs with one more move, or without."""
        best = future.rest
        fleet, settings = future.fleet, self.settings
        for action in self._promising(fleet, fleet.legal_moves(), demand, settings.second_moves):
            fork = fleet.fork()
            fork.start_move(*divmod(action, self.layout.num_profiles))
            best = max(best, self._reward(fork, epochs))
        return best

    def _promising(
        self,
        fleet: "Fleet",
        legal: "NDArray[np.bool_]",
        demand: "NDArray[np.float64]",
        most: int,
    ) -> list[int]:
        """Return the legal moves that gain most in the fluid model, best first."""
        gains = self._scores.model.gains(fleet.state, demand)
        score = np.where(legal, self._scores.of(gains, fleet.state.profile[0]), -np.inf).ravel()
        order = np.argsort(-score, kind="stable")[:most]
        return [int(action) for action in order if score[action] > -np.inf]
