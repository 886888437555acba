"""Each request goes to the nearest node."""

from edgegym.simulator.compiling import inlined


@inlined
def score(radio_s: float) -> float:
    """Return the radio latency, which grows with the distance."""
    return radio_s


@inlined
def least_score(radio_s: float) -> float:
    """Return the least score of a node at a radio latency."""
    return radio_s
