"""How long a request is prefilled, and holds its slot."""

from edgegym.simulator.compiling import inlined
from edgegym.simulator.state import Floats

# Columns of `ClassTables.coefficients`.
LINEAR_S = 0
QUADRATIC_S = 1
FLOOR_S = 2
CONTEXT = 3


@inlined
def prefill_seconds(
    coefficients: Floats, node_class: int, input_tokens: float, hit_tokens: float
) -> float:
    """Return the prefill time of a prompt of which a prefix is held (eq. 11)."""
    new = input_tokens - hit_tokens
    linear = 0.0
    if new > 0.0:
        linear = max(coefficients[node_class, LINEAR_S] * new, coefficients[node_class, FLOOR_S])
    pairs = new * new
    if coefficients[node_class, CONTEXT] > 0.0:
        pairs = input_tokens * input_tokens - hit_tokens * hit_tokens
    return linear + coefficients[node_class, QUADRATIC_S] * pairs
