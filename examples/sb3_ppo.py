"""Stable-Baselines3's PPO on a fleet of edge GPUs, with Monitor and TensorBoard.

    pip install "edgegym[sb3]"
    python sb3_ppo.py
    tensorboard --logdir runs/sb3_ppo

Shows how an edgegym environment goes into plain Stable-Baselines3: `Monitor` keeps what `info` says
of a whole episode, `EpisodeLog` writes coverage and TTFT to TensorBoard. Plain PPO knows no action
masks, so it also tries moves that are impossible (they do nothing and are counted);
sb3_maskable_ppo.py does without.
"""

import argparse

import gymnasium as gym
from stable_baselines3 import PPO
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

from edgegym.envs.info import INFO_KEYWORDS
from edgegym.sb3.callbacks import EpisodeLog


def make(scenario: str) -> Monitor:
    """Make one environment that logs its episodes."""
    env = gym.make("edgegym:EdgeGym/Placement-v0", scenario=scenario)
    return Monitor(env, info_keywords=INFO_KEYWORDS)


def main() -> None:
    """Train, then say how the last episodes went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="moving-hotspot")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--log", default="runs/sb3_ppo", help="folder for TensorBoard")
    options = parser.parse_args()

    envs = DummyVecEnv([lambda: make(options.scenario) for _ in range(4)])
    model = PPO(
        "MlpPolicy",
        envs,
        n_steps=256,
        batch_size=256,
        gamma=0.95,
        gae_lambda=0.9,
        learning_rate=1e-3,
        tensorboard_log=options.log,
        seed=0,
        device="cpu",
    )
    model.learn(options.steps, callback=EpisodeLog())

    episodes = list(model.ep_info_buffer or ())
    hits = sum(episode["episode_hits"] for episode in episodes)
    decided = sum(episode["episode_decided"] for episode in episodes)
    illegal = sum(episode["episode_illegal_actions"] for episode in episodes)
    print(f"{model.num_timesteps} steps, the last {len(episodes)} episodes:")
    print(f"coverage {hits / max(decided, 1):.3f}, {illegal} moves that were impossible")
    print(f"TensorBoard: {options.log}")
    envs.close()


if __name__ == "__main__":
    main()
