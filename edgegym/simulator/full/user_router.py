"""A user's own routing rule: a compiled function that kernels call through its address.

Kernels know only the address, a number, so that they stay cached across processes whatever the rule
is. The function gets the whole table of candidates and returns which of them it takes.
"""

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import config
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.extending import intrinsic
from numba.np.numpy_support import carray

from edgegym.simulator.full.routing_columns import NUM_FEATURES
from edgegym.simulator.state import Floats

RULE_FAILED = -(2**63)
"""What a compiled rule returns that raised an exception."""

_POINTER = types.CPointer(types.float64)
_SIGNATURE = types.int64(_POINTER, types.int64, _POINTER, types.int64)
_C_POINTER = ctypes.POINTER(ctypes.c_double)
_PROTOTYPE = ctypes.CFUNCTYPE(
    ctypes.c_int64, _C_POINTER, ctypes.c_int64, _C_POINTER, ctypes.c_int64
)


class RuleError(RuntimeError):
    """A user's routing rule raised an exception, which is the cause of this one."""


class UserRouter:
    """A routing rule of your own.

    Parameters
    ----------
    rule : callable or int
        A function ``rule(candidates, parameters)`` in Numba's nopython subset. ``candidates`` is
        ``[K, NUM_FEATURES]`` float64, one row for each candidate in the order of node indices, with
        the columns of :mod:`edgegym.simulator.full.routing_columns`; ``parameters`` is what is
        given here. It returns the row of the node it takes; a number that is no row takes none
        (the request goes to the origin, or is rejected). What it raises is the cause of a
        :class:`RuleError` of :meth:`Fleet.advance <edgegym.simulator.Fleet.advance>`; for that it
        is called again with the same arguments, on which alone its answer should depend. Or the
        address of a C function ``int64_t rule(const double *candidates, int64_t count, const
        double *parameters, int64_t num_parameters)``, which must live as long as fleets use it, and
        returns INT64_MIN when it fails.
    parameters : sequence of float
        Numbers for the rule.
    candidates_per_profile : int
        The nearest nodes of each profile that it sees.

    Raises
    ------
    TypeError
        If the rule is neither a function nor an address.
    ValueError
        If an address is not positive, a parameter no finite number, or the number of candidates no
        positive integer.
    """

    def __init__(
        self,
        rule: Callable[[Any, Any], int] | int,
        parameters: Sequence[float] = (),
        candidates_per_profile: int = 2,
    ) -> None:
        if isinstance(rule, bool) or not (callable(rule) or isinstance(rule, int)):
            raise TypeError(f"rule = {rule!r}: must be a function or the address of one")
        if isinstance(rule, int) and rule <= 0:
            raise ValueError(f"rule = {rule}: is no address of a function")
        try:
            self.parameters = np.array(parameters, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise ValueError(f"parameters = {parameters!r}: must be a list of numbers") from None
        if not np.isfinite(self.parameters).all():
            raise ValueError(f"parameters = {parameters!r}: must be finite")
        whole = isinstance(candidates_per_profile, int | np.integer)
        if not whole or isinstance(candidates_per_profile, bool) or candidates_per_profile < 1:
            raise ValueError(
                f"candidates_per_profile = {candidates_per_profile!r}: must be an integer of at "
                "least 1"
            )
        self.rule = rule
        self.candidates_per_profile = int(candidates_per_profile)
        self._compiled: Any = None

    @property
    def address(self) -> int:
        """Where the compiled rule is in this process; the first call compiles it.

        Raises
        ------
        TypeError
            If Numba can't compile it.
        """
        if isinstance(self.rule, int):
            return self.rule
        if self._compiled is None:
            plain = getattr(config, "DISABLE_JIT", 0)
            self._compiled = _as_callback(self.rule) if plain else _as_cfunc(self.rule)
        return _address_of(self._compiled)

    def failure(self, candidates: Floats) -> RuleError:
        """Return what to raise after the rule has failed.

        Parameters
        ----------
        candidates : ndarray, shape [K, NUM_FEATURES]
            The table on which it failed. The rule is called with it once more, as it runs in
            fleets, for the exception itself.
        """
        if isinstance(self.rule, int):
            return RuleError(f"rule = {self.rule}: the function there returned {RULE_FAILED}")
        name = getattr(self.rule, "__name__", repr(self.rule))
        function: Any = self.rule
        if not getattr(config, "DISABLE_JIT", 0) and not hasattr(function, "get_call_template"):
            function = numba.njit(function)
        try:
            function(candidates, self.parameters)
        except Exception as cause:
            words = f"{type(cause).__name__}: {cause}"
            error = RuleError(f"rule = {name}: raised {words} on {len(candidates)} candidates")
            error.__cause__ = cause
            return error
        return RuleError(f"rule = {name}: raised an exception on {len(candidates)} candidates")

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle needs: an address is worth nothing in another process."""
        return {
            "rule": self.rule,
            "parameters": self.parameters,
            "candidates_per_profile": self.candidates_per_profile,
            "_compiled": None,
        }


def _as_cfunc(rule: Any) -> Any:
    compiled: Any = rule if hasattr(rule, "get_call_template") else numba.njit(rule)

    def entry(candidates: Any, count: Any, parameters: Any, num_parameters: Any) -> Any:
        table = carray(candidates, (count, NUM_FEATURES))
        numbers = carray(parameters, (num_parameters,))
        row = RULE_FAILED
        try:
            row = compiled(table, numbers)
        except Exception:  # it must not leave a function that kernels call
            row = RULE_FAILED
        return row

    try:
        return numba.cfunc(_SIGNATURE)(entry)
    except (NumbaError, UnsupportedBytecodeError) as error:
        name = getattr(rule, "__name__", repr(rule))
        raise TypeError(
            f"rule = {name}: must be a function rule(candidates, parameters) in Numba's nopython "
            "subset that returns an integer; what Numba says stands above"
        ) from error


def _as_callback(rule: Any) -> Any:
    def entry(candidates: Any, count: int, parameters: Any, num_parameters: int) -> int:
        table = np.ctypeslib.as_array(candidates, (count, NUM_FEATURES))
        numbers = np.zeros(0)
        if num_parameters > 0:
            numbers = np.ctypeslib.as_array(parameters, (num_parameters,))
        try:
            return int(rule(table, numbers))
        except Exception:  # it must not leave a function that is called from outside
            return RULE_FAILED

    return _PROTOTYPE(entry)


def _address_of(compiled: Any) -> int:
    if hasattr(compiled, "address"):
        return int(compiled.address)
    return int(ctypes.cast(compiled, ctypes.c_void_p).value or 0)


@intrinsic
def _call_address(
    typing_context: Any, address: Any, candidates: Any, count: Any, parameters: Any, number: Any
) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        table = context.make_array(kinds[1])(context, builder, arguments[1])
        numbers = context.make_array(kinds[3])(context, builder, arguments[3])
        double, word = ir.DoubleType().as_pointer(), ir.IntType(64)
        function = builder.inttoptr(
            arguments[0], ir.FunctionType(word, [double, word, double, word]).as_pointer()
        )
        return builder.call(function, [table.data, arguments[2], numbers.data, arguments[4]])

    return (
        types.int64(types.int64, candidates, types.int64, parameters, types.int64),
        build,
    )


def _call_plainly(
    address: int, candidates: Any, count: int, parameters: Any, num_parameters: int
) -> int:
    function = _PROTOTYPE(address)
    return function(
        candidates.ctypes.data_as(_C_POINTER),
        count,
        parameters.ctypes.data_as(_C_POINTER),
        num_parameters,
    )


call_rule: Any = _call_plainly if getattr(config, "DISABLE_JIT", 0) else _call_address
"""Call the rule at an address: ``(address, candidates, count, parameters, num_parameters)``.

Kernels only; both arrays lie in C order.
"""
