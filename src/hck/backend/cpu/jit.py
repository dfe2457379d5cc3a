"""How functions are compiled for the CPU: without the interpreter lock, and no more often than needed."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit, types

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def _stamp() -> str:
    """A fingerprint of all code that is compiled."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


_STAMP = _stamp()


def exposed(function: Any = None, **options: Any) -> Any:
    """Compile a function that is called from Python, and keep the result on disk.

    numba compiles it anew when its own file has changed; here, when any compiled code has.
    """
    if function is None:
        return lambda function: exposed(function, **options)
    dispatcher = njit(**{**_OPTIONS, **options}, cache=True)(function)
    cache = dispatcher._cache
    key = cache._index_key
    cache._index_key = lambda signature, codegen: (*key(signature, codegen), _STAMP)
    return dispatcher


def compiled(function: Any = None, **options: Any) -> Any:
    """Compile a function that is called from compiled code only, once for each type of number.

    numba would compile it anew for every constant among the arguments of a call, which takes a minute in all.
    """
    if function is None:
        return lambda function: compiled(function, **options)
    options = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
    dispatcher = njit(**options)(function)
    template = dispatcher.get_call_template

    def without_constants(args: Any, kws: Any) -> Any:
        return template(tuple(types.unliteral(kind) for kind in args), kws)

    dispatcher.get_call_template = without_constants
    return dispatcher
