"""Random numbers that kernels draw by name: of a key, the index of a request, and a draw's number.

A draw is a hash of the three, so it needs no state, and what one request draws never depends on
what others did. The hash is the finaliser of SplitMix64 (Steele, Lea, Flood 2014), applied to the
key and the index and once more with the draw.
"""

from typing import Any

from numba import uint64
from numba.core import config

from edgegym.simulator.compiling import inlined

_GOLDEN = 0x9E3779B97F4A7C15
_FIRST, _SECOND = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_TO_UNIT = 2.0**-53
_64_BITS = (1 << 64) - 1


@inlined
def _mixed(bits: Any) -> Any:
    bits ^= bits >> uint64(30)
    bits *= uint64(_FIRST)
    bits ^= bits >> uint64(27)
    bits *= uint64(_SECOND)
    return bits ^ (bits >> uint64(31))


@inlined
def _compiled_uniform_of(key: int, index: int, draw: int) -> float:
    bits = _mixed(uint64(key) ^ (uint64(index) * uint64(_GOLDEN)))
    bits = _mixed(bits + uint64(draw + 1) * uint64(_GOLDEN))
    return float(bits >> uint64(11)) * _TO_UNIT


def _mixed_integer(bits: int) -> int:
    bits = (bits ^ (bits >> 30)) * _FIRST & _64_BITS
    bits = (bits ^ (bits >> 27)) * _SECOND & _64_BITS
    return bits ^ (bits >> 31)


def _plain_uniform_of(key: int, index: int, draw: int) -> float:
    """Compute the same with Python's integers: NumPy's warn when they overflow."""
    bits = _mixed_integer((int(key) ^ (int(index) * _GOLDEN)) & _64_BITS)
    bits = _mixed_integer((bits + (int(draw) + 1) * _GOLDEN) & _64_BITS)
    return (bits >> 11) * _TO_UNIT


uniform_of: Any = _plain_uniform_of if getattr(config, "DISABLE_JIT", 0) else _compiled_uniform_of
"""Return a number in [0, 1), uniform and independent for all ``(key, index, draw)``.

All three are integers; kernels only.
"""
