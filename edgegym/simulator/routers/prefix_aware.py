"""Each request goes where radio latency and residual prefill together are least (queue-unaware)."""

from edgegym.simulator.compiling import inlined


@inlined
def score(radio_s: float, prefill_s: float) -> float:
    """Return the time to the first token of a node without a queue."""
    return radio_s + prefill_s


@inlined
def least_beyond_radio(least_prefill_s: float) -> float:
    """Return the least that a node's score has beyond its radio latency: the least prefill."""
    return least_prefill_s
