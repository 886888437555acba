"""The discrete-event simulation of a fleet: the ground truth of every environment."""

from edgegym.simulator.fleet import Fleet
from edgegym.simulator.moves import IllegalMove
from edgegym.simulator.state import FleetState
from edgegym.simulator.window import WindowStats

__all__ = ["Fleet", "FleetState", "IllegalMove", "WindowStats"]
