"""``EdgeGym/RegionalMix-v0``: which mix of prefixes each region should have; moves are planned."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from edgegym.envs.base import FleetEnv
from edgegym.envs.info import INFO_KEYWORDS, INFO_MEANING
from edgegym.interface.mix import MixActions, cheapest_moves
from edgegym.interface.region_observation import RegionLayout, RegionObserver
from edgegym.interface.regions import RegionGrid
from edgegym.interface.reward import ServiceReward
from edgegym.world.draw import ScenarioDraw
from edgegym.world.scenario import Scenario

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["INFO_KEYWORDS", "INFO_MEANING", "RegionalMixEnv"]


class RegionalMixEnv(FleetEnv):
    """State the mix of cached prefixes that each region should have; the cheapest moves follow.

    ## Description

    The world of :class:`~edgegym.envs.placement.PlacementEnv` for algorithms with continuous
    actions, and for questions about regions rather than nodes. The area is cut into a grid of equal
    rectangles, rows × columns, and each node belongs to the one it stands in. The agent says which
    share of a region's nodes should hold each profile, and the environment chooses the moves.

    One step is one epoch (``control.epoch_s``). Before it runs, each region's shares become whole
    numbers of its nodes that are up and have a GPU, by largest remainders; profiles that fit none
    of them are left out. Optimal transport then finds the moves of fewest bytes that lead there.
    They start in order of their bytes, the cheapest of all regions first and nodes of lower index
    first among equals: as many as the token bucket pays for, at most ``control.moves_per_epoch``.
    So the limits are those of ``Placement-v0``. The rest of the plan is forgotten: the next epoch
    plans anew, from what is there then.

    ## Action Space

    ``Box(-1, 1, (R·S,), float32)``: for each region (row by row, from the lower left corner) a
    number for each profile. Shares are ``exp(k a)`` over their sum in the region, with
    ``k = ln(199 (S - 1)) / 2``. A profile at 1 beside others at -1 gets 99.5 % of the nodes; one at
    -1 beside another at 1 at most 0.5 %; all equal: equal shares.
    ``env.unwrapped.actions.encode(shares)`` finds the action for given shares.

    Every action of the space is legal. One that is no array of R·S real numbers in [-1, 1] raises
    TypeError or ValueError: agents whose distribution is unbounded clip first. Nodes that are down,
    still receive, or cannot hold what their region should have keep what they hold.

    ## Observation Space

    ``Box(0, 1, (R·K + G,), float32)``: R rows of K region features, then G global ones, described
    by ``env.unwrapped.layout``. Counts and rates are written as ``x / (x + scale)``;
    ``layout.decode(observation, name)`` undoes it.

    | scope | feature | size | value |
    |---|---|---|---|
    | region | nodes | 1 | nodes that are up and have a GPU |
    | region | share | S | fraction of them that hold or receive each profile |
    | region | backlog | 1 | requests in flight, queued and running, per slot |
    | region | receiving | 1 | fraction of them that receive |
    | region | demand | F | requests/s of each family whose nearest node stands there |
    | global | family_demand | F | requests/s of the family over the long-run requests/s of all |
    | global | profile_share | S | fraction of up nodes with each profile |
    | global | bucket | 1 | fill of the token bucket |
    | global | load | 1 | requests per slot of the whole fleet |
    | global | clock | 2 | with ``observe_clock``: (1 + sine)/2 and (1 + cosine)/2 of the time |

    Rates are estimates from counts (exponential mean, 30 s). Nothing of the true demand or the
    future is shown.

    ## Rewards

    As in ``Placement-v0``: requests decided as hits (first token within the target) over the
    arrivals expected per epoch, minus ``objective.migration_weight`` times the bytes moved over the
    fleet's usable memory. ``objective.kind`` or the argument ``reward`` choose other values of the
    traffic (``squashed_ttft``, ``goodput``). The parts are ``info["reward_service"]`` and
    ``info["reward_migration"]``.

    ## Starting State

    As in ``Placement-v0``, to the same bits: node positions, demand and the profiles (drawn from
    ``initial.mix``) follow from the seed alone. The bucket is full. ``initial.warmup_s`` seconds of
    traffic pass before the first observation, unrewarded.

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
    | regions | (2, 2) | rows and columns of the grid of regions |
    | observe_clock | False | append the time of day |
    | reward | None | name or strategy for the traffic's value instead of the scenario's |
    | render_mode | None | "rgb_array" or "human" (a window if there is a display) |

    ```python
    import gymnasium as gym

    env = gym.make("edgegym:EdgeGym/RegionalMix-v0", scenario="toy", regions=(1, 2))
    observation, info = env.reset(seed=0)
    truncated = False
    while not truncated:
        action = env.action_space.sample()
        observation, reward, _, truncated, info = env.step(action)
    print(info["episode_hits"] / info["episode_decided"])
    env.close()
    ```

    ## Vectorized environment

    ``gym.make_vec("edgegym:EdgeGym/RegionalMix-v0", num_envs=8, vectorization_mode="async")`` steps
    copies in processes of their own, with fork, forkserver and spawn; ``"sync"`` steps them one
    after another. All autoreset modes work.

    ## Version History

    * v0: first version.
    """

    def __init__(
        self,
        scenario: "str | os.PathLike[str] | Scenario | ScenarioDraw" = "moving-hotspot",
        overrides: dict[str, Any] | None = None,
        regions: Sequence[int] = (2, 2),
        observe_clock: bool = False,
        reward: "str | ServiceReward | None" = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(scenario, overrides, observe_clock, reward, render_mode)
        self.regions = RegionGrid.from_scenario(self.scenario, regions)
        self.layout = RegionLayout.from_scenario(
            self.draw.layout_scenario, self.regions.size, observe_clock=observe_clock
        )
        self.actions = MixActions(
            num_regions=self.regions.size, num_profiles=self.layout.num_profiles
        )
        self.observation_space = gymnasium.spaces.Box(
            0.0, 1.0, shape=(self.layout.size,), dtype=np.float32
        )
        self.action_space = gymnasium.spaces.Box(
            -1.0, 1.0, shape=(self.actions.size,), dtype=np.float32
        )
        self._enter(self._setting)

    def _make_observer(self, scenario: Scenario) -> RegionObserver:
        # Episodes may play areas of other sizes.
        self.regions = RegionGrid.from_scenario(scenario, (self.regions.rows, self.regions.columns))
        return RegionObserver(
            scenario,
            self.layout,
            self.regions,
            num_nodes=self.draw.max_nodes,
            reference=self.draw.layout_scenario,
        )

    def step(self, action: Any) -> "tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]":
        """Start the cheapest moves towards the target mixes and run one epoch.

        Parameters
        ----------
        action : array_like, shape [R·S]
            Numbers in [-1, 1].

        Returns
        -------
        observation : ndarray of float32, shape [R·K + G]
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
            If the action isn't an element of the action space.
        """
        self._require_episode()
        self._start_moves(self.planned_moves(action))
        return self._run_epoch(0)

    def planned_moves(self, action: Any) -> list[tuple[int, int]]:
        """Return the moves that lead from what is now to the mixes of an action.

        Parameters
        ----------
        action : array_like, shape [R·S]
            Numbers in [-1, 1].

        Returns
        -------
        list of (int, int)
            Nodes and their new profiles in the order in which ``step`` would start them; the
            budget, which may pay for the first few only, is not looked at.

        Raises
        ------
        gymnasium.error.ResetNeeded
            Before the first reset.
        TypeError, ValueError
            If the action isn't an element of the action space.
        """
        fleet = self.fleet
        state, count = fleet.state, int(fleet.state.node_count[0])
        return cheapest_moves(
            self.actions.decode(action),
            self.regions.of(state.node_x[0, :count], state.node_y[0, :count]),
            state.up[0, :count],
            state.receiving[0, :count],
            state.profile[0, :count],
            state.slots[0, :count],
            fleet.world.move_bytes,
        )

    def fork_arguments(self) -> dict[str, Any]:
        """Return what else a fork is made with."""
        regions = (self.regions.rows, self.regions.columns)
        return {**super().fork_arguments(), "regions": regions}
