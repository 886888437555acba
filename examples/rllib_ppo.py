"""RLlib's PPO with action masks.

    pip install "edgegym[sb3]" "ray[rllib]"
    python rllib_ppo.py

Shows the way into RLlib (new API stack): the environment is registered with Ray by a function that
makes it, observation and mask reach the module as one dictionary, and the module is edgegym's
network that scores every (node, profile) pair. Ray's workers import edgegym by themselves.
`ray[rllib]` wants gymnasium 1.2.2, which edgegym works with.
"""

import argparse
from typing import Any

import gymnasium as gym
import numpy as np
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.columns import Columns
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.rllib.core.rl_module.torch import TorchRLModule
from ray.tune.registry import register_env

from edgegym.sb3 import scorer_kwargs
from edgegym.sb3.decisions import log_probs
from edgegym.sb3.scorer import NodeScorer


class MaskInObservation(gym.Wrapper):
    """Puts the mask beside the observation, where RLlib's module looks for it."""

    def __init__(self, env: gym.Env) -> None:
        super().__init__(env)
        legal = gym.spaces.Box(0.0, 1.0, (env.action_space.n,), np.float32)
        self.observation_space = gym.spaces.Dict(
            {"action_mask": legal, "observations": env.observation_space}
        )

    def reset(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(**kwargs)
        return self._with_mask(observation, info), info

    def step(self, action: Any) -> tuple[dict[str, Any], Any, bool, bool, dict[str, Any]]:
        """Run an epoch."""
        observation, *rest, info = self.env.step(action)
        return (self._with_mask(observation, info), *rest, info)

    def _with_mask(self, observation: Any, info: dict[str, Any]) -> dict[str, Any]:
        mask = info["action_mask"].astype(np.float32)
        return {"action_mask": mask, "observations": observation}


class MaskedScorer(TorchRLModule, ValueFunctionAPI):
    """edgegym's network as a module of RLlib; impossible moves have probability zero."""

    def setup(self) -> None:
        """Build the network."""
        self.scorer = NodeScorer(**self.model_config["scorer"])

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        seen = batch[Columns.OBS]
        decisions = self.scorer.decisions(seen["observations"])
        return {Columns.ACTION_DIST_INPUTS: log_probs(*decisions, seen["action_mask"])}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Return the values of observations."""
        return self.scorer.values(batch[Columns.OBS]["observations"]).squeeze(-1)


def make(config: dict[str, Any]) -> gym.Env:
    """Make an environment from RLlib's `env_config`."""
    return MaskInObservation(gym.make("edgegym:EdgeGym/Placement-v0", **config))


def main() -> None:
    """Train and print the returns."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="moving-hotspot")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=4_000, help="steps of an iteration")
    parser.add_argument("--runners", type=int, default=1, help="processes that play; 0: this one")
    options = parser.parse_args()

    ray.init(include_dashboard=False, num_cpus=max(1, options.runners))
    register_env("placement", make)
    sizes = scorer_kwargs(make({"scenario": options.scenario}))
    config = (
        PPOConfig()
        .environment("placement", env_config={"scenario": options.scenario})
        .env_runners(num_env_runners=options.runners, num_envs_per_env_runner=4)
        .training(
            train_batch_size_per_learner=options.batch,
            minibatch_size=min(256, options.batch),
            num_epochs=5,
            gamma=0.95,
            lambda_=0.9,
            lr=1e-3,
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(module_class=MaskedScorer, model_config={"scorer": sizes})
        )
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    done = 0
    while done < options.steps:
        result = algorithm.train()
        done = int(result["num_env_steps_sampled_lifetime"])
        returns = result["env_runners"].get("episode_return_mean", float("nan"))
        print(f"{done} steps, mean return of the last episodes {returns:.1f}")
    algorithm.stop()
    ray.shutdown()


if __name__ == "__main__":
    main()
