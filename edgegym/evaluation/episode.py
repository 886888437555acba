"""One episode of one policy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from edgegym.envs.placement import PlacementEnv
    from edgegym.simulator import WindowStats


@dataclass(frozen=True)
class Episode:
    """What happened in one episode, without its warm-up."""

    seed: int
    """Seed of the environment's reset."""
    nodes: int
    """Nodes of the fleet."""
    stats: "WindowStats"
    """Requests, TTFT, utilisation and moves."""
    total_reward: float
    """Sum of the rewards."""
    moves: int
    """Moves started."""
    illegal_actions: int
    """Actions that were no legal move."""


class Decider(Protocol):
    """A policy in the form in which an episode asks it."""

    def begin(self) -> None:
        """Forget the last episode."""
        ...

    def action(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the action for an observation."""
        ...


class PredictDecider:
    """Asks an object with ``predict``, as of Stable-Baselines3: masked and deterministic.

    Parameters
    ----------
    policy : object
        Has ``predict(observation, state, episode_start, deterministic)``.
    takes_masks : bool
        Whether ``predict`` has an argument ``action_masks``.
    """

    def __init__(self, policy: Any, takes_masks: bool) -> None:
        self.policy = policy
        self.takes_masks = takes_masks
        self.begin()

    def begin(self) -> None:
        """Forget the last episode."""
        self._state: Any = None
        self.start()

    def start(self) -> None:
        """Begin an episode with the state that the last one left: the policy is to forget it."""
        self._start = np.ones(1, dtype=np.bool_)

    def action(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return the most likely legal action."""
        masks = {"action_masks": info["action_mask"]} if self.takes_masks else {}
        action, self._state = self.policy.predict(
            observation,
            state=self._state,
            episode_start=self._start,
            deterministic=True,
            **masks,
        )
        self._start = np.zeros(1, dtype=np.bool_)
        return action


class FunctionDecider:
    """Asks a function of observation and info.

    Parameters
    ----------
    function : callable
        ``f(observation, info) -> action``; ``info["action_mask"]`` says what is legal.
    """

    def __init__(self, function: Callable[[Any, dict[str, Any]], Any]) -> None:
        self._function = function

    def begin(self) -> None:
        """Do nothing: the function keeps its own memory, if any."""

    def action(self, observation: Any, info: dict[str, Any]) -> Any:
        """Return what the function says."""
        return self._function(observation, info)


def play(env: "PlacementEnv", decider: Decider, seed: int) -> Episode:
    """Play one episode to its end.

    Parameters
    ----------
    env : PlacementEnv
        Reset here.
    decider : Decider
        Chooses the actions.
    seed : int
        Seed of the reset: equal seeds give equal requests, whoever decides.

    Returns
    -------
    Episode
        What happened.
    """
    observation, info = env.reset(seed=seed)
    decider.begin()
    total_reward, truncated = 0.0, False
    while not truncated:
        action = decider.action(observation, info)
        observation, reward, _, truncated, info = env.step(action)
        total_reward += float(reward)
    stats = env.episode_stats
    assert stats is not None, "an episode has at least one epoch"
    return Episode(
        seed=seed,
        nodes=int(env.fleet.state.node_count[0]),
        stats=stats,
        total_reward=total_reward,
        moves=int(info["episode_moves"]),
        illegal_actions=int(info["episode_illegal_actions"]),
    )
