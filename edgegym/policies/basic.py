"""Policies that do not think: random moves, and none."""

from typing import TYPE_CHECKING

import numpy as np

from edgegym.policies.base import CounterRandom, Memory, Policy

if TYPE_CHECKING:
    from edgegym.policies.view import FleetView


class StaticPolicy(Policy):
    """Never moves anything: what the initial placement is worth."""

    def decide(
        self, view: "FleetView", memory: Memory, random: CounterRandom
    ) -> tuple[int, Memory]:
        """Return the no-op."""
        del random
        return view.no_op, memory


class RandomPolicy(Policy):
    """Takes each legal action, the no-op among them, with the same probability."""

    def decide(
        self, view: "FleetView", memory: Memory, random: CounterRandom
    ) -> tuple[int, Memory]:
        """Return a random legal action."""
        moves = np.flatnonzero(view.legal)
        return random.choice(np.append(moves, view.no_op)), memory
