"""Each request goes to the nearest node."""

from edgegym.simulator.compiling import inlined


@inlined
def score(radio_s: float) -> float:
    """Return the radio latency, which grows with the distance."""
    return radio_s


@inlined
def least_beyond_radio() -> float:
    """Return the least that a node's score has beyond its radio latency: nothing."""
    return 0.0
