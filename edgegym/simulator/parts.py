"""A Numba pipeline for functions that only compiled functions call.

Numba turns every function that it compiles into machine code by itself, with all that it calls, and
then does the same once more for the caller, and so on upwards. In an event loop of a hundred small
functions, ten calls deep, nearly all of that is thrown away. A *part* is only translated; its
callers pass its translation on, and the whole is linked, optimised and assembled once, at the top.
"""

from typing import Any

from llvmlite import binding
from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core import typed_passes, untyped_passes
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

# These make nothing of what parts consist of: numbers, elements of arrays, and calls.
_NEEDLESS = (
    untyped_passes.FindLiterallyCalls,
    untyped_passes.InlineClosureLikes,
    untyped_passes.InlineInlinables,
    untyped_passes.LiteralPropagationSubPipelinePass,
    untyped_passes.LiteralUnroll,
    untyped_passes.MakeFunctionToJitFunction,
    untyped_passes.RewriteDynamicRaises,
    untyped_passes.WithLifting,
    typed_passes.DumpParforDiagnostics,
    typed_passes.InlineOverloads,
    typed_passes.NopythonRewrites,
)


class _Translation(JITCodeLibrary):
    """A function that is neither linked nor assembled, for callers that will be."""

    def _optimize_functions(self, ll_module: Any) -> None:
        """Tidy the function itself, so that its callers take over less."""
        ll_module.data_layout = self._codegen._data_layout
        for function in ll_module.functions:
            if not function.is_declaration:
                manager, builder = self._codegen._function_pass_manager()
                manager.run(function, builder)

    def finalize(self) -> None:
        """Let callers link the library, and no machine see it."""
        self._raise_if_finalized()
        for library in self._linking_libraries:
            self._reload_init.update(library._reload_init)
        self._finalize_dynamic_globals()
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the function, to be linked into several callers."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = binding.Linkage.linkonce_odr
        return self._final_module

    @property
    def with_all_it_calls(self) -> tuple[Any, ...]:
        """The library, and those of all functions called by it, or by them."""
        return tuple(dict.fromkeys((self, *self._linking_libraries)))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Lowering to a library that is neither linked nor assembled."""

    _name = "edgegym_part_lowering"

    def run_pass(self, state: Any) -> Any:
        """Lower a function, and let others call it."""
        context = state.targetctx
        library = _Translation(context.codegen(), state.func_id.func_qualname)
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
        context.insert_user_function(nowhere, description, library.with_all_it_calls)
        state.reload_init.extend(library._reload_init)
        state["cr"] = result._replace(cfunc=nowhere)
        return changed


class PartCompiler(CompilerBase):
    """Compiles parts."""

    def define_pipelines(self) -> list[Any]:
        """Return Numba's own pipeline without what parts do without."""
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state, "edgegym part")
        manager.passes = [
            (_PartLowering, reason) if kind is NativeLowering else (kind, reason)
            for kind, reason in manager.passes
            if kind not in _NEEDLESS
        ]
        manager._finalized = False
        manager.finalize()
        return [manager]
