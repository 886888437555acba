"""Placement as a PettingZoo ``ParallelEnv``: each node decides for itself, the budget is shared.

Needs the extra: ``pip install "edgegym[marl]"``.
"""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import gymnasium
import numpy as np

from edgegym.envs.info import INFO_KEYWORDS, INFO_MEANING
from edgegym.envs.joint_placement import JointPlacement, checked_request
from edgegym.interface.reward import ServiceReward
from edgegym.world.draw import ScenarioDraw
from edgegym.world.scenario import Scenario

try:
    from pettingzoo import ParallelEnv
except ModuleNotFoundError as error:
    if error.name != "pettingzoo":
        raise
    raise ModuleNotFoundError(
        'environments of many agents need PettingZoo: pip install "edgegym[marl]"',
        name="pettingzoo",
    ) from None

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INFO_KEYWORDS", "INFO_MEANING", "PlacementParallelEnv", "parallel_env"]

INFO_MEANING = INFO_MEANING | {"served": "1 if the agent's own move started in the epoch, else 0"}

_Observations = dict[str, "NDArray[np.float32]"]
_Infos = dict[str, dict[str, Any]]


class PlacementParallelEnv(ParallelEnv):
    """Each node asks for the prefixes it wants to hold; a shared budget pays, all share the reward.

    ## Description

    The world of :class:`~edgegym.envs.placement.PlacementEnv` with one agent per node, for
    multi-agent methods and for questions about decentralised control. All agents act at once, once
    an epoch (``control.epoch_s``): each asks for another profile, or for none.

    The budget is one for all: the token bucket, and ``control.moves_per_epoch`` moves in an epoch,
    as in ``Placement-v0``. So some requests may have to stand back. The rule: each epoch, agents
    have their turns in a random order, drawn for that epoch from the episode's seed and never from
    what anybody asked for; on its turn a request is served if the bucket still pays for it and the
    epoch still has a move left, else it is dropped. The bucket is never overdrawn.

    ## Action Space

    ``Discrete(S + 1)`` for each agent: the profile to move to; S asks for nothing.

    ``info[agent]["action_mask"]`` (also of reset) and ``action_mask(agent)``, bool ``[S + 1]``, say
    what an agent may ask for: nothing, always; and, if its node is up and receives nothing, any
    profile but its own that fits it, at a price that the bucket holds before the first turn. Other
    requests are as none and are counted in ``info[agent]["illegal_actions"]``. A legal one that had
    to stand back isn't illegal: ``info[agent]["served"]`` is 1 if the agent's move started, else 0.
    An action that isn't an integer of the space raises TypeError or ValueError; so does a
    dictionary that lacks an agent or has another's.

    ## Observation Space

    ``Box(0, 1, (K + G,), float32)`` for each agent: the row of its own node in the observation of
    ``Placement-v0``, then the global block. ``layout_of_agent`` describes it, and
    ``layout_of_agent.decode(observation, name)`` undoes the scaling. ``layout`` is that of all.
    ``state()``, within ``state_space``, is the observation of ``Placement-v0`` itself, for methods
    that train centrally.

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

    ## Rewards

    The same for all agents, that of ``Placement-v0``: requests decided as hits (first token within
    the target) over the arrivals expected per epoch, minus ``objective.migration_weight`` times the
    bytes moved over the fleet's usable memory. ``objective.kind`` or the argument ``reward`` choose
    other values of the traffic.

    ## Starting State

    As in ``Placement-v0``, to the same bits. The agents are ``node_0`` … ``node_{n-1}`` for the n
    nodes of the episode; ``possible_agents`` goes up to the most nodes that an episode may have.
    Places beyond n have no agent. A node that fails keeps its agent, which can ask for nothing
    until the node is back.

    ## Episode End

    A continuing task: nobody is ever terminated; all agents are truncated after
    ``control.horizon_epochs`` epochs, and ``agents`` is empty then.

    ## Arguments

    | argument | default | meaning |
    |---|---|---|
    | scenario | "moving-hotspot" | a preset, a YAML or JSON file, a Scenario, or a ScenarioDraw |
    | overrides | None | changes by dotted path, as ``{"demand.rate_per_node": 4.0}`` |
    | observe_clock | False | append the time of day |
    | reward | None | name or strategy for the traffic's value instead of the scenario's |
    | render_mode | None | "rgb_array" or "human" (a window if there is a display) |

    ```python
    from edgegym.envs.multi_agent import parallel_env

    env = parallel_env(scenario="toy")
    observations, infos = env.reset(seed=0)
    while env.agents:
        actions = {
            agent: env.action_space(agent).sample(infos[agent]["action_mask"].astype("int8"))
            for agent in env.agents
        }
        observations, rewards, terminations, truncations, infos = env.step(actions)
    print(infos["node_0"]["episode_hits"] / infos["node_0"]["episode_decided"])
    env.close()
    ```

    ## Vectorized environment

    None of its own: wrappers of PettingZoo and SuperSuit apply. For one agent that decides for all
    nodes there is :class:`~edgegym.envs.vector.PlacementVectorEnv`.

    ## Version History

    * v0: first version.
    """

    metadata = {  # noqa: RUF012 - as in ParallelEnv
        "name": "edgegym_placement_v0",
        "render_modes": ["rgb_array", "human"],
        "render_fps": 8,
        "is_parallelizable": True,
    }

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: str | None = None,
    ) -> None:
        self.placement = JointPlacement(scenario, overrides, observe_clock, reward, render_mode)
        """The same world as an environment of one agent; don't step it."""
        self.layout = self.placement.layout
        self.layout_of_agent = self.layout.with_num_nodes(1)
        self.render_mode = render_mode
        self.possible_agents = [f"node_{i}" for i in range(self.layout.num_nodes)]
        self.agents: list[str] = []
        self._index = {agent: i for i, agent in enumerate(self.possible_agents)}
        shape = (self.layout_of_agent.size,)
        self.observation_spaces = {
            agent: gymnasium.spaces.Box(0.0, 1.0, shape=shape, dtype=np.float32)
            for agent in self.possible_agents
        }
        self.action_spaces = {
            agent: gymnasium.spaces.Discrete(self.layout.num_profiles + 1)
            for agent in self.possible_agents
        }
        self.state_space = self.placement.observation_space
        self._state: NDArray[np.float32] | None = None

    def observation_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        """Return the observation space of an agent, the same object each time."""
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> gymnasium.spaces.Space[Any]:
        """Return the action space of an agent, the same object each time."""
        return self.action_spaces[agent]

    @property
    def scenario(self) -> Scenario:
        """The scenario of the current episode; before the first reset, the first that there is."""
        return self.placement.scenario

    @property
    def np_random(self) -> np.random.Generator:
        """The random generator that episodes are drawn from."""
        return self.placement.np_random

    def reset(
        self, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[_Observations, _Infos]:
        """Start an episode.

        Parameters
        ----------
        seed : int, optional
            Starts a new sequence of episodes; without it the sequence goes on.
        options : dict, optional
            Taken because PettingZoo's checker passes some; there are none to choose from.

        Returns
        -------
        observations, infos : dict by agent

        Raises
        ------
        TypeError
            If `options` is neither None nor a mapping.
        """
        if options is not None and not isinstance(options, Mapping):
            raise TypeError(f"reset options are {options!r}: they must be None or a mapping")
        state, info = self.placement.reset(seed=seed)
        count = int(self.placement.fleet.state.node_count[0])
        self.agents = self.possible_agents[:count]
        return self._observations(state), self._infos(info, [])

    def step(
        self, actions: Mapping[str, Any]
    ) -> tuple[_Observations, dict[str, float], dict[str, bool], dict[str, bool], _Infos]:
        """Serve the agents' requests in this epoch's order and run the epoch.

        Parameters
        ----------
        actions : dict of int by agent
            The profile each agent asks for, S for none; of every agent in ``agents``.

        Returns
        -------
        observations, rewards, terminations, truncations, infos : dict by agent

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset and after an episode's end.
        TypeError, ValueError
            If the actions aren't integers of the action space, one for each agent; nothing has
            happened then.
        """
        requests = self._requests(actions)
        served, (state, reward, _, truncated, info) = self.placement.serve(requests)
        agents = self.agents
        returned = (
            self._observations(state),
            dict.fromkeys(agents, reward),
            dict.fromkeys(agents, False),
            dict.fromkeys(agents, truncated),
            self._infos(info, served),
        )
        if truncated:
            self.agents = []
        return returned

    def _requests(self, actions: Mapping[str, Any]) -> "NDArray[np.int64]":
        if not self.agents:
            raise gymnasium.error.ResetNeeded("there is no episode under way: call reset() first")
        if not isinstance(actions, Mapping):
            raise TypeError(f"actions are {actions!r}: they must be a dictionary by agent")
        if lacking := [agent for agent in self.agents if agent not in actions]:
            raise ValueError(f"actions lack {', '.join(lacking)}: every agent acts in each epoch")
        if len(actions) != len(self.agents):
            others = ", ".join(sorted(map(str, set(actions) - set(self.agents))))
            raise ValueError(f"actions are given for {others}: not an agent of this episode")
        none = self.layout.num_profiles
        return np.array([checked_request(agent, actions[agent], none) for agent in self.agents])

    def _observations(self, state: "NDArray[np.float32]") -> _Observations:
        self._state = state
        rows, fleet = self.layout.node_block(state), self.layout.global_block(state)
        return {agent: np.concatenate((rows[i], fleet)) for i, agent in enumerate(self.agents)}

    def _infos(self, info: dict[str, Any], served: list[int]) -> _Infos:
        mask = info.pop("action_mask")
        return {
            agent: info | {"served": int(i in served), "action_mask": self._mask_of(mask, i)}
            for i, agent in enumerate(self.agents)
        }

    def _mask_of(self, mask: "NDArray[np.bool_]", node: int) -> "NDArray[np.bool_]":
        profiles = self.layout.num_profiles
        return np.append(mask[node * profiles : (node + 1) * profiles], True)

    def action_mask(self, agent: str) -> "NDArray[np.bool_]":
        """Return what an agent may ask for now, bool of shape [S + 1] (a fresh array)."""
        return self._mask_of(self.placement.action_masks(), self._index[agent])

    def state(self) -> "NDArray[np.float32]":
        """Return the observation of ``Placement-v0``, the whole fleet's (a fresh array).

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        """
        if self._state is None:
            raise gymnasium.error.ResetNeeded("there is no episode yet: call reset() first")
        return self._state.copy()

    def render(self) -> "NDArray[np.uint8] | None":
        """Return an RGB image ``[540, 960, 3]`` of the fleet; None unless in "rgb_array" mode."""
        return self.placement.render()

    def close(self) -> None:
        """Close the window, if there is one."""
        self.placement.close()

    def get_state(self) -> dict[str, Any]:
        """Return all that the rest of the episode, and later ones, depend on, as plain data."""
        return self.placement.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue from :meth:`get_state` of an environment of the same scenario or draw.

        A state that is refused changes nothing.

        Raises
        ------
        TypeError
            If the state is no mapping.
        ValueError
            If a part of it is missing, or it is of a scenario with other nodes, profiles, types or
            families.
        """
        self.placement.set_state(state)
        self._resume()

    def _resume(self) -> None:
        """Bring agents and global state up to date with the world."""
        placement = self.placement
        self.agents, self._state = [], None
        if not placement.started:
            return
        self._state = placement.observation()
        if placement.epoch < self.scenario.control.horizon_epochs:
            self.agents = self.possible_agents[: int(placement.fleet.state.node_count[0])]

    def fork(self) -> Self:
        """Return an independent environment that continues identically (without a window)."""
        twin = type(self)(self.placement.draw, **self.placement.fork_arguments())
        twin.set_state(self.get_state())
        return twin


def parallel_env(**arguments: Any) -> PlacementParallelEnv:
    """Return the environment, under the name that PettingZoo's tools look for.

    Parameters
    ----------
    **arguments
        Of :class:`PlacementParallelEnv`.
    """
    return PlacementParallelEnv(**arguments)
