"""PPO with action masks in one file: PyTorch, Gymnasium and edgegym, nothing else.

    pip install edgegym torch
    python cleanrl_style_ppo.py

Everything of the algorithm stands here, in the order in which it happens, to be read and changed:
the native vector environment with masks, generalised advantages that bootstrap where an episode was
truncated, the clipped objective. The network scores every (node, profile) pair from the features of
that node and of the fleet, so its size does not depend on the number of nodes.
"""

import argparse
import time
from dataclasses import dataclass

import gymnasium as gym
import numpy as np
import torch
from torch import nn

import edgegym
from edgegym.interface.layout import ObservationLayout


@dataclass(frozen=True)
class Settings:
    """The hyperparameters."""

    num_envs: int = 16
    rollout_steps: int = 128
    epochs: int = 5
    minibatch: int = 512
    learning_rate: float = 3e-3
    gamma: float = 0.95
    gae_lambda: float = 0.9
    clip: float = 0.2
    entropy_weight: float = 0.003
    value_weight: float = 0.5
    max_grad_norm: float = 0.5


class Agent(nn.Module):
    """One network for all nodes: scores of moves, of the no-op, and a value."""

    def __init__(self, layout: ObservationLayout, width: int = 64) -> None:
        super().__init__()
        self.nodes, self.node_features = layout.num_nodes, layout.node_features
        inputs = layout.node_features + layout.global_features
        self.encoder = nn.Sequential(
            nn.Linear(inputs, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh()
        )
        self.score = nn.Linear(width, layout.num_profiles)
        self.no_op = nn.Linear(width, 1)
        self.value = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1))
        for last in (self.score, self.no_op):
            nn.init.zeros_(last.weight)
        nn.init.zeros_(self.score.bias)
        nn.init.constant_(self.no_op.bias, 2.0)  # at first, mostly do nothing

    def forward(self, observation: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return logits ``[B, N·S + 1]`` and values ``[B]`` of observations ``[B, N·K + G]``."""
        split = self.nodes * self.node_features
        nodes = observation[:, :split].unflatten(1, (self.nodes, self.node_features))
        fleet = observation[:, None, split:].expand(-1, self.nodes, -1)
        encoded = self.encoder(torch.cat((nodes, fleet), dim=2))
        pooled = encoded.mean(dim=1)
        logits = torch.cat((self.score(encoded).flatten(1), self.no_op(pooled)), dim=1)
        return logits, self.value(pooled).squeeze(1)


def distribution(logits: torch.Tensor, mask: torch.Tensor) -> torch.distributions.Categorical:
    """Return the distribution over legal actions."""
    return torch.distributions.Categorical(logits=logits.masked_fill(~mask, -1e8))


def advantages_of(
    rewards: torch.Tensor,
    values: torch.Tensor,
    next_values: torch.Tensor,
    ended: torch.Tensor,
    settings: Settings,
) -> torch.Tensor:
    """Return generalised advantages ``[T, B]``.

    ``next_values`` are those of the states that actions led to. Episodes are only ever truncated,
    so their last state has a value too; but no advantage flows back over the end of an episode.
    """
    result = torch.zeros_like(rewards)
    carried = torch.zeros_like(rewards[0])
    for t in reversed(range(len(rewards))):
        error = rewards[t] + settings.gamma * next_values[t] - values[t]
        carried = error + settings.gamma * settings.gae_lambda * ~ended[t] * carried
        result[t] = carried
    return result


def update(
    agent: Agent,
    optimizer: torch.optim.Optimizer,
    batch: dict[str, torch.Tensor],
    settings: Settings,
) -> None:
    """Improve the agent on a rollout, all tensors flat over steps and environments."""
    size = len(batch["action"])
    for _ in range(settings.epochs):
        for rows in torch.randperm(size).split(settings.minibatch):
            logits, values = agent(batch["observation"][rows])
            policy = distribution(logits, batch["mask"][rows])
            ratio = (policy.log_prob(batch["action"][rows]) - batch["log_prob"][rows]).exp()
            advantage = batch["advantage"][rows]
            advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
            clipped = ratio.clamp(1.0 - settings.clip, 1.0 + settings.clip)
            policy_loss = -torch.min(ratio * advantage, clipped * advantage).mean()
            value_loss = (values - batch["return"][rows]).square().mean()
            loss = policy_loss + settings.value_weight * value_loss
            loss = loss - settings.entropy_weight * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), settings.max_grad_norm)
            optimizer.step()


def train(scenario: str, steps: int, seed: int, settings: Settings) -> list[float]:
    """Train an agent; return the mean reward per step of each rollout."""
    torch.manual_seed(seed)
    world = edgegym.preset(scenario)
    envs = gym.make_vec(
        "edgegym:EdgeGym/Placement-v0",
        num_envs=settings.num_envs,
        vectorization_mode="vector_entry_point",
        autoreset_mode="same_step",
        scenario=world,
    )
    agent = Agent(ObservationLayout.from_scenario(world))
    optimizer = torch.optim.Adam(agent.parameters(), lr=settings.learning_rate)
    observation, info = envs.reset(seed=seed)
    history, started = [], time.perf_counter()
    rollouts = max(1, steps // (settings.num_envs * settings.rollout_steps))
    for rollout in range(rollouts):
        rows: list[dict[str, torch.Tensor]] = []
        for _ in range(settings.rollout_steps):
            seen = torch.as_tensor(observation)
            mask = torch.as_tensor(info["action_mask"])
            with torch.no_grad():
                logits, value = agent(seen)
                policy = distribution(logits, mask)
                action = policy.sample()
            observation, reward, terminated, truncated, info = envs.step(action.numpy())
            ended = terminated | truncated
            after = observation.copy()
            if ended.any():  # there, `observation` is already the first of the next episode
                after[ended] = np.stack(info["final_obs"][ended])
            with torch.no_grad():
                next_value = agent(torch.as_tensor(after))[1]
            rows.append(
                {
                    "observation": seen,
                    "mask": mask,
                    "action": action,
                    "log_prob": policy.log_prob(action),
                    "value": value,
                    "next_value": next_value,
                    "reward": torch.as_tensor(reward, dtype=torch.float32),
                    "ended": torch.as_tensor(ended),
                }
            )
        batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
        batch["advantage"] = advantages_of(
            batch["reward"], batch["value"], batch["next_value"], batch["ended"], settings
        )
        batch["return"] = batch["advantage"] + batch["value"]
        history.append(float(batch["reward"].mean()))
        update(agent, optimizer, {k: v.flatten(0, 1) for k, v in batch.items()}, settings)
        done = (rollout + 1) * settings.num_envs * settings.rollout_steps
        if rollout % 10 == 0 or rollout == rollouts - 1:
            rate = done / (time.perf_counter() - started)
            print(f"{done:8} steps, reward per step {history[-1]:.3f}, {rate:.0f} steps/s")
    envs.close()
    return history


def main() -> None:
    """Train and compare the first returns with the last."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scenario", default="moving-hotspot")
    parser.add_argument("--steps", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    history = train(options.scenario, options.steps, options.seed, Settings())
    fifth = max(1, len(history) // 5)
    print(f"first {np.mean(history[:fifth]):.3f}, last {np.mean(history[-fifth:]):.3f}")


if __name__ == "__main__":
    main()
