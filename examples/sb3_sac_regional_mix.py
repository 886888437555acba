"""SAC on RegionalMix: continuous actions, one target mix of profiles for each region.

    pip install "edgegym[sb3]"
    python sb3_sac_regional_mix.py

Shows the environment for algorithms with continuous actions. The agent says which share of each
region's nodes should hold which profile; the environment plans the cheapest legal moves towards
that. No masks are needed: every action means something.
"""

import argparse

import gymnasium as gym
from stable_baselines3 import SAC
from stable_baselines3.common.monitor import Monitor

from edgegym.envs.info import INFO_KEYWORDS


def main() -> None:
    """Train, then play an episode of a seed that training never saw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="moving-hotspot")
    parser.add_argument("--steps", type=int, default=30_000)
    options = parser.parse_args()

    env = gym.make("edgegym:EdgeGym/RegionalMix-v0", scenario=options.scenario, regions=(2, 2))
    model = SAC(
        "MlpPolicy",
        Monitor(env, info_keywords=INFO_KEYWORDS),
        learning_starts=min(1_000, options.steps // 2),
        train_freq=4,
        gamma=0.95,
        seed=0,
        device="cpu",
    )
    model.learn(options.steps)

    observation, info = env.reset(seed=10_000)
    truncated = False
    while not truncated:
        action, _ = model.predict(observation, deterministic=True)
        observation, _, _, truncated, info = env.step(action)
    print(f"{model.num_timesteps} steps with actions of {env.action_space}")
    print(f"coverage {info['episode_hits'] / info['episode_decided']:.3f}")
    print(f"moved {info['episode_bytes_moved'] / 1e9:.0f} GB in {info['episode_moves']} moves")
    env.close()


if __name__ == "__main__":
    main()
