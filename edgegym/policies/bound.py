"""Policies that see more than the observation: the fleet of an environment."""

from typing import TYPE_CHECKING, Any, Protocol

from edgegym.policies.base import Policy

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edgegym.interface.reward import PlacementReward
    from edgegym.simulator import Fleet
    from edgegym.world.scenario import Scenario


class HasFleet(Protocol):
    """What such a policy needs of an environment; ``EdgeGym/Placement-v0`` has it."""

    @property
    def scenario(self) -> "Scenario":
        """The world."""
        ...

    @property
    def fleet(self) -> "Fleet":
        """The fleet of the current episode."""
        ...

    @property
    def epoch(self) -> int:
        """Epochs of it that have run."""
        ...

    @property
    def reward(self) -> "PlacementReward":
        """What an epoch is worth."""
        ...


class BoundPolicy(Policy):
    """A policy that is shown its environment before it plays; it decides for that one alone.

    A copy that is pickled is bound to nothing: the environment stays where it is.
    """

    _env: HasFleet | None = None

    def bind(self, env: Any) -> None:
        """Show the policy the environment in which it plays; ``compare`` does so by itself.

        Parameters
        ----------
        env : gymnasium.Env
            A placement environment, wrapped or not.

        Raises
        ------
        TypeError
            If it has no fleet, as others than placement environments.
        ValueError
            If its scenario is another than the policy's.
        """
        bare = getattr(env, "unwrapped", env)
        if not hasattr(type(bare), "fleet"):
            raise TypeError(f"env is {bare!r}: must be a placement environment, which has a fleet")
        if bare.scenario != self.scenario:
            raise ValueError(
                f"env plays scenario '{bare.scenario.name}': this policy was made for "
                f"'{self.scenario.name}' with other values; make it for the environment's scenario"
            )
        self._env = bare

    @property
    def env(self) -> HasFleet:
        """The environment.

        Raises
        ------
        ValueError
            If the policy has not been shown one.
        """
        if self._env is None:
            raise ValueError(
                f"{type(self).__name__} needs to see its environment: call policy.bind(env) first"
            )
        return self._env

    def _rows(self, observation: "NDArray[Any]") -> tuple["NDArray[np.float32]", bool]:
        """Return the one observation: several can't all be of the one environment."""
        rows, single = super()._rows(observation)
        if len(rows) > 1:
            raise ValueError(
                f"observation has {len(rows)} rows: {type(self).__name__} decides for the one "
                "environment that it is bound to; make a policy for each"
            )
        return rows, single

    def __getstate__(self) -> dict[str, Any]:
        """Return everything but the environment."""
        return {name: value for name, value in vars(self).items() if name != "_env"}
