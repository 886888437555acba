"""Placement in which all nodes ask at once and a shared budget decides who is served."""

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.envs.placement import PlacementEnv
from edgegym.simulator.generators import NumberedStream

if TYPE_CHECKING:
    from numpy.typing import NDArray


class JointPlacement(PlacementEnv):
    """Placement with a request of every node in each epoch."""

    @property
    def started(self) -> bool:
        """Whether there is an episode."""
        return self._fleet is not None

    def observation(self) -> "NDArray[np.float32]":
        """Return a fresh observation of what is now."""
        return self._observe()

    def serve(
        self, requests: "NDArray[np.int64]"
    ) -> "tuple[list[int], tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]]":
        """Start moves as far as the budget goes, then run the epoch.

        Parameters
        ----------
        requests : ndarray of int64, shape [nodes]
            Profile that each node asks for, S for none.

        Returns
        -------
        list of int
            Nodes whose move started.
        tuple
            What ``step`` returns.
        """
        nodes = np.arange(len(requests))
        none = requests == self.layout.num_profiles
        # The mask has rows of S for each node; what a node may ask for isn't what it may get.
        legal = self.fleet.legal_moves()[nodes, np.where(none, 0, requests)]
        order = NumberedStream(self.fleet.seed, "turns").generator(self.epoch).permutation(nodes)
        asked = [(int(i), int(requests[i])) for i in order if legal[i] and not none[i]]
        return self._start_moves(asked), self._run_epoch(int((~legal & ~none).sum()))


def checked_request(agent: str, action: Any, none: int) -> int:
    """Return an agent's action as an integer.

    Parameters
    ----------
    agent : str
        Its name, for the message.
    action : object
        What it was given.
    none : int
        The action that asks for nothing, the last of its space.

    Raises
    ------
    TypeError, ValueError
        If it is no integer of the space.
    """
    try:
        number = operator.index(action)
    except TypeError:
        number = None
    if number is None or isinstance(action, bool | np.bool_):
        raise TypeError(f"action of {agent} is {action!r}: it must be one integer")
    if not 0 <= number <= none:
        raise ValueError(
            f"action of {agent} is {number}: it must lie in 0..{none} (a profile; {none} asks for "
            "nothing)"
        )
    return number
