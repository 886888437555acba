"""Each request goes where radio latency, residual prefill and advertised wait add up to least."""

from edgegym.simulator.compiling import inlined


@inlined
def score(radio_s: float, prefill_s: float, wait_s: float) -> float:
    """Return the advertised time to the first token."""
    return radio_s + (prefill_s + wait_s)


@inlined
def least_beyond_radio(least_prefill_s: float) -> float:
    """Return the least that a node's score has beyond its radio latency: without a wait."""
    return least_prefill_s
