"""Steps of environments per second: ours, 64 of ours as one, and mobile-env's beside them.

mobile-env is a tool that edgegym does not need: the extra ``bench`` installs it.
"""

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import gymnasium

    from edgegym.envs.placement import PlacementEnv
    from edgegym.envs.vector import PlacementVectorEnv

NUM_ENVS = 64
"""Environments of ours that step as one."""


@dataclass(frozen=True)
class EnvSpeed:
    """Medians over episodes of random actions, the reset and the choice of actions included."""

    steps_per_s: float
    """One ``Placement-v0`` of 25 nodes, as it is made by default."""
    requests_per_step: float
    """Requests that such a step serves."""
    vector_steps_per_s: float
    """The same of 64 environments as one, on the available cores, at most 4."""
    mobile_steps_per_s: float | None
    """mobile-env's medium scenario under central control; None where it is not installed."""
    ratio: float | None
    """One environment over mobile-env's, of episodes played in turn."""
    vector_ratio: float | None
    """64 as one over mobile-env's, of episodes played in turn."""


def measure_env_speed(episodes: int) -> EnvSpeed:
    """Play an episode of each environment in turn, again and again.

    The two do different work. A step of ours simulates the requests of five seconds at 25 nodes
    one by one: arrival, routing, queue, service. A step of mobile-env moves fifteen users on by one
    unit of time, connects and releases them, and shares the data rates of seven base stations by a
    formula; it knows no requests and no queues.

    Parameters
    ----------
    episodes : int
        Episodes of each, after one of ours in which kernels may be compiled.

    Returns
    -------
    EnvSpeed
        Medians over episodes.
    """
    from edgegym.envs.placement import PlacementEnv
    from edgegym.envs.vector import PlacementVectorEnv

    rng = np.random.default_rng(0)
    env, vector, mobile = PlacementEnv(), PlacementVectorEnv(NUM_ENVS), mobile_env()
    steps, requests = play(env, rng)
    play_vector(vector, 1, rng)
    rates, vector_rates, mobile_rates = [], [], []
    for _ in range(episodes):
        rates.append(_steps_per_s(lambda: play(env, rng)[0]))
        vector_rates.append(_steps_per_s(lambda: play_vector(vector, steps, rng)))
        if mobile is not None:
            mobile_rates.append(_steps_per_s(lambda: play_mobile(mobile)))
    vector.close()
    return EnvSpeed(
        steps_per_s=statistics.median(rates),
        requests_per_step=requests / steps,
        vector_steps_per_s=statistics.median(vector_rates),
        mobile_steps_per_s=statistics.median(mobile_rates) if mobile_rates else None,
        ratio=_median_ratio(rates, mobile_rates),
        vector_ratio=_median_ratio(vector_rates, mobile_rates),
    )


def mobile_env() -> "gymnasium.Env | None":
    """Return mobile-env's ``mobile-medium-central-v0``; None where mobile-env is not installed."""
    if find_spec("mobile_env") is None:
        return None
    import gymnasium

    # pygame, which it imports, greets on standard output: that of `bench --json`.
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    import mobile_env  # noqa: F401  # pyright: ignore[reportMissingImports]

    env = gymnasium.make("mobile-medium-central-v0", disable_env_checker=True).unwrapped
    env.action_space.seed(0)
    return env


def play(env: "PlacementEnv", rng: np.random.Generator) -> tuple[int, int]:
    """Play an episode with random legal moves; return its steps and requests."""
    _, info = env.reset()
    steps, truncated = 0, False
    while not truncated:
        legal = np.flatnonzero(info["action_mask"])
        _, _, _, truncated, info = env.step(legal[rng.integers(len(legal))])
        steps += 1
    return steps, info["episode_arrivals"]


def play_vector(env: "PlacementVectorEnv", steps: int, rng: np.random.Generator) -> int:
    """Play steps with random legal moves; return those of all environments together."""
    _, infos = env.reset()
    for _ in range(steps):
        masks = infos["action_mask"]
        actions = np.where(masks, rng.random(masks.shape), -1.0).argmax(axis=1)
        infos = env.step(actions)[4]
    return steps * env.num_envs


def play_mobile(env: "gymnasium.Env") -> int:
    """Play an episode of mobile-env with random actions; return its steps."""
    env.reset()
    steps, truncated = 0, False
    while not truncated:
        truncated = env.step(env.action_space.sample())[3]
        steps += 1
    return steps


def _steps_per_s(episode: Callable[[], int]) -> float:
    begin = time.perf_counter()
    steps = episode()
    return steps / (time.perf_counter() - begin)


def _median_ratio(ours: list[float], theirs: list[float]) -> float | None:
    """Return the median ratio of rates measured in turn; None where there are no others."""
    ratios = [a / b for a, b in zip(ours, theirs, strict=False)]
    return statistics.median(ratios) if ratios else None
