"""How the simulator's inner functions are compiled.

Only a few kernels are called from Python. Their helpers need neither wrappers nor a cache of their
own (leaving those out halves the compile time), and they work on borrowed views.

Numba counts references to every array of a tuple at every call, atomically, even where the call is
inlined; for tuples of fifty arrays that costs more than the simulation. Inside a kernel the caller
keeps the arrays alive, so its helpers can work on bare views.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from llvmlite import ir
from numba import typeof, types
from numba.core import cgutils, config
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
    unbox,
)

from edgegym.jit import kernel
from edgegym.simulator.parts import PartCompiler

T = TypeVar("T")

_OF_PARTS: dict[str, Any] = {
    "cache": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": PartCompiler,
}


def helper(function: Callable[..., Any]) -> Any:
    """Compile a function that only kernels call.

    Parameters
    ----------
    function : callable
        A function in Numba's nopython subset.

    Returns
    -------
    callable
        Not callable from Python, unless with ``NUMBA_DISABLE_JIT=1``.
    """
    return kernel(function, **_OF_PARTS)


def inlined(function: Callable[..., Any]) -> Any:
    """Compile a helper that is inlined into every caller.

    Parameters
    ----------
    function : callable
        A short function in Numba's nopython subset, or one with a single caller.

    Returns
    -------
    callable
        Not callable from Python, unless with ``NUMBA_DISABLE_JIT=1``.
    """
    return kernel(function, forceinline=True, **_OF_PARTS)


def entry_point(function: Any, *arguments: Any) -> Callable[..., Any]:
    """Return a kernel that no longer looks at the types of its arguments.

    To resolve the types of a tuple of fifty arrays takes four times as long as to pass it.

    Parameters
    ----------
    function : callable
        A kernel.
    *arguments : object
        Arguments of the types with which the result will be called, and no others.

    Returns
    -------
    callable
        Compiled; the function itself with ``NUMBA_DISABLE_JIT=1``.
    """
    if getattr(config, "DISABLE_JIT", 0):
        return function
    return function.compile(tuple(typeof(argument) for argument in arguments))


def _without_owner(context: Any, builder: Any, kind: Any, value: Any, columns: int | None) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        array.parent = cgutils.get_null_value(array.parent.type)
        if columns is not None:
            shape = cgutils.unpack_tuple(builder, array.shape)
            shape[0] = context.get_constant(types.intp, 0)
            if columns > 0:
                shape[1] = context.get_constant(types.intp, columns)
            array.shape = cgutils.pack_array(builder, shape)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        group = getattr(kind, "instance_class", None)
        columns_of = getattr(group, "COLUMNS", None)
        for index in range(len(kinds)):
            element = builder.extract_value(value, index)
            known = None if columns_of is None else dict(columns_of).get(kinds.fields[index], 0)
            element = _without_owner(context, builder, kinds[index], element, known)
            value = builder.insert_value(value, element, index)
    return value


@intrinsic
def _borrow(typing_context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _without_owner(context, builder, signature.args[0], arguments[0], None)

    return value(value), build


def _same(value: T) -> T:
    """Return the argument: without compilation there are no counts to avoid."""
    return value


borrow: Any = _same if getattr(config, "DISABLE_JIT", 0) else _borrow
"""Return an array, or a tuple of arrays and numbers, without ownership (kernels only).

The result must not outlive the kernel's own arguments. Where a tuple's class has ``COLUMNS``,
pairs of a name and a number of columns, its arrays lose their first length as well: they can only
be indexed, from 0 upwards, and elements of those named are found without reading any length. (Numba
looks the length up at every access, in case an index is negative.)
"""


@intrinsic
def _prefetch(typing_context: Any, array: Any, row: Any, column: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        view = context.make_array(kind)(context, builder, arguments[0])
        indices = arguments[1 : 1 + kind.ndim]
        address = cgutils.get_item_pointer(context, builder, kind, view, indices)
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0i8",
        )
        read, keep, data = number(0), number(3), number(1)
        builder.call(function, [builder.bitcast(address, byte), read, keep, data])
        return context.get_dummy_value()

    return types.none(array, types.intp, types.intp), build


def _stay(array: Any, row: int, column: int) -> None:
    """Do nothing: without compilation there is no memory to wait for."""


prefetch: Any = _stay if getattr(config, "DISABLE_JIT", 0) else _prefetch
"""Ask for an element, ``(array, row, column)``, so that it is near when it is needed.

The column is ignored for an array of one dimension.
"""


class Lent(types.Type):
    """A named tuple that lies in the frame of a kernel and is passed by its address."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        # The tuple's own name has thousands of characters, and stands in the name of every helper.
        digest = hashlib.sha256(kind.name.encode()).hexdigest()[:16]
        super().__init__(name=f"Lent({digest})")

    def field(self, name: str) -> Any:
        """Return the type of an attribute, None if there is none."""
        if name not in self.kind.fields:
            return None
        kind = self.kind[self.kind.fields.index(name)]
        return Lent(kind) if isinstance(kind, types.BaseTuple) and hasattr(kind, "fields") else kind


@register_model(Lent)
class _LentModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        address = manager.lookup(kind.kind).get_value_type().as_pointer()
        super().__init__(manager, kind, address)


@infer_getattr
class _LentAttributes(AttributeTemplate):
    key = Lent

    def generic_resolve(self, typ: Any, attr: str) -> Any:
        """Return the type of an attribute."""
        return typ.field(attr)


@lower_getattr_generic(Lent)
def _lent_attribute(context: Any, builder: Any, kind: Any, value: Any, name: str) -> Any:
    index, number = kind.kind.fields.index(name), ir.IntType(32)
    address = builder.gep(value, [number(0), number(index)], inbounds=True)
    field = kind.field(name)
    if isinstance(field, Lent):
        return address
    columns_of = getattr(getattr(kind.kind, "instance_class", None), "COLUMNS", None)
    known = None if columns_of is None else dict(columns_of).get(name, 0)
    return _without_owner(context, builder, field, builder.load(address), known)


@intrinsic
def _lend(typing_context: Any, value: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    def copy(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # In the frame of the kernel nothing else can point to it, and the optimiser knows.
        kind = context.get_value_type(signature.args[0].kind)
        frame = cgutils.alloca_once(builder, kind)
        size = context.get_constant(types.intp, context.get_abi_sizeof(kind))
        cgutils.raw_memcpy(builder, frame, arguments[0], size, 1)
        return frame

    return (value(value), copy) if isinstance(value, Lent) else (Lent(value)(value), build)


lend: Any = _same if getattr(config, "DISABLE_JIT", 0) else _lend
"""Return a named tuple of arrays, numbers and such tuples by reference (kernels only).

As :data:`borrow`, but helpers get one address instead of all that the tuple holds: however wide it
is, passing it costs nothing, and compiling a helper takes as long as what the helper does. In
return the places of arrays are read from memory when they are used. Such a tuple has attributes,
and no elements: it can't be indexed or unpacked.
"""


class Bound:
    """A named tuple of arrays in memory of its own, which kernels get by its address.

    To take a tuple of two hundred arrays apart costs more than most calls do; this is done once.
    A kernel passes what it is given through :data:`lend`, as it would the tuple itself.

    Attributes
    ----------
    kind : Lent
        Its type in a kernel.
    address : int
        Where it lies.
    """

    def __init__(self, value: Any, kind: Lent, memory: Any) -> None:
        self.kind = kind
        self.address = memory.ctypes.data
        self._kept = (value, memory)


@typeof_impl.register(Bound)
def _type_of_bound(value: Bound, context: Any) -> Lent:
    return value.kind


@unbox(Lent)
def _address_of_bound(kind: Any, value: Any, c: Any) -> Any:
    address = c.pyapi.object_getattr_string(value, "address")
    pointer = c.pyapi.long_as_voidptr(address)
    c.pyapi.decref(address)
    return NativeValue(c.builder.bitcast(pointer, c.context.get_value_type(kind)))


@intrinsic
def _store_value(typing_context: Any, value: Any, memory: Any) -> Any:
    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.args[0])
        words = context.get_constant(types.intp, -(-context.get_abi_sizeof(kind) // 8))
        array = context.make_array(signature.args[1])(context, builder, arguments[1])
        with builder.if_then(builder.icmp_signed(">=", array.nitems, words)):
            builder.store(arguments[0], builder.bitcast(array.data, kind.as_pointer()))
        return words

    return types.intp(value, memory), build


_store: Any = _store_value


@kernel
def _keep(value: Any, memory: Any) -> int:
    """Write a tuple into memory if it fits; return how many words it takes."""
    return _store(value, memory)


class Binder:
    """Binds tuples of one type, that of the first."""

    def __init__(self) -> None:
        self._kind: Lent | None = None
        self._keep: Callable[..., int] = _keep
        self._words = 0

    def __call__(self, value: Any) -> Any:
        """Return a tuple for kernels, valid as long as its arrays are not replaced.

        Parameters
        ----------
        value : tuple
            A named tuple of arrays, numbers and such tuples.

        Returns
        -------
        Bound
            The tuple itself with ``NUMBA_DISABLE_JIT=1``.
        """
        if getattr(config, "DISABLE_JIT", 0):
            return value
        kind = self._kind
        if kind is None:
            nothing = np.empty(0, dtype=np.int64)
            self._keep = entry_point(_keep, value, nothing)
            self._words = self._keep(value, nothing)
            self._kind = kind = Lent(typeof(value))
        memory = np.empty(self._words, dtype=np.int64)
        self._keep(value, memory)
        return Bound(value, kind, memory)
