"""Which seeds training may use: never those that are kept for evaluation."""

from collections.abc import Collection

import numpy as np

from agents.config import ConfigError

_SEED_LIMIT = 2**32 - 2**16  # NumPy's global generator takes 32 bits; leave room to count up


def session_seed(seed: int, steps: int, num_envs: int, evaluation_seeds: Collection[int]) -> int:
    """Return the first seed of a training session; environment i gets that plus i.

    A run that starts at step 0 uses `seed` itself. One that resumes must meet other episodes than
    it began with, so its seed is drawn from `seed` and `steps`, again until it is free of
    evaluation seeds.

    Parameters
    ----------
    seed : int
        Of the configuration.
    steps : int
        Steps that the model has learned from.
    num_envs : int
        Seeds that are used, counting up.
    evaluation_seeds : collection of int
        Seeds that training must not meet.

    Raises
    ------
    ConfigError
        If a fresh run's seeds include one that is kept for evaluation.
    """
    if steps == 0:
        taken = _overlap(seed, num_envs, evaluation_seeds)
        if taken:
            raise ConfigError(
                f"seed = {seed}: {num_envs} environments would use the seeds {seed} to "
                f"{seed + num_envs - 1}, but the scenario keeps {taken[0]} for evaluation"
            )
        return seed
    generator = np.random.default_rng((seed, steps))
    while True:
        drawn = int(generator.integers(_SEED_LIMIT))
        if not _overlap(drawn, num_envs, evaluation_seeds):
            return drawn


def _overlap(first: int, count: int, evaluation_seeds: Collection[int]) -> list[int]:
    return sorted(set(range(first, first + count)).intersection(evaluation_seeds))
