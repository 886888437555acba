"""Powers and exponentials that the compiler can work out for several numbers at once.

The C library's functions take one number at a time. These are free of branches and calls, so that a
loop over an array becomes vector instructions: three to four times as fast, at nearly the same
accuracy.
"""

import struct
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

from edgegym.jit import kernel

_MANTISSA_BITS = 52
# The bits of sqrt(1/2): mantissas from there to sqrt(2) have the smallest logarithms.
_ROOT_HALF_BITS = 0x3FE6A09E667F3BCD
_ONE_BITS = 0x3FF0000000000000
# 2**52: a whole number in its last bits can be read as one, and back.
_SHIFTER = 4503599627370496.0
_SHIFTER_BITS = 0x4330000000000000
_OFFSET = 2048
# Rounds to a whole number when added, which then stands in the last bits.
_ROUNDER = 6755399441055744.0
_LN2 = 0.6931471805599453
_LN2_HIGH, _LN2_LOW = 0.693147180369123816490, 1.90821492927058770002e-10
# Beyond this the result is 0 or infinite, for all that matters here.
_LARGEST_EXPONENT = 700.0


def _bits(x: float) -> int:
    """Return the 64 bits of a float as a signed integer."""
    return struct.unpack("<q", struct.pack("<d", x))[0]


def _from_bits(bits: int) -> float:
    """Return the float of these 64 bits."""
    return struct.unpack("<d", struct.pack("<Q", bits & 0xFFFFFFFFFFFFFFFF))[0]


@intrinsic
def _cast_to_bits(typing_context: Any, x: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _cast_from_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@overload(_bits, inline="always")
def _compiled_bits(x):
    return lambda x: _cast_to_bits(x)  # pyright: ignore[reportCallIssue]


@overload(_from_bits, inline="always")
def _compiled_from_bits(bits):
    return lambda bits: _cast_from_bits(bits)  # pyright: ignore[reportCallIssue]


@kernel
def fast_exp(y):
    """Return e to the power of `y`, which is taken as at least -700 and at most 700."""
    y = min(max(y, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    rounded = y * (1.0 / _LN2) + _ROUNDER
    whole = rounded - _ROUNDER
    r = (y - whole * _LN2_HIGH) - whole * _LN2_LOW
    series = 1.0 / 39916800.0
    series = series * r + 1.0 / 3628800.0
    series = series * r + 1.0 / 362880.0
    series = series * r + 1.0 / 40320.0
    series = series * r + 1.0 / 5040.0
    series = series * r + 1.0 / 720.0
    series = series * r + 1.0 / 120.0
    series = series * r + 1.0 / 24.0
    series = series * r + 1.0 / 6.0
    series = series * r + 0.5
    series = series * r + 1.0
    series = series * r + 1.0
    return series * _from_bits((_bits(rounded) << _MANTISSA_BITS) + _ONE_BITS)


@kernel
def fast_power(x, power):
    """Return `x`, a positive normal number, to this power; within 1e-300 and 1e300."""
    bits = _bits(x)
    exponent = (bits - _ROOT_HALF_BITS) >> _MANTISSA_BITS
    mantissa = _from_bits(bits - (exponent << _MANTISSA_BITS))
    whole = _from_bits((exponent + _OFFSET) | _SHIFTER_BITS) - (_SHIFTER + _OFFSET)
    # ln m = 2 artanh((m - 1) / (m + 1)).
    f = (mantissa - 1.0) / (mantissa + 1.0)
    square = f * f
    series = 1.0 / 19.0
    series = series * square + 1.0 / 17.0
    series = series * square + 1.0 / 15.0
    series = series * square + 1.0 / 13.0
    series = series * square + 1.0 / 11.0
    series = series * square + 1.0 / 9.0
    series = series * square + 1.0 / 7.0
    series = series * square + 1.0 / 5.0
    series = series * square + 1.0 / 3.0
    return fast_exp(power * (whole * _LN2 + 2.0 * (f + f * square * series)))
