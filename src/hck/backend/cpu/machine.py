"""The CPU: compiled code, loaded when it is first used, since that takes a second."""

from functools import cache
from types import ModuleType

import torch
from torch import Tensor

from hck.backend.blocks import Segments
from hck.backend.cuts import Directions, Halvings
from hck.backend.interrupts import interruptible
from hck.backend.kernels import DenseCross
from hck.backend.left_out import Gradient
from hck.backend.machine import Algebra, Machine
from hck.backend.steps import Steps

# Beyond so many features distances are a matrix product's work; but not in small blocks, where to gather and
# to centre the points takes longer than the product.
_MOST_FEATURES, _SMALL = 256, 96


class CPU(Machine):
    """The machine itself; all that takes long is compiled."""

    def send(self, tensor: Tensor, device: torch.device) -> Tensor:
        return tensor

    def algebra(self, dtype: torch.dtype) -> Algebra:
        return _algebra(dtype.itemsize)

    def steps(self, dtype: torch.dtype) -> Steps:
        return _steps(dtype.itemsize)

    def fuses(self, features: int, width: int) -> bool:
        return features <= _MOST_FEATURES or width <= _SMALL

    def evaluate(self, cross: DenseCross, upper: bool, out: Tensor) -> None:
        _kernels(out.itemsize).fill(cross, upper, out)

    def left_out_gradient(self) -> Gradient:
        return lambda sets: _left_out(sets.z.itemsize).gradient(sets)

    def window(self, x: Tensor, first: Tensor, count: int) -> Tensor:
        return x.narrow(0, int(first), count)

    def project(self, x: Tensor, rows: Tensor, directions: Tensor, which: Tensor) -> Tensor:
        return _halving().project(x, rows, directions, which)

    def separate(self, nodes: Segments, value: Tensor) -> tuple[Tensor, Tensor]:
        return _halving().separate(nodes, value)

    def halve_all(
        self, x: Tensor, order: Tensor, nodes: Halvings, directions: Directions
    ) -> tuple[Tensor, Tensor]:
        return _halving().halve_all(x, order, nodes, directions)


@cache
@interruptible
def _algebra(itemsize: int) -> Algebra:
    """For numbers of this size."""
    from hck.backend.cpu import stacks, tile

    tile.provide(itemsize)
    return stacks.CompiledAlgebra()


@cache
@interruptible
def _steps(itemsize: int) -> Steps:
    from hck.backend.cpu import sweeps, tile

    tile.provide(itemsize)
    return sweeps.CompiledSteps()


@cache
@interruptible
def _kernels(itemsize: int) -> ModuleType:
    from hck.backend.cpu import kernels, tile

    tile.provide(itemsize)
    return kernels


@cache
@interruptible
def _left_out(itemsize: int) -> ModuleType:
    from hck.backend.cpu import left_out, tile

    tile.provide(itemsize)
    return left_out


@cache
@interruptible
def _halving() -> ModuleType:
    from hck.backend.cpu import halving

    return halving
