"""Each request goes where radio latency, residual prefill and advertised wait add up to least."""

from edgegym.simulator.compiling import inlined


@inlined
def score(radio_s: float, prefill_s: float, wait_s: float) -> float:
    """Return the advertised time to the first token."""
    return radio_s + (prefill_s + wait_s)


@inlined
def least_score(radio_s: float, least_prefill_s: float) -> float:
    """Return the least score of a node at a radio latency: one without a wait."""
    return radio_s + least_prefill_s
