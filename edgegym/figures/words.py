"""Numbers as the captions write them."""

_LEAST = 1e-4


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100.0 * share:.0f} %"


def small(value: float) -> str:
    """Return a small positive number with two digits, or that it is below 0.0001."""
    return f"{value:.2g}" if value >= _LEAST else f"less than {_LEAST:.4f}"
