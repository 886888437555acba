"""What an agent can do: the numbering of moves and which of them are legal now."""

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.interface.padding import with_empty_rows
from edgegym.jit import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray


def checked_action(action: Any, size: int, meaning: str) -> int:
    """Return the number of an action.

    Parameters
    ----------
    action : int, NumPy integer or 0-d integer array
    size : int
        Number of actions.
    meaning : str
        What the numbers mean, for the message.

    Raises
    ------
    TypeError
        If it isn't one integer.
    ValueError
        If it lies outside 0..size - 1.
    """
    if isinstance(action, (bool, np.bool_)):
        raise TypeError(f"action is {action!r}: it must be an integer, not a bool")
    try:
        number = operator.index(action)
    except TypeError:
        raise TypeError(
            f"action is {action!r} of type {type(action).__name__}: it must be one integer"
        ) from None
    if not 0 <= number < size:
        raise ValueError(f"action is {number}: it must lie in 0..{size - 1} ({meaning})")
    return number


@dataclass(frozen=True, kw_only=True)
class PlacementActions:
    """The numbering of placement actions: ``node * S + profile``, then the no-op.

    Attributes
    ----------
    num_nodes, num_profiles : int
        N (the most nodes an episode may have) and S.
    """

    num_nodes: int
    num_profiles: int

    @property
    def size(self) -> int:
        """Number of actions, N·S + 1."""
        return self.num_nodes * self.num_profiles + 1

    @property
    def no_op(self) -> int:
        """The action that moves nothing: the last one, always legal."""
        return self.num_nodes * self.num_profiles

    def encode(self, node: int, profile: int) -> int:
        """Return the action that moves `node` to `profile`.

        Raises
        ------
        ValueError
            If the node or the profile doesn't exist.
        """
        if not 0 <= node < self.num_nodes:
            raise ValueError(f"node is {node}: it must lie in 0..{self.num_nodes - 1}")
        if not 0 <= profile < self.num_profiles:
            raise ValueError(f"profile is {profile}: it must lie in 0..{self.num_profiles - 1}")
        return node * self.num_profiles + profile

    def decode(self, action: Any) -> tuple[int, int] | None:
        """Return the node and the profile of an action; None for the no-op.

        Parameters
        ----------
        action : int, NumPy integer or 0-d integer array

        Raises
        ------
        TypeError
            If it isn't one integer.
        ValueError
            If it lies outside 0..N·S.
        """
        number = checked_action(
            action,
            self.size,
            f"node * {self.num_profiles} + profile; {self.no_op} is the no-op",
        )
        if number == self.no_op:
            return None
        return divmod(number, self.num_profiles)


@kernel
def write_action_mask(
    up: "NDArray[np.bool_]",  # (N,)
    receiving: "NDArray[np.bool_]",  # (N,)
    profile: "NDArray[np.int64]",  # (N,)
    slots: "NDArray[np.int64]",  # (N, S)
    move_bytes: "NDArray[np.int64]",  # (S, S)
    bucket_level_bytes: float,
    mask: "NDArray[np.bool_]",  # (N * S + 1,)
) -> None:
    """Write which actions the fleet would accept now.

    Legal are moves of an up node (padding nodes never are) that receives nothing, to another
    profile that leaves it at least one slot, at a price the bucket holds; and the no-op.

    Parameters
    ----------
    up, receiving : ndarray of bool, shape [N]
    profile : ndarray of int64, shape [N]
        Profile of each node (the target of a move in progress).
    slots : ndarray of int64, shape [N, S]
        Slots of each node under each profile; 0 if the profile doesn't fit its memory.
    move_bytes : ndarray of int64, shape [S, S]
        Bytes of a move from one profile to another.
    bucket_level_bytes : float
        What the token bucket holds now.
    mask : ndarray of bool, shape [N·S + 1]
        Written in full.
    """
    nodes, profiles = slots.shape
    for i in range(nodes):
        movable = up[i] and not receiving[i]
        held = profile[i]
        for s in range(profiles):
            mask[i * profiles + s] = (
                movable
                and s != held
                and slots[i, s] > 0
                and move_bytes[held, s] <= bucket_level_bytes
            )
    mask[nodes * profiles] = True


def fleet_action_mask(fleet: Any, actions: PlacementActions) -> "NDArray[np.bool_]":
    """Return which actions a fleet would accept now.

    Parameters
    ----------
    fleet : Fleet
    actions : PlacementActions
        Of at least as many nodes as the fleet may have.

    Returns
    -------
    ndarray of bool, shape [N·S + 1]
        A fresh array.
    """
    state = fleet.state
    own = np.empty(state.slots[0].size + 1, dtype=np.bool_)
    write_action_mask(
        state.up[0],
        state.receiving[0],
        state.profile[0],
        state.slots[0],
        fleet.world.move_bytes,
        fleet.bucket_bytes,
        own,
    )
    return with_empty_rows(own, len(own) - 1, actions.size)
