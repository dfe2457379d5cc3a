"""Whether Triton can compile our own kernels."""

import os
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from shutil import which


@cache
def has_triton() -> bool:
    """Whether kernels can be compiled for a GPU.

    On Linux Triton comes with torch. It multiplies float64 matrices since version 3.5; it needs a C compiler.
    """
    if find_spec("triton") is None or not any(map(which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return False
    numbers = version("triton").split(".")
    return (int(numbers[0]), int(numbers[1])) >= (3, 5)
