"""``EdgeGym/Placement-v0``: which node should hold which prefixes, one move at a time."""

import os
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from edgegym.envs.base import FleetEnv
from edgegym.envs.info import INFO_KEYWORDS, INFO_MEANING, no_epoch
from edgegym.interface.actions import PlacementActions, fleet_action_mask
from edgegym.interface.layout import placement_layout
from edgegym.interface.observation import Observer
from edgegym.interface.reward import ServiceReward
from edgegym.world.draw import ScenarioDraw
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INFO_KEYWORDS", "INFO_MEANING", "PlacementEnv"]


class PlacementEnv(FleetEnv):
    """Place and migrate the prompt prefixes that edge GPUs hold.

    ## Description

    Users in a region ask large language models on edge nodes. A request is answered sooner where
    the prefix of its prompt is already held as KV cache, but state takes memory from running
    requests, so a node that holds much serves few at once. A router weighs radio distance, residual
    prefill and waiting. The agent changes what nodes hold, within a budget of bytes, while demand
    moves.

    One step is one decision. With ``control.moves_per_epoch`` = 1 a step starts at most one move,
    then the fleet serves traffic for one epoch (``control.epoch_s``). With k > 1 the clock stands
    still until the k-th move or a no-op; then the epoch runs, and its reward comes with that step.

    ## Action Space

    ``Discrete(N·S + 1)``: action ``node * S + profile`` starts the move of a node to a profile; the
    last action moves nothing. N is the most nodes an episode may have, S the number of profiles.

    Legal are moves of a node that is up and receives nothing, to another profile that fits it, at a
    price (the bytes it lacks) that the token bucket holds. ``action_masks()`` and
    ``info["action_mask"]`` (also of reset) say which, as bool ``[N·S + 1]``. An illegal action runs
    the epoch as a no-op and is counted in ``info["illegal_actions"]``. An action that isn't an
    integer of the space raises TypeError or ValueError.

    ## Observation Space

    ``Box(0, 1, (N·K + G,), float32)``: N rows of K node features, then G global ones, described by
    ``env.unwrapped.layout``. Counts and rates are written as ``x / (x + scale)``;
    ``layout.decode(observation, name)`` undoes it.

    | scope | feature | size | value |
    |---|---|---|---|
    | node | profile | S | one-hot of the profile held or being received |
    | node | backlog | 1 | requests in flight, queued and running, per slot |
    | node | receiving | 1 | fraction of the transfer left (1 while the node drains) |
    | node | up | 1 | whether the node serves |
    | node | price | S | bytes of the move over bytes in the bucket; above 1/2: too expensive |
    | node | demand | F | requests/s of each family whose nearest node it is |
    | node | near_demand | F | its weighted mean over the nodes around |
    | node | near_capacity | S | slots per node around, by profile |
    | node | near_backlog | 1 | requests per slot around |
    | global | family_demand | F | requests/s of the family over the long-run requests/s of all |
    | global | profile_share | S | fraction of up nodes with each profile |
    | global | bucket | 1 | fill of the token bucket |
    | global | load | 1 | requests per slot of the whole fleet |
    | global | clock | 2 | with ``observe_clock``: (1 + sine)/2 and (1 + cosine)/2 of the time |

    Rates are estimates from counts (exponential mean, 30 s). Nothing of the true demand or the
    future is shown.

    ## Rewards

    Of the step that runs an epoch: requests decided as hits (first token within the target) over
    the arrivals expected per epoch, minus ``objective.migration_weight`` times the bytes moved over
    the fleet's usable memory. ``objective.kind`` or the argument ``reward`` choose other values of
    the traffic (``squashed_ttft``, ``goodput``). The parts are ``info["reward_service"]`` and
    ``info["reward_migration"]``.

    ## Starting State

    Node positions, demand and the profiles (drawn from ``initial.mix``) follow from the seed alone:
    two policies meet the same requests. The bucket is full. ``initial.warmup_s`` seconds of traffic
    pass before the first observation, unrewarded.

    With a :class:`~edgegym.world.draw.ScenarioDraw`, the seed also decides which scenario the
    episode plays: one of several, with some fields drawn anew. ``info["scenario"]`` is its number,
    ``info["scenario.PATH"]`` what a field was given, ``env.unwrapped.scenario`` the whole.
    Observations are padded to the largest fleet and keep their scales.

    ## Episode End

    A continuing task: ``terminated`` is always False; ``truncated`` after
    ``control.horizon_epochs`` epochs. Stepping on after that goes on with the same episode, with
    ``truncated`` True each time: call ``reset()`` for the next one.

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | scenario | "moving-hotspot" | a preset, a YAML or JSON file, a Scenario, or a ScenarioDraw |
    | overrides | None | changes by dotted path, as ``{"demand.rate_per_node": 4.0}`` |
    | observe_clock | False | append the time of day |
    | reward | None | name or strategy for the traffic's value instead of the scenario's |
    | render_mode | None | "rgb_array" or "human" (a window if there is a display) |

    ```python
    import gymnasium as gym

    env = gym.make("edgegym:EdgeGym/Placement-v0", scenario="toy")
    observation, info = env.reset(seed=0)
    truncated = False
    while not truncated:
        action = env.action_space.sample(info["action_mask"].astype("int8"))
        observation, reward, _, truncated, info = env.step(action)
    print(info["episode_hits"] / info["episode_decided"])
    env.close()
    ```

    ## Vectorized environment

    ``gym.make_vec("edgegym:EdgeGym/Placement-v0", num_envs=64, autoreset_mode="same_step")`` makes
    a native one, :class:`~edgegym.envs.vector.PlacementVectorEnv`: all fleets in one state, stepped
    by threads, with the same results to the bit. ``vectorization_mode="sync"`` and ``"async"`` work
    as well, with fork, forkserver and spawn, in all autoreset modes.

    ## Version History

    * v0: first version.
    """

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, overrides, observe_clock, reward, render_mode)
        self.layout = placement_layout(self.draw, observe_clock)
        self.actions = PlacementActions(
            num_nodes=self.layout.num_nodes, num_profiles=self.layout.num_profiles
        )
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, shape=(self.layout.size,), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Discrete(self.actions.size)
        self._enter(self._setting)

    def _make_observer(self, scenario: Scenario) -> Observer:
        return Observer(scenario, self.layout, self.draw.layout_scenario)

    def step(self, action: Any) -> "tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]":
        """Start a move, or none, and run the epoch when it is due.

        Parameters
        ----------
        action : int
            ``node * S + profile``, or N·S to move nothing.

        Returns
        -------
        observation : ndarray of float32, shape [N·K + G]
        reward : float
        terminated : bool
            Always False.
        truncated : bool
            Whether the horizon is reached.
        info : dict

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        TypeError, ValueError
            If the action isn't an integer of the action space.
        """
        self._require_episode()
        move = self.actions.decode(action)
        if move is None:
            return self._run_epoch(0)
        if not self._start_moves([move]):
            return self._run_epoch(1)
        if self._moves < self.scenario.control.moves_per_epoch:
            # The clock stands still.
            return self._observe(), 0.0, False, False, self._info(no_epoch())
        return self._run_epoch(0)

    def action_masks(self) -> "NDArray[np.bool_]":
        """Return which actions are legal now, bool of shape [N·S + 1] (a fresh array)."""
        return fleet_action_mask(self.fleet, self.actions)

    def _info(self, epoch: dict[str, int | float]) -> dict[str, Any]:
        return {**super()._info(epoch), "action_mask": self.action_masks()}
