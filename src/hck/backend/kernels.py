"""Kernel values between blocks of dense points, without storing anything but the result.

A kernel's function of the distance is written once, in plain Python (`Formula`); torch, the CPU's vector
registers and Triton each put their own exp, log and sqrt into it. Here kernels are isotropic: points have
been placed (`hck.kernels.placement`), and one lengthscale is left.
"""

import dis
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from importlib import import_module
from types import FunctionType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.gradients import wants_gradient
from hck.backend.linalg import flat, has_triton

# Beyond, distances are a matrix product's work; but on a CPU not in small blocks, where to gather and to
# centre the points takes longer than the product.
_MOST_FEATURES, _SMALL = 256, 96
_KNOWN = ("exp", "log", "sqrt")
_LOOKUPS = ("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD", "LOAD_NAME", "IMPORT_NAME")


@dataclass(frozen=True)
class Formula:
    """A kernel's function f of the distance, from which the code of every machine is made.

    Attributes
    ----------
    function : callable
        f(s) with f(0) = 1, or f(s, shape) with one more number; s is ‖x − x'‖², in units of the lengthscale.
        It is written with numbers, + − * / and the functions `exp`, `log` and `sqrt` of s alone, for which
        each machine has its own.
    manhattan : bool
        Whether s is ‖x − x'‖₁ instead.
    smooth : bool
        Whether f has a derivative in s at 0, so that a small error of s is as small an error of f.
    """

    function: Callable[..., Any]
    manhattan: bool = False
    smooth: bool = False

    def __post_init__(self) -> None:
        code = getattr(self.function, "__code__", None)
        if code is None or self.function.__closure__ or code.co_argcount not in (1, 2):
            raise TypeError(f"a formula is a plain function f(s) or f(s, shape), got {self.function!r}")
        if any(hasattr(constant, "co_code") for constant in code.co_consts):
            raise TypeError(f"the formula {self.name} has a function inside, which compiled code has not")
        for step in dis.get_instructions(code):
            if step.opname in _LOOKUPS and (step.opname != "LOAD_GLOBAL" or step.argval not in _KNOWN):
                raise ValueError(
                    f"the formula {self.name} uses {step.argval!r}; compiled code knows numbers, + - * / and "
                    f"the functions {', '.join(_KNOWN)}"
                )

    def __call__(self, s: Any, shape: Any) -> Any:
        return self.function(s, shape) if self.shaped else self.function(s)

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def shaped(self) -> bool:
        """Whether it takes one more number."""
        return self.function.__code__.co_argcount == 2

    @cached_property
    def fingerprint(self) -> str:
        """What it does, as a few letters."""
        code = self.function.__code__
        text = repr((code.co_code, code.co_consts, code.co_names, code.co_varnames))
        return sha256(text.encode()).hexdigest()[:16]

    def with_functions(self, **functions: Any) -> FunctionType:
        """The same function, with other meanings of exp, log and sqrt."""
        known = {"__name__": self.function.__module__, **functions}
        made = FunctionType(self.function.__code__, known, self.name)
        made.__qualname__ = f"{self.name}_{self.fingerprint}"
        return made


@dataclass(frozen=True)
class Profile:
    """An isotropic kernel: amplitude · f(s) with s = ‖x − x'‖² / lengthscale², or ‖x − x'‖₁ / lengthscale.

    Attributes
    ----------
    formula : Formula
    lengthscale, amplitude, shape : float, or Tensor of shape ()
    """

    formula: Formula
    lengthscale: float | Tensor = 1.0
    amplitude: float | Tensor = 1.0
    shape: float | Tensor = 1.0


class Recipe(NamedTuple):
    """A profile as compiled code for the CPU takes it; `GIVEN` where values are computed beforehand."""

    tile: int  # where the code is that computes a tile of values from differences of points
    expanded: int  # where that is which computes it from norms and products; 0 if there is none
    inverse: float  # 1 over the lengthscale
    amplitude: float
    shape: float


GIVEN = Recipe(0, 0, 1.0, 1.0, 1.0)


def fusable(x: Tensor, rows: Blocks, z: Tensor, columns: Blocks) -> bool:
    """Whether compiled code should evaluate profiles between these blocks."""
    on_cpu = x.device.type == "cpu"
    small = on_cpu and max(rows.index.shape[1], columns.index.shape[1]) <= _SMALL
    suited = (on_cpu or has_triton()) and (small or x.shape[1] <= _MOST_FEATURES)
    return suited and not wants_gradient(x, z)


def fused_cross(
    profile: Profile,
    x: Tensor,
    rows: Blocks,
    z: Tensor,
    columns: Blocks,
    upper: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Values between blocks of rows of x (points, d) and of z, 0 where either side is padding.

    With `upper`, only what lies on and above the diagonal counts. `out` is memory for the result.
    """
    (members, n), m, d = rows.index.shape, columns.index.shape[1], x.shape[1]
    out = x.new_empty(members, n, m) if out is None else out
    if x.device.type != "cpu":
        numbers = numbers_of(profile, x.dtype, x.device)
        evaluate = import_module("hck.backend.cuda.kernels").evaluate
        evaluate(profile.formula, numbers, x, rows, z, columns, upper, out)
        return out
    left, right = flat(rows.index), flat(columns.index)
    compiled_kernels(x.itemsize).evaluate(
        flat(x), left, flat(z), right, recipe(profile, x.itemsize), flat(out), members, n, m, d, upper
    )
    return out


@cache
def compiled_kernels(itemsize: int) -> Any:
    """The compiled code for numbers of this size, loaded when it is first used."""
    import_module("hck.backend.cpu.tile").provide(itemsize)
    return import_module("hck.backend.cpu.kernels")


def recipe(profile: Profile, itemsize: int) -> Recipe:
    """A profile for the CPU and numbers of this size."""
    tiles = _tiles(profile.formula, itemsize)
    return Recipe(*tiles, 1 / float(profile.lengthscale), float(profile.amplitude), float(profile.shape))


@cache
def _tiles(formula: Formula, itemsize: int) -> tuple[int, int]:
    """Where the compiled code of a formula is: from differences, and from norms and products."""
    provide = import_module("hck.backend.cpu.kernel_tile").provide
    can_expand = formula.smooth and not formula.manhattan
    return provide(formula, itemsize, False), provide(formula, itemsize, True) if can_expand else 0


def numbers_of(profile: Profile, dtype: torch.dtype, device: torch.device) -> Tensor:
    """1 over the lengthscale, the amplitude and the shape, (3,), without waiting for the device."""
    values = (profile.lengthscale, profile.amplitude, profile.shape)
    fixed = not any(isinstance(value, Tensor) for value in values)
    return (_numbers if fixed else _numbers.__wrapped__)(values, dtype, device)


@lru_cache(64)
def _numbers(values: tuple[float | Tensor, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    each = [
        value.detach().to(device, dtype)
        if isinstance(value, Tensor)
        else torch.full((), value, dtype=dtype, device=device)
        for value in values
    ]
    out = torch.stack(each)
    out[0].reciprocal_()
    return out
