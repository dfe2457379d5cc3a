"""Kernel values on the CPU: from profiles and tensors to compiled code (`hck.backend.cpu.kernels`)."""

from functools import cache
from typing import NamedTuple

from torch import Tensor

from hck.backend.blocks import Blocks
from hck.backend.cpu import kernel_tile, kernels, tile
from hck.backend.cpu.arrays import flat
from hck.backend.kernels import Formula, Profile


class CompiledProfile(NamedTuple):
    """A profile as compiled code takes it; `GIVEN` where values are computed beforehand."""

    tile: int  # where the code is that computes a tile of values from differences of points
    expanded: int  # where that is which computes it from norms and products; 0 if there is none
    inverse: float  # 1 over the lengthscale
    amplitude: float
    shape: float


GIVEN = CompiledProfile(0, 0, 1.0, 1.0, 1.0)


def compiled_profile(profile: Profile, itemsize: int) -> CompiledProfile:
    """A profile for numbers of this size."""
    numbers = (profile.amplitude, profile.shape)
    tiles = _tiles(profile.formula, itemsize)
    return CompiledProfile(*tiles, 1 / float(profile.lengthscale), *map(float, numbers))


def evaluate(
    profile: Profile, left: tuple[Tensor, Blocks], right: tuple[Tensor, Blocks], upper: bool, out: Tensor
) -> None:
    """See `hck.backend.kernels.fused_cross`."""
    (x, rows), (z, columns), size = left, right, out.itemsize
    tile.provide(size)
    points = flat(x), flat(rows.index), flat(z), flat(columns.index)
    kernels.evaluate(*points, compiled_profile(profile, size), flat(out), *out.shape, x.shape[1], upper)


@cache
def _tiles(formula: Formula, itemsize: int) -> tuple[int, int]:
    """Where the compiled code of a formula is: from differences, and from norms and products."""
    provide = kernel_tile.provide
    can_expand = formula.smooth and not formula.manhattan
    return provide(formula, itemsize, False), provide(formula, itemsize, True) if can_expand else 0
