"""Many environments as one, stepped by threads."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
from stable_baselines3.common.vec_env import DummyVecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn


class ThreadVecEnv(DummyVecEnv):
    """A Stable-Baselines3 ``VecEnv`` whose environments step in threads of this process.

    edgegym's environments spend most of a step in compiled code that releases the GIL, so threads
    run it side by side, without the start, the memory and the pickling of worker processes. Unlike
    ``DummyVecEnv`` it does not copy ``info`` dictionaries, which edgegym's environments make anew
    on each step. Results do not depend on the number of threads.

    Parameters
    ----------
    env_fns : list of callable
        Make the environments; each must be a separate one and share nothing that a step changes.
    num_threads : int
        Threads that step them; 1 steps them in the caller's thread.

    Raises
    ------
    ValueError
        If `num_threads` is less than 1, or there are no environments.

    Notes
    -----
    At the end of an episode ``info`` has ``terminal_observation``, ``TimeLimit.truncated`` and, as
    from SB3's ``Monitor``, ``episode`` with return ``r``, length ``l`` and seconds ``t``.
    """

    def __init__(
        self, env_fns: list[Callable[[], gymnasium.Env[Any, Any]]], num_threads: int = 2
    ) -> None:
        whole = isinstance(num_threads, int) and not isinstance(num_threads, bool)
        if not whole or num_threads < 1:
            raise ValueError(f"num_threads is {num_threads!r}: it must be at least 1")
        if not env_fns:
            raise ValueError("env_fns is empty: it must make at least one environment")
        super().__init__(env_fns)
        self._helpers = min(num_threads, self.num_envs) - 1
        self._pool = ThreadPoolExecutor(self._helpers) if self._helpers else None
        self._returns = np.zeros(self.num_envs)
        self._lengths = np.zeros(self.num_envs, dtype=np.int64)
        self._started_s = time.perf_counter()

    def reset(self) -> Any:
        """Reset all environments; see ``VecEnv.reset``."""
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return super().reset()

    def step_wait(self) -> VecEnvStepReturn:
        """Step all environments; see ``VecEnv.step_wait``."""
        # Whoever is free takes the next one: taking it from a shared iterator is atomic.
        turns = iter(range(self.num_envs))
        helpers = (
            [self._pool.submit(self._step_some, turns) for _ in range(self._helpers)]
            if self._pool is not None
            else []
        )
        self._step_some(turns)
        for helper in helpers:
            helper.result()
        observations = self._obs_from_buf()
        return observations, self.buf_rews.copy(), self.buf_dones.copy(), list(self.buf_infos)

    def _step_some(self, turns: Iterator[int]) -> None:
        """Step environments until none is left to take."""
        for index in turns:
            self._step_one(index)

    def _step_one(self, index: int) -> None:
        env = self.envs[index]
        observation, reward, terminated, truncated, info = env.step(self.actions[index])
        done = bool(terminated or truncated)
        self.buf_rews[index] = reward
        self.buf_dones[index] = done
        info["TimeLimit.truncated"] = truncated and not terminated
        self._returns[index] += float(reward)
        self._lengths[index] += 1
        if done:
            info["terminal_observation"] = observation
            info["episode"] = {
                "r": float(self._returns[index]),
                "l": int(self._lengths[index]),
                "t": time.perf_counter() - self._started_s,
            }
            self._returns[index] = 0.0
            self._lengths[index] = 0
            observation, self.reset_infos[index] = env.reset()
        self._save_obs(index, observation)
        self.buf_infos[index] = info

    def close(self) -> None:
        """Close the environments and end the threads."""
        if self._pool is not None:
            self._pool.shutdown()
        super().close()
