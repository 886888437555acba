"""Each request goes where radio latency and residual prefill together are least (queue-unaware)."""

from edgegym.simulator.compiling import inlined


@inlined
def score(radio_s: float, prefill_s: float) -> float:
    """Return the time to the first token of a node without a queue."""
    return radio_s + prefill_s


@inlined
def least_score(radio_s: float, least_prefill_s: float) -> float:
    """Return the least score of a node at a radio latency."""
    return radio_s + least_prefill_s
