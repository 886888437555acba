"""Frames that the library draws while the site is built."""

import io
from typing import Any

import gymnasium

from docs_pages.environments import environment_class, make

_POLICY = "analytic_local"
_MOST_EPOCHS = 40


def scenario_frame(name: str) -> bytes:
    """Return a preset as PNG, a third of an episode under ``analytic_local`` behind it."""
    from edgegym.policies import make_policy

    env: Any = gymnasium.make(
        "edgegym:EdgeGym/Placement-v0", scenario=name, render_mode="rgb_array"
    ).unwrapped
    try:
        policy, state = make_policy(_POLICY, env.scenario), None
        observation, info = env.reset(seed=env.scenario.evaluation_seeds[0])
        for _ in range(min(_MOST_EPOCHS, env.scenario.control.horizon_epochs // 3)):
            action, state = policy.predict(observation, state, action_masks=info["action_mask"])
            observation, _, _, _, info = env.step(action)
        return png(env.render())
    finally:
        env.close()


def environment_frame(env_id: str, steps: int = 30) -> bytes | None:
    """Return a frame of an environment after some epochs; None if it draws none.

    Actions are legal random ones; single requests go where the scenario's router sends them.
    """
    if "rgb_array" not in environment_class(env_id).metadata["render_modes"]:
        return None
    env = make(env_id, render_mode="rgb_array")
    try:
        if hasattr(env, "possible_agents"):
            _agents_play(env, steps)
        elif hasattr(env, "step_by_router"):
            env.reset(seed=1)
            while env.epoch < steps:
                env.step_by_router()
        else:
            _agent_plays(env, steps)
        return png(env.render())
    finally:
        env.close()


def _agent_plays(env: Any, steps: int) -> None:
    """Play an environment with legal random actions."""
    _, info = env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(steps):
        mask = info.get("action_mask")
        action = env.action_space.sample(None if mask is None else mask.astype("int8"))
        _, _, terminated, truncated, info = env.step(action)
        if terminated or truncated:
            break


def _agents_play(env: Any, steps: int) -> None:
    """Play an environment of many agents likewise."""
    _, infos = env.reset(seed=1)
    for number, agent in enumerate(env.agents):
        env.action_space(agent).seed(number)
    for _ in range(steps):
        if not env.agents:
            break
        masks = {agent: infos[agent]["action_mask"].astype("int8") for agent in env.agents}
        *_, infos = env.step({name: env.action_space(name).sample(masks[name]) for name in masks})


def png(pixels: Any) -> bytes:
    """Return an RGB picture ``[height, width, 3]`` as a PNG file."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
