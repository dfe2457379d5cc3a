"""How compiled functions are put together: some become a part of their callers, others are called.

numba links a function into all that call it, at each level of calls, and each time it optimises the whole and
writes its instructions anew: that was two thirds of the time that compilation took. Here a function is either
a `Part`, optimised only as such, or `Shared`: compiled once for each type of number, and called by its name,
which is the same in all processes that have the same sources.
"""

from collections.abc import Callable
from typing import Any

from llvmlite.binding import ModuleRef, parse_assembly
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import cpu_target

from hck.backend.collector import collector_paused


class _NoEnvironment:
    """Stands in for what tells compiled code of Python's objects: ours, inside, has none."""

    @staticmethod
    def set_env(name: str, environment: object) -> None:
        pass


class _Inside(JITCodeLibrary):
    """Code that is called from compiled code only."""

    codegen = _NoEnvironment

    def _optimize_functions(self, ll_module: ModuleRef) -> None:
        ll_module.data_layout = self._codegen._data_layout  # what is done to whole modules does the rest

    def get_pointer_to_function(self, name: str) -> int:
        self._ensure_finalized()
        return 0


class Part(_Inside):
    """Code that becomes a part of all that calls it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalized = True


class Shared(_Inside):
    """Code that is made into instructions once, and called by its name."""

    def finalize(self) -> None:
        (name,) = (function.name for function in self._final_module.functions if not function.is_declaration)
        if name in _loaded:
            self._finalized = True
        else:
            super().finalize()
            _loaded[name] = _MachineCode(name, list(self._reload_init), self.serialize_using_object_code())
        self._reload_init = {_loaded[name]}

    def _get_module_for_linking(self) -> ModuleRef:
        self._ensure_finalized()
        return parse_assembly("")


class _MachineCode:
    """The instructions of shared code, and those that it calls; kept on disk with all that needs them."""

    def __init__(self, name: str, needs: list[Callable[[], None]], state: tuple) -> None:
        self.name, self.needs, self.state = name, needs, state

    def __call__(self) -> None:
        """Load them, unless they are there. numba calls this before it loads what needs them."""
        if self.name not in _loaded:
            for load in self.needs:
                load()
            cpu_target.target_context.codegen().unserialize_library(self.state)
            _loaded[self.name] = self


_loaded: dict[str, _MachineCode] = {}  # by name, what this process has


def compiler(
    library: type[JITCodeLibrary], stamp: str = "", begin: Callable[[], object] = int
) -> type[Compiler]:
    """What numba compiles functions with, so that they end up in such a library.

    The name of a function has the stamp instead of numba's count of all that this process has compiled.
    `begin` is called before.
    """

    class _Compiler(Compiler):
        def compile_extra(self, function: Callable[..., Any]) -> Any:
            begin()
            self.state.library = library(self.state.targetctx.codegen(), function.__qualname__)
            self.state.library.enable_object_caching()
            with collector_paused():
                return super().compile_extra(function)

        def _compile_core(self) -> Any:
            if stamp:
                self.state.func_id.unique_id = stamp
            return super()._compile_core()

    return _Compiler
