"""Check our scenario, then train on our environment with Stable-Baselines3.

    pip install "edgegym[sb3]" .
    python train.py

Shows what a project of its own needs: a scenario in a YAML file and one in code, an environment
derived from edgegym's, both registered when the package is imported, and `check_scenario` before
any training: is it feasible and stable, and does it leave room for an agent to be better than doing
nothing?
"""

import argparse

import gymnasium as gym
from sb3_contrib import MaskablePPO

from campus.scenarios import campus, exam_week
from edgegym.sb3 import NodeScorerPolicy, scorer_kwargs
from edgegym.testing import check_scenario


def main() -> None:
    """Check and train."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=4, help="episodes of the check")
    options = parser.parse_args()

    print(check_scenario(campus(), seeds=range(options.seeds)))

    env = gym.make("campus:Campus/Thrifty-v0", price=0.02)
    model = MaskablePPO(
        NodeScorerPolicy,
        env,
        policy_kwargs=scorer_kwargs(env),
        n_steps=min(1024, options.steps),
        batch_size=128,
        gamma=0.95,
        seed=0,
        device="cpu",
    )
    model.learn(options.steps)
    for scenario in (campus(), exam_week()):
        test = gym.make("campus:Campus/Placement-v0", scenario=scenario)
        observation, info = test.reset(seed=10_000)
        truncated = False
        while not truncated:
            mask = info["action_mask"]
            action, _ = model.predict(observation, deterministic=True, action_masks=mask)
            observation, _, _, truncated, info = test.step(int(action))
        print(f"{scenario.name}: coverage {info['episode_hits'] / info['episode_decided']:.3f}")
        test.close()
    env.close()


if __name__ == "__main__":
    main()
