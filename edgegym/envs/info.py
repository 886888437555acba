"""The scalars that every step reports in ``info``."""

from typing import Any

_NOTHING: dict[str, int | float] = {
    "arrivals": 0,
    "decided": 0,
    "hits": 0,
    "first_tokens": 0,
    "rejected": 0,
    "completed": 0,
    "ttft_sum_s": 0.0,
    "bytes_moved": 0,
    "moves": 0,
    "illegal_actions": 0,
    "reward_service": 0.0,
    "reward_migration": 0.0,
}

EPOCH_KEYS = (*_NOTHING, "utilization", "prefill_utilization")
"""Values of the epoch that a step ran; all zero on a step that ran none."""

INFO_KEYWORDS = tuple(f"episode_{key}" for key in _NOTHING)
"""Running values of the episode, warm-up excluded. For Stable-Baselines3's
``Monitor(env, info_keywords=INFO_KEYWORDS)``, which reads only an episode's last step."""

INFO_MEANING = {
    "arrivals": "requests that came",
    "decided": "requests whose target was met or missed, or that were rejected",
    "hits": "requests whose first token came within the target",
    "first_tokens": "requests that got their first token",
    "rejected": "requests that no node could take",
    "completed": "requests that were finished",
    "ttft_sum_s": "sum of the times to first token, seconds; over `first_tokens` it is the mean",
    "bytes_moved": "bytes charged for moves",
    "moves": "moves started",
    "illegal_actions": "actions that were no legal move, and so did nothing",
    "reward_service": "part of the reward that traffic earned",
    "reward_migration": "part of the reward that moves cost, negative or zero",
    "utilization": "share of slot time in use, mean over nodes",
    "prefill_utilization": "GPU-seconds of prefill per second, mean over nodes",
}
"""What each key says, for the documentation; the keys of ``EPOCH_KEYS``."""


def no_epoch() -> dict[str, int | float]:
    """Return the values of a step that ran no epoch."""
    return _NOTHING | {"utilization": 0.0, "prefill_utilization": 0.0}


def no_episode() -> dict[str, int | float]:
    """Return the running values at the start of an episode."""
    return dict(zip(INFO_KEYWORDS, _NOTHING.values(), strict=True))


def epoch_values(
    window: Any,
    *,
    nodes: int,
    moves: int,
    illegal_actions: int,
    reward: tuple[float, float],
) -> dict[str, int | float]:
    """Return the values of an epoch.

    Parameters
    ----------
    window : WindowStats
        Of the epoch.
    nodes : int
        Nodes of the fleet; utilisations are means over them.
    moves, illegal_actions : int
        What the agent did before the epoch ran.
    reward : tuple of float
        Service and migration part of the reward.

    Returns
    -------
    dict
        The keys of ``EPOCH_KEYS``; finite ints and floats.
    """
    return {
        "arrivals": int(window.arrivals),
        "decided": int(window.decided),
        "hits": int(window.hits),
        "first_tokens": int(window.first_tokens),
        "rejected": int(window.rejected),
        "completed": int(window.completed),
        "ttft_sum_s": float(window.ttft_sum_s),
        "bytes_moved": int(window.bytes_moved),
        "moves": moves,
        "illegal_actions": illegal_actions,
        "reward_service": reward[0],
        "reward_migration": reward[1],
        "utilization": float(window.utilization.sum()) / nodes,
        "prefill_utilization": float(window.prefill_utilization.sum()) / nodes,
    }


def add_epoch(
    episode: dict[str, int | float], epoch: dict[str, int | float]
) -> dict[str, int | float]:
    """Return the running values with one epoch added."""
    return {
        name: total + epoch[key]
        for (name, total), key in zip(episode.items(), _NOTHING, strict=True)
    }
