"""A native vector environment as Stable-Baselines3 wants it."""

import time
from collections.abc import Iterable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from edgegym.envs.vector import PlacementVectorEnv


class EdgeVecEnv(VecEnv):
    """A Stable-Baselines3 ``VecEnv`` of edgegym's vector environment.

    One state holds all environments and threads of this process advance it, without the start, the
    memory and the pickling of worker processes. To the bit what ``DummyVecEnv`` makes of as many
    single environments with the same seeds; results do not depend on the number of threads.

    ```python
    from sb3_contrib import MaskablePPO
    from edgegym.sb3 import EdgeVecEnv, NodeScorerPolicy, scorer_kwargs

    env = EdgeVecEnv.make("edgegym:EdgeGym/Placement-v0", 16, scenario="moving-hotspot")
    model = MaskablePPO(NodeScorerPolicy, env, policy_kwargs=scorer_kwargs(env), seed=0)
    ```

    Parameters
    ----------
    vector : PlacementVectorEnv
        In same-step mode. It is closed together with this.

    Raises
    ------
    TypeError
        If it is no such environment.
    ValueError
        If it is in another autoreset mode.

    Notes
    -----
    Masks are found by ``env_method("action_masks")``, as SB3-contrib looks for them. At the end of
    an episode ``info`` is that of its last step, with ``terminal_observation``,
    ``TimeLimit.truncated`` and, as from SB3's ``Monitor``, ``episode`` with return ``r``, length
    ``l`` and seconds ``t``. So no ``Monitor`` or ``VecMonitor`` is needed.
    """

    def __init__(self, vector: PlacementVectorEnv) -> None:
        if not isinstance(vector, PlacementVectorEnv):
            raise TypeError(
                f"vector is {vector!r}: it must be an edgegym vector environment, as "
                "EdgeVecEnv.make() makes it"
            )
        if vector.autoreset_mode != AutoresetMode.SAME_STEP:
            raise ValueError(
                f"vector has autoreset_mode {vector.autoreset_mode.name.lower()}: it must be "
                "same_step"
            )
        self.vector = vector
        self._actions: Any = None
        self._returns = np.zeros(vector.num_envs)
        self._lengths = np.zeros(vector.num_envs, dtype=np.int64)
        self._started_s = time.perf_counter()
        super().__init__(
            vector.num_envs, vector.single_observation_space, vector.single_action_space
        )

    @classmethod
    def make(cls, env_id: str, num_envs: int, **kwargs: Any) -> "EdgeVecEnv":
        """Make a vector environment by its registered name.

        Parameters
        ----------
        env_id : str
            Such as ``"edgegym:EdgeGym/Placement-v0"``.
        num_envs : int
            Number of environments.
        **kwargs
            Of the environment, and ``num_threads``.
        """
        vector = gymnasium.make_vec(
            env_id,
            num_envs=num_envs,
            vectorization_mode="vector_entry_point",
            autoreset_mode="same_step",
            **kwargs,
        )
        return cls(vector.unwrapped)  # pyright: ignore[reportArgumentType]

    def reset(self) -> Any:
        """Reset all environments; see ``VecEnv.reset``."""
        options = next((given for given in self._options if given), None)
        observations, infos = self.vector.reset(seed=self._seeds, options=options)
        self.reset_infos = _by_environment(infos)
        self._reset_seeds()
        self._reset_options()
        self._returns[:] = 0.0
        self._lengths[:] = 0
        return observations

    def step_async(self, actions: NDArray[Any]) -> None:
        """Take the actions; see ``VecEnv.step_async``."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step all environments; see ``VecEnv.step_wait``."""
        observations, rewards, terminated, truncated, arrays = self.vector.step(self._actions)
        dones = terminated | truncated
        self._returns += rewards
        self._lengths += 1
        infos = _by_environment(arrays)
        for info in infos:
            info["TimeLimit.truncated"] = False
        if dones.any():
            self._end_episodes(np.flatnonzero(dones).tolist(), infos, arrays, terminated)
        return observations, rewards.astype(np.float32), dones, infos

    def _end_episodes(
        self,
        ended: list[int],
        infos: list[dict[str, Any]],
        arrays: dict[str, Any],
        terminated: NDArray[np.bool_],
    ) -> None:
        """Put the last information of episodes in the place of the first of the next ones."""
        elapsed_s = time.perf_counter() - self._started_s
        final = _by_environment(arrays["final_info"])
        for b in ended:
            del infos[b]["TimeLimit.truncated"]
            self.reset_infos[b] = infos[b]
            infos[b] = final[b] | {
                "TimeLimit.truncated": not terminated[b],
                "terminal_observation": arrays["final_obs"][b],
                "episode": {
                    "r": float(self._returns[b]),
                    "l": int(self._lengths[b]),
                    "t": elapsed_s,
                },
            }
        self._returns[ended] = 0.0
        self._lengths[ended] = 0

    def close(self) -> None:
        """Close the environments and end the threads."""
        self.vector.close()

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute of some environments."""
        values = self.vector.get_attr(attr_name)
        return [values[b] for b in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Refuse: an environment's scenario, reward and spaces never change.

        Raises
        ------
        AttributeError
            Always.
        """
        raise AttributeError(f"{attr_name} can't be set: make another environment instead")

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of some environments: ``action_masks`` is what they have."""
        results = self.vector.call(method_name, *method_args, **method_kwargs)
        return [results[b] for b in self._get_indices(indices)]

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Return whether environments do what a wrapper does: True for ``Monitor`` alone."""
        wrapped = isinstance(wrapper_class, type) and issubclass(Monitor, wrapper_class)
        return [wrapped for _ in self._get_indices(indices)]

    def get_images(self) -> Any:
        """Return no images: a vector of environments isn't drawn."""
        return [None] * self.num_envs


def _by_environment(arrays: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a dictionary for each environment from those of Gymnasium's vector format."""
    names = [name for name in arrays if not name.startswith(("_", "final_"))]
    columns: Iterable[Any] = (
        arrays[name].tolist() if arrays[name].ndim == 1 else arrays[name] for name in names
    )
    rows = zip(*columns, strict=True)
    return [dict(zip(names, row, strict=True)) for row in rows]
