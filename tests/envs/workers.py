"""What worker processes run: a module of its own, so that they import nothing else."""

import gymnasium as gym
import numpy as np

ENV_ID = "edgegym:EdgeGym/Placement-v0"
ROUTING_ID = "edgegym:EdgeGym/Routing-v0"
SHORT = {"control.horizon_epochs": 3, "initial.warmup_s": 2.0, "control.epoch_s": 1.0}


def run_episode(seed: int, scenario: str = "moving-hotspot") -> bytes:
    """Return the bits of an episode in which the last legal move is made in each epoch."""
    env = gym.make(ENV_ID, scenario=scenario, overrides=SHORT)
    observation, info = env.reset(seed=seed)
    parts = [observation.tobytes()]
    for _ in range(3):
        action = np.flatnonzero(info["action_mask"])[-2:][0]
        observation, reward, _, _, info = env.step(action)
        parts += [observation.tobytes(), np.float64(reward).tobytes()]
    env.close()
    return b"".join(parts)


def run_drawn(draw, seed: int) -> tuple[bytes, dict[str, float]]:
    """Return the first observation and numbers of the second episode of a draw."""
    env = gym.make(ENV_ID, scenario=draw)
    env.reset(seed=seed)
    observation, info = env.reset()
    env.close()
    return observation.tobytes(), {key: info[key] for key in info if key.startswith("scenario")}


def route_episode(seed):
    """Return what a few routed requests give."""
    env = gym.make(ROUTING_ID, overrides={"initial.warmup_s": 1.0})
    observation, _ = env.reset(seed=seed)
    rows = [observation.tobytes()]
    for step in range(40):
        observation, reward, *_, info = env.step(step % env.action_space.n)
        rows.append((observation.tobytes(), reward, info["episode_hits"]))
    env.close()
    return rows


def route_drawn(draw, seed):
    """Return the first observation of an episode of a draw, and which scenario it plays."""
    env = gym.make(ROUTING_ID, scenario=draw, candidates=5)
    observation, info = env.reset(seed=seed)
    env.close()
    return observation.tobytes(), info["scenario"]
