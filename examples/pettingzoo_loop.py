"""The PettingZoo loop: every node decides for itself, and all share one budget.

    pip install "edgegym[marl]"
    python pettingzoo_loop.py

Shows the ParallelEnv of Placement: one agent for each node, masks in `info`, an observation of the
own node and of the fleet that `layout_of_agent` decodes. The agents follow a rule of three lines:
hold the profile of the family that is asked for most around here. It is played beside agents that
ask for nothing and agents that ask for anything.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from edgegym.envs.multi_agent import PlacementParallelEnv, parallel_env

RANDOM = np.random.default_rng(0)
Decide = Callable[[PlacementParallelEnv, Any, Any], int]


def nothing(env: PlacementParallelEnv, observation: Any, mask: Any) -> int:
    """Never ask for a move."""
    return env.layout.num_profiles


def anything(env: PlacementParallelEnv, observation: Any, mask: Any) -> int:
    """Ask for a random legal move, or for none."""
    return int(RANDOM.choice(np.flatnonzero(mask)))


def favourite(env: PlacementParallelEnv, observation: Any, mask: Any) -> int:
    """Ask for the profile that serves the family in greatest demand around this node."""
    deep = [i for i, name in enumerate(env.scenario.profile_names) if name.startswith("deep_")]
    demand = env.layout_of_agent.decode(observation, "near_demand")[0]
    wanted = deep[demand[: len(deep)].argmax()]  # family i is served by profile deep_i
    return wanted if mask[wanted] else env.layout.num_profiles


def play(decide: Decide, epochs: int, seed: int) -> float:
    """Return the coverage of one episode."""
    env = parallel_env(scenario="moving-hotspot", overrides={"control.horizon_epochs": epochs})
    observations, infos = env.reset(seed=seed)
    while env.agents:
        actions = {
            agent: decide(env, observations[agent], infos[agent]["action_mask"])
            for agent in env.agents
        }
        observations, _, _, _, infos = env.step(actions)
    info = infos["node_0"]
    env.close()
    return info["episode_hits"] / info["episode_decided"]


def main() -> None:
    """Play the rules on the same seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=120, help="epochs of an episode")
    parser.add_argument("--episodes", type=int, default=3)
    options = parser.parse_args()
    for decide in (nothing, anything, favourite):
        scores = [play(decide, options.steps, 10_000 + i) for i in range(options.episodes)]
        print(f"{decide.__name__:10} coverage {np.mean(scores):.3f}")


if __name__ == "__main__":
    main()
