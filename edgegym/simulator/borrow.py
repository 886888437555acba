"""Views without reference counts, for inner loops.

Numba counts references to every array of a tuple at every call, atomically, even where the call is
inlined; for tuples of fifty arrays that costs more than the simulation. Inside a kernel the caller
keeps the arrays alive, so its helpers can work on the bare views.
"""

from typing import Any, TypeVar

from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

T = TypeVar("T")


def _without_owner(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for index, element_kind in enumerate(kind):
            element = builder.extract_value(value, index)
            element = _without_owner(context, builder, element_kind, element)
            value = builder.insert_value(value, element, index)
    return value


@intrinsic
def _borrow(typing_context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.args[0], arguments[0])

    return value(value), build


def _same(value: T) -> T:
    """Return the argument: without compilation there are no counts to avoid."""
    return value


borrow = _same if config.DISABLE_JIT else _borrow
"""Return an array, or a tuple of arrays and numbers, without ownership (kernels only).

The result must not outlive the kernel's own arguments.
"""
