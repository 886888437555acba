"""A Numba pipeline for functions that only compiled functions call.

Numba turns every function that it compiles into machine code by itself, with all that it calls, and
then does the same once more for the caller, and so on upwards. In an event loop of a hundred small
functions, ten calls deep, nearly all of that is thrown away. A *part* is only translated; whoever
calls it takes the translation over, and the whole is optimised and assembled once, at the top.
"""

from types import MethodType
from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


def _leave_as_it_is(library: Any) -> None:
    """Optimise nothing: the caller's turn comes."""


def _close(library: Any) -> None:
    """Let callers link the library, and no machine see it."""
    library._finalize_dynamic_globals()
    library._verify_declare_only_symbols()
    library._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Lowering to a library that is neither optimised nor assembled."""

    _name = "edgegym_part_lowering"

    def run_pass(self, state: Any) -> Any:
        """Lower a function, and let others call it."""
        context = state.targetctx
        library = context.codegen().create_library(state.func_id.func_qualname)
        library._optimize_final_module = MethodType(_leave_as_it_is, library)
        library._finalize_final_module = MethodType(_close, library)
        state.library = library
        state.flags.no_compile = True
        changed = super().run_pass(state)
        result = state["cr"]
        description = result.fndesc
        # Something that a dispatcher can keep; nobody calls it.
        nowhere = _dynfunc.make_function(
            description.lookup_module(),
            description.qualname.split(".")[-1],
            "part of kernels",
            0,
            result.env,
            (library,),
        )
        context.insert_user_function(nowhere, description, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = result._replace(cfunc=nowhere)
        return changed


class PartCompiler(CompilerBase):
    """Compiles parts."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own pipeline with the lowering exchanged."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "edgegym part")
        manager.passes = [
            (_PartLowering, reason) if kind is NativeLowering else (kind, reason)
            for kind, reason in manager.passes
        ]
        manager._finalized = False
        manager.finalize()
        return [manager]
