"""How functions are compiled for the CPU: without the interpreter lock, and no more often than needed.

Compiled code is kept on disk under a stamp of all that it depends on, so that none is loaded that was made of
other sources, or by another compiler.
"""

import sys
from collections.abc import Callable, Hashable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import llvmlite
import numba
import numpy as np
from numba import njit, types
from numba.core.caching import Cache, IndexDataCacheFile
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.typing import Signature

from hck.backend.compilation import counted
from hck.backend.cpu.libraries import Part, Shared, compiler
from hck.backend.interrupts import interruptible
from hck.backend.progress import say

Function: TypeAlias = Callable[..., Any]  # of Python, to be compiled

_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": {"contract"}}


def _stamp() -> str:
    """A fingerprint of all code that is compiled, and of what compiles it."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    versions = (sys.version, numba.__version__, llvmlite.__version__, np.__version__)
    return sha256(b"".join([*(path.read_bytes() for path in files), repr(versions).encode()])).hexdigest()


_STAMP = _stamp()


class _CacheFiles:
    """What a function's cache has on disk, with a list of one entry for each type of arguments.

    In numba's own list, of all types, two processes that save at the same time may lose an entry, or give
    the code of one type to the other. The names of all files have the stamp, so that they hold only what is
    made of the present sources: numba looks at the file of the function itself, and at its own version, but
    only after it has read a list with classes of ours, which may have other names by now; and another process
    may still write files of before.
    """

    def __init__(self, cache: Cache, more: str = "") -> None:
        self.stamp = sha256(f"{_STAMP}{more}".encode()).hexdigest()
        self.path, self.name = cache._cache_path, f"{cache._impl.filename_base}.{self.stamp[:12]}"

    def _of(self, key: Hashable) -> IndexDataCacheFile:
        types = sha256(repr(key).encode()).hexdigest()[:12]
        return IndexDataCacheFile(self.path, f"{self.name}.{types}", self.stamp)

    def load(self, key: Hashable) -> Any:
        return self._of(key).load(key)

    def save(self, key: Hashable, data: Any) -> None:
        self._of(key).save(key, data)


@cache
def _say_what_takes_long(folder: str | None) -> None:
    kept = f"keeps them in {folder}" if folder else "cannot keep them: set NUMBA_CACHE_DIR to a folder"
    say(f"hck compiles its inner loops for this processor, which takes seconds, and {kept}")


def _keep_on_disk(compiled: Any, more: str = "") -> bool:
    """Keep on disk what is compiled; whether there is a folder for it that can be written."""
    try:
        compiled.enable_caching()
    except RuntimeError:
        return False
    compiled._cache._cache_file = _CacheFiles(compiled._cache, more)
    return True


def exposed(function: Function | None = None, **options: Any) -> Any:
    """Compile a function that is called from Python, and keep the result on disk, if that is possible."""
    if function is None:
        return lambda function: exposed(function, **options)
    whole = compiler(JITCodeLibrary, begin=lambda: _say_what_takes_long(dispatcher._cache.cache_path))
    dispatcher = njit(**{**_OPTIONS, **options}, pipeline_class=whole)(function)
    _keep_on_disk(dispatcher)
    dispatcher.compile = counted(interruptible(dispatcher.compile))
    return dispatcher


def compiled(function: Function | None = None, **options: Any) -> Any:
    """Compile a small function that becomes a part of those that call it, from compiled code only."""
    if function is None:
        return lambda function: compiled(function, **options)
    return _inside(function, pipeline_class=_AS_PART, **options)


def shared(function: Function) -> Any:
    """Compile a function that is called from compiled code only, once for each type of number."""
    return _inside(function, pipeline_class=_SHARED)


_AS_PART, _SHARED = compiler(Part), compiler(Shared, f"hck{_STAMP[:16]}")


def _inside(function: Function, **options: Any) -> Any:
    """Compile a function for compiled code, but not anew for every constant in a call, as numba would."""
    options = {**_OPTIONS, "no_cpython_wrapper": True, "no_cfunc_wrapper": True, **options}
    dispatcher = njit(**options)(function)
    template = dispatcher.get_call_template

    def without_constants(args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> tuple:
        return template(tuple(map(types.unliteral, args)), kws)

    dispatcher.get_call_template = without_constants
    return dispatcher


_kept: list[CFunc] = []  # compiled functions live as long as they are referred to


def address_of(signature: Signature, function: Function, more: str = "") -> int:
    """Compile a function that compiled code calls by its address, and keep the result on disk.

    Its `__qualname__` is one that no other function of its file has; `more` is what it is made of besides the
    sources in this folder.
    """
    made = CFunc(function, (signature.args, signature.return_type), {}, {})
    if _keep_on_disk(made, more):
        # numba would look at variables around the function too, which cannot be compared between processes
        made._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple())
    counted(interruptible(made.compile))()
    _kept.append(made)
    return made.address
