"""The scalars that every step of the routing environment reports in ``info``."""

from typing import NamedTuple

from edgegym.interface.routing_observation import TOTALS
from edgegym.simulator.state import TICKS_PER_S


class StepCounts(NamedTuple):
    """What the fleet did between two requests; what a reward strategy is given."""

    arrivals: int = 0
    decided: int = 0
    hits: int = 0
    first_tokens: int = 0
    rejected: int = 0
    completed: int = 0
    ttft_sum_s: float = 0.0
    goodput_tokens_sum: int = 0
    fetches: int = 0
    to_origin: int = 0
    sent_again: int = 0


STEP_KEYS = (
    *StepCounts._fields,
    "elapsed_s",
    "illegal_actions",
    "reward_service",
    "reward_rejections",
)
"""Values of a step."""

INFO_KEYWORDS = tuple(f"episode_{key}" for key in STEP_KEYS)
"""Running values of the episode, warm-up excluded. For Stable-Baselines3's
``Monitor(env, info_keywords=INFO_KEYWORDS)``, which reads only an episode's last step."""

INFO_SPAN = "of the time since the step before, or since the warm-up (of `reset`: zero)"
"""What the values of a step are about."""

INFO_MEANING = {
    "arrivals": "requests that came: the one that was routed",
    "decided": "requests whose target was met or missed, or that were rejected",
    "hits": "requests whose first token came within the target",
    "first_tokens": "requests that got their first token",
    "rejected": "requests that were rejected, by the agent or because no node could take them",
    "completed": "requests that were finished",
    "ttft_sum_s": "sum of the times to first token, seconds; over `first_tokens` it is the mean",
    "goodput_tokens_sum": "output tokens of the hits",
    "fetches": "fetches of prefix state that began",
    "to_origin": "times that a request was sent to the origin",
    "sent_again": "requests sent again because their node failed",
    "elapsed_s": "time since the step before, seconds",
    "illegal_actions": "actions that were not legal: the scenario's router decided",
    "reward_service": "part of the reward that traffic earned",
    "reward_rejections": "part of the reward that rejections cost, negative or zero",
}
"""What each key says, for the documentation; the keys of ``STEP_KEYS``."""

_TTFT = TOTALS.index("ttft_ticks")
_NOTHING = (*StepCounts(), 0.0, 0, 0.0, 0.0)


def step_counts(before: list[int], now: list[int]) -> StepCounts:
    """Return what lies between two totals of the observer."""
    counts: list[int | float] = [late - early for early, late in zip(before, now, strict=True)]
    counts[_TTFT] /= TICKS_PER_S
    return StepCounts(*counts)  # type: ignore[arg-type]


def no_step() -> dict[str, int | float]:
    """Return the values of a step in which nothing happened."""
    return dict(zip(STEP_KEYS, _NOTHING, strict=True))


def no_episode() -> dict[str, int | float]:
    """Return the running values at the start of an episode."""
    return dict(zip(INFO_KEYWORDS, _NOTHING, strict=True))
