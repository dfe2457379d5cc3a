"""How functions are compiled for the CPU: without the interpreter lock, and no more often than needed.

Compiled code is kept on disk under a stamp of all that it depends on, so that none is loaded that was made of
other sources, or by another compiler.
"""

import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba import njit, types
from numba.core.caching import IndexDataCacheFile
from numba.core.ccallback import CFunc

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def _stamp() -> str:
    """A fingerprint of all code that is compiled, and of what compiles it."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    return sha256(b"".join([*(path.read_bytes() for path in files), repr(versions).encode()])).hexdigest()


_STAMP = _stamp()


def _mark(cache: Any, more: str = "") -> None:
    """Let a cache on disk hold only what is made of the present sources: its files have the stamp as a name.

    numba looks at the file of the function itself, and at its own version, but only after it has read a list
    with classes of ours, which may have other names by now; and another process may still write files of
    before.
    """
    stamp = sha256(f"{_STAMP}{more}".encode()).hexdigest()
    name = f"{cache._impl.filename_base}.{stamp[:12]}"
    cache._cache_file = IndexDataCacheFile(cache._cache_path, name, stamp)


def exposed(function: Any = None, **options: Any) -> Any:
    """Compile a function that is called from Python, and keep the result on disk."""
    if function is None:
        return lambda function: exposed(function, **options)
    dispatcher = njit(**{**_OPTIONS, **options}, cache=True)(function)
    _mark(dispatcher._cache)
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


_kept: list[Any] = []  # compiled functions live as long as they are referred to


def address_of(signature: Any, function: Any, more: str = "") -> int:
    """Compile a function that compiled code calls by its address, and keep the result on disk.

    Parameters
    ----------
    signature : numba signature
    function : callable
        Of a name that no other function of its file has.
    more : str
        What it is made of besides the sources in this folder.
    """
    made = CFunc(function, (signature.args, signature.return_type), {}, {})
    made.enable_caching()
    _mark(made._cache, more)
    # numba would look at variables around the function too, which cannot be compared between processes
    made._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())
    made.compile()
    _kept.append(made)
    return made.address
