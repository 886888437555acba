"""How fast an agent learns on this machine: rollouts and updates of MaskablePPO."""

import statistics
import time
from importlib.util import find_spec

_NEEDED = ("sb3_contrib", "stable_baselines3", "torch")
_ENVS, _STEPS = 64, 32  # as in configs/


def training_steps_per_s(rollouts: int) -> float | None:
    """Return environment steps per second of MaskablePPO with the node scorer, learning included.

    On ``moving-hotspot``, 25 nodes, with the settings of ``configs/``, on the available cores, at
    most 4.

    Parameters
    ----------
    rollouts : int
        Rollouts, each with its update, after a first one; the median counts.

    Returns
    -------
    float or None
        None without the extra ``sb3``.
    """
    if any(find_spec(name) is None for name in _NEEDED):
        return None
    from sb3_contrib import MaskablePPO

    from edgegym.sb3 import EdgeVecEnv, NodeScorerPolicy, scorer_kwargs
    from edgegym.sb3.callbacks import LearningThreads
    from edgegym.threads import checked_threads

    env = EdgeVecEnv.make(
        "edgegym:EdgeGym/Placement-v0",
        _ENVS,
        scenario="moving-hotspot",
    )
    model = MaskablePPO(
        NodeScorerPolicy,
        env,
        policy_kwargs=scorer_kwargs(env),
        n_steps=_STEPS,
        batch_size=512,
        n_epochs=5,
        gamma=0.95,
        gae_lambda=0.9,
        learning_rate=3e-3,
        ent_coef=0.003,
        seed=0,
        device="cpu",
    )
    times = []
    for _ in range(rollouts + 1):
        begin = time.perf_counter()
        model.learn(
            _ENVS * _STEPS,
            callback=LearningThreads(checked_threads(None)),
            reset_num_timesteps=False,
        )
        times.append(time.perf_counter() - begin)
    env.close()
    return _ENVS * _STEPS / statistics.median(times[1:])
