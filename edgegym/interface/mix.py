"""Target mixes: from logits to shares of profiles, and from shares to the cheapest moves."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edgegym.analytic.planning.transport import cheapest_transport
from edgegym.world.rounding import largest_remainder

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_ODDS = 199.0


@dataclass(frozen=True, kw_only=True)
class MixActions:
    """Numbers in [-1, 1] that say which share of each region's nodes should hold each profile.

    Share s of a region is ``exp(k a[s]) / Σ exp(k a)`` with ``k = ln(199 (S - 1)) / 2``: a profile
    at 1 beside all others at -1 gets 99.5 %, whatever their number; one at -1 beside any other at 1
    gets at most 0.5 %.

    Attributes
    ----------
    num_regions, num_profiles : int
        R and S.
    """

    num_regions: int
    num_profiles: int

    @property
    def size(self) -> int:
        """Numbers of an action, R·S."""
        return self.num_regions * self.num_profiles

    @property
    def logit_scale(self) -> float:
        """What an action is multiplied with before the exponential, k; 0 for a single profile."""
        others = self.num_profiles - 1
        return 0.5 * math.log(_MOST_ODDS * others) if others else 0.0

    def encode(self, shares: Any) -> "NDArray[np.float32]":
        """Return an action for given shares.

        Parameters
        ----------
        shares : array_like, shape [R, S]
            Not negative, with a positive sum in each region. Shares that no action reaches get the
            nearest logit that there is.

        Returns
        -------
        ndarray of float32, shape [R·S]

        Raises
        ------
        ValueError
            If the shares are not such.
        """
        wanted = np.asarray(shares, dtype=np.float64)
        if wanted.shape != (self.num_regions, self.num_profiles):
            raise ValueError(
                f"shares have shape {wanted.shape}: it must be "
                f"({self.num_regions}, {self.num_profiles}), regions and profiles"
            )
        if not (np.isfinite(wanted) & (wanted >= 0.0)).all() or not wanted.sum(axis=1).all():
            raise ValueError(f"shares are {shares!r}: they must be at least 0, some above it")
        if self.num_profiles == 1:
            return np.zeros(self.size, dtype=np.float32)
        with np.errstate(divide="ignore"):
            logits = np.log(wanted / wanted.max(axis=1, keepdims=True)) / self.logit_scale
        return np.maximum(logits + 1.0, -1.0).astype(np.float32).ravel()

    def decode(self, action: Any) -> "NDArray[np.float64]":
        """Return the shares that an action asks for.

        Parameters
        ----------
        action : array_like, shape [R·S]
            Numbers in [-1, 1], profiles of the first region first.

        Returns
        -------
        ndarray, shape [R, S]
            Positive; each region's add up to 1.

        Raises
        ------
        TypeError
            If it isn't made of real numbers.
        ValueError
            If it has another shape, or a number that is NaN or outside [-1, 1].
        """
        given = np.asarray(action)
        if given.dtype.kind not in "fiu":
            raise TypeError(f"action is {action!r}: it must be an array of real numbers")
        if given.shape != (self.size,):
            raise ValueError(f"action has shape {given.shape}: it must be ({self.size},)")
        wrong = ~((given >= -1) & (given <= 1))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"action[{at}] is {given[at]}: it must lie in [-1, 1]; clip actions before step()"
            )
        logits = self.logit_scale * given.astype(np.float64)
        odds = np.exp(logits.reshape(self.num_regions, self.num_profiles))
        return odds / odds.sum(axis=1, keepdims=True)


def cheapest_moves(
    shares: "NDArray[np.float64]",
    region: "NDArray[np.int64]",
    up: "NDArray[np.bool_]",
    receiving: "NDArray[np.bool_]",
    profile: "NDArray[np.int64]",
    slots: "NDArray[np.int64]",
    move_bytes: "NDArray[np.int64]",
) -> list[tuple[int, int]]:
    """Return the moves that bring each region's nodes to a mix of profiles for the fewest bytes.

    In each region the shares of the profiles that fit some node there become whole numbers of its
    up nodes with a GPU, by largest remainders. Optimal transport then gives each node its profile:
    first as few nodes as possible are left with a wrong one (those that still receive cannot move,
    and a profile may fit fewer nodes than it should get), then the moves take the fewest bytes. Of
    nodes that would do equally well, those of lower index move, to the profiles of lower index.

    Parameters
    ----------
    shares : ndarray, shape [R, S]
        Positive; each row adds up to 1.
    region : ndarray of int64, shape [N]
        Region of each node.
    up, receiving : ndarray of bool, shape [N]
    profile : ndarray of int64, shape [N]
        Profile that each node holds or is receiving.
    slots : ndarray of int64, shape [N, S]
        Slots of each node under each profile: 0 where it doesn't fit, everywhere without a GPU.
    move_bytes : ndarray of int64, shape [S, S]
        Bytes of each move.

    Returns
    -------
    list of (int, int)
        Nodes and their new profiles, each legal but for the budget. Cheapest first, nodes of lower
        index first among equals.
    """
    serves = up & (slots > 0).any(axis=1)
    moves: list[tuple[int, int]] = []
    for r, wanted in enumerate(shares):
        nodes = np.flatnonzero(serves & (region == r))
        if not len(nodes):
            continue
        fits = slots[nodes] > 0
        possible = np.where(fits.any(axis=0), wanted, 0.0)
        target = largest_remainder(possible / possible.sum(), len(nodes))
        held = profile[nodes]
        if np.array_equal(target, np.bincount(held, minlength=len(target))):
            continue
        fits &= ~receiving[nodes, None]
        fits[np.arange(len(nodes)), held] = True
        moves += [(int(nodes[i]), s) for i, s in _transported(held, fits, target, move_bytes)]
    return sorted(moves, key=lambda move: (int(move_bytes[profile[move[0]], move[1]]), move[0]))


def _transported(
    held: "NDArray[np.int64]",
    may_hold: "NDArray[np.bool_]",
    target: "NDArray[np.int64]",
    move_bytes: "NDArray[np.int64]",
) -> list[tuple[int, int]]:
    """Return the cheapest moves of nodes ``0 … n - 1`` towards as many nodes of each profile."""
    # Nodes that hold the same and may hold the same are interchangeable.
    alike: dict[bytes, list[int]] = {}
    for i, row in enumerate(np.concatenate((held[:, None], may_hold), axis=1)):
        alike.setdefault(row.tobytes(), []).append(i)
    groups = list(alike.values())
    supply = np.array([len(group) for group in groups])
    first = [group[0] for group in groups]
    sinks = np.flatnonzero(target)
    before, allowed = held[first], may_hold[first][:, sinks]
    # In the largest unit that keeps them whole, so that sums stay small.
    unit = max(int(np.gcd.reduce(move_bytes, axis=None)), 1)
    cost = move_bytes[before][:, sinks] // unit
    cost[before[:, None] == sinks] = 0
    cost[~allowed] = int(cost.max()) * len(held) + 1
    carried = cheapest_transport(supply, target[sinks], cost)
    moves: list[tuple[int, int]] = []
    for k, row in enumerate(carried):
        members = iter(groups[k])
        for column in np.flatnonzero(row):
            profile = int(sinks[column])
            if allowed[k, column] and profile != before[k]:
                moves += [(next(members), profile) for _ in range(int(row[column]))]
    return moves
