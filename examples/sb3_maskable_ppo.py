"""MaskablePPO with one small network for all nodes, compared with the analytic policies.

    pip install "edgegym[sb3]"
    python sb3_maskable_ppo.py

Shows what works best with Stable-Baselines3: `EdgeVecEnv` steps many fleets at once and hands their
action masks on, `NodeScorerPolicy` scores every (node, profile) pair with the same weights, and
`compare` plays the model and the baselines on the same seeds. Some 300,000 steps (two minutes) pass
the analytic policies; the model also plays fleets of other sizes.
"""

import argparse

from sb3_contrib import MaskablePPO

from edgegym.evaluation import compare
from edgegym.sb3 import EdgeVecEnv, NodeScorerPolicy, save_model, scorer_kwargs


def main() -> None:
    """Train, save, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="moving-hotspot")
    parser.add_argument("--steps", type=int, default=300_000)
    parser.add_argument("--seeds", type=int, default=5, help="episodes to compare on")
    parser.add_argument("--model", default="mine.zip", help="where the model is saved")
    options = parser.parse_args()

    envs = EdgeVecEnv.make("edgegym:EdgeGym/Placement-v0", 16, scenario=options.scenario)
    model = MaskablePPO(
        NodeScorerPolicy,
        envs,
        policy_kwargs=scorer_kwargs(envs),
        n_steps=128,
        batch_size=512,
        n_epochs=5,
        gamma=0.95,
        gae_lambda=0.9,
        learning_rate=3e-3,
        ent_coef=0.003,
        seed=0,
        device="cpu",
    )
    model.learn(options.steps)
    save_model(model, options.model)
    envs.close()
    print(f"{model.num_timesteps} steps, saved as {options.model}")

    policies = {"mine": model, "static": "static", "analytic_local": "analytic_local"}
    print(compare(policies, scenario=options.scenario, seeds=range(10_000, 10_000 + options.seeds)))


if __name__ == "__main__":
    main()
