"""How functions are compiled for the CPU: without the interpreter lock, and no more often than needed."""

from typing import Any

from numba import njit, types

OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}
exposed = njit(**OPTIONS, cache=True)  # called from Python


def compiled(function: Any, **options: Any) -> Any:
    """Compile a function that is called from compiled code only, once for each type of number.

    numba would compile it anew for every constant among the arguments of a call, which takes a minute in all.
    """
    options = {**OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
    dispatcher = njit(**options)(function)
    template = dispatcher.get_call_template

    def without_constants(args: Any, kws: Any) -> Any:
        return template(tuple(types.unliteral(kind) for kind in args), kws)

    dispatcher.get_call_template = without_constants
    return dispatcher
