"""A tile of kernel values, computed in vector registers: distances, and the kernel's formula of them.

There is a compiled function for each formula, made when it is first needed. Compiled code calls it by its
address.
"""

from collections.abc import Callable, Iterator

import torch
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic
from numba.types import Type

from hck.backend.cpu.jit import address_of
from hck.backend.cpu.tile import HEIGHTS, VECTOR_BYTES, plain, written
from hck.backend.cpu.vector import Vector, VectorWriter
from hck.backend.cpu.writer import INT, Grid, Values, Writer
from hck.backend.duals import Dual, of_duals
from hck.backend.kernels import Formula, farthest

HEIGHT = HEIGHTS[0]


@intrinsic
def evaluate_tile(typing, tile, amplitude, shape, c, at_c, ldc, a, at_a, lda, b, at_b, ldb, depth):
    """Kernel values between the columns of A (depth, HEIGHT) and of B (depth, two registers) into C.

    The columns are points, divided by the lengthscale; the row after the last has their squared norms.
    `tile` is an address that `provide` has returned.
    """
    i = types.intp
    return _called(types.void(i, c.dtype, c.dtype, c, i, i, a, i, i, b, i, i, i))


@intrinsic
def evaluate_slopes(
    typing, tile, shape, c, at_c, by_s, at_s, by_shape, at_shape, ldc, a, at_a, lda, b, at_b, ldb, depth
):  # fmt: skip
    """The same, without an amplitude, and with the derivatives of the values by the distance and the shape.

    `tile` is an address that `provide_slopes` has returned. The derivative by a distance of 0 is given as 0.
    """
    i = types.intp
    signature = types.void(i, c.dtype, c, i, by_s, i, by_shape, i, i, a, i, i, b, i, i, i)
    return _called(signature)


def _called(signature: Signature) -> tuple[Signature, Callable[..., Value]]:
    """Call the code at the address that is the first argument."""

    def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> None:
        tile, *given = plain(context, builder, signature.args, arguments)
        function = ir.FunctionType(ir.VoidType(), [value.type for value in given])
        builder.call(builder.inttoptr(tile, function.as_pointer()), given)

    return written(signature, write)


def provide(formula: Formula, itemsize: int, expanded: bool) -> int:
    """The address of the tile of a formula, for numbers of this size.

    With `expanded`, squared distances come from norms and products.
    """
    real = types.float64 if itemsize == 8 else types.float32
    signature = types.void(real, real, *[types.intp] * 7)

    def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> None:
        _KernelWriter(context, builder, real, formula, expanded).write_kernel(arguments)

    @intrinsic
    def body(typing, amplitude, shape, c, ldc, a, lda, b, ldb, depth):
        return written(signature, write)

    def tile(amplitude, shape, c, ldc, a, lda, b, ldb, depth):
        body(amplitude, shape, c, ldc, a, lda, b, ldb, depth)

    return _address(signature, tile, formula, "expanded" if expanded else "plain", itemsize)


def provide_slopes(formula: Formula, itemsize: int) -> int:
    """The address of the tile of a formula with its derivatives, for numbers of this size."""
    real = types.float64 if itemsize == 8 else types.float32
    signature = types.void(real, *[types.intp] * 9)

    def write(context: BaseContext, builder: IRBuilder, arguments: Values) -> None:
        _KernelWriter(context, builder, real, formula, False).write_slopes(arguments)

    @intrinsic
    def body(typing, shape, c, by_s, by_shape, ldc, a, lda, b, ldb, depth):
        return written(signature, write)

    def tile(shape, c, by_s, by_shape, ldc, a, lda, b, ldb, depth):
        body(shape, c, by_s, by_shape, ldc, a, lda, b, ldb, depth)

    return _address(signature, tile, formula, "slopes", itemsize)


def _address(
    signature: Signature, tile: Callable[..., None], formula: Formula, how: str, itemsize: int
) -> int:
    tile.__qualname__ = f"tile_{formula.name}_{formula.fingerprint}_{how}_{8 * itemsize}"
    return address_of(signature, tile, repr((formula.fingerprint, formula.manhattan, _most(itemsize))))


def _most(itemsize: int) -> float:
    return farthest(torch.float64 if itemsize == 8 else torch.float32)


class _KernelWriter(VectorWriter, Writer):
    """Writes the instructions of a tile of kernel values."""

    def __init__(
        self, context: BaseContext, builder: IRBuilder, of: Type, formula: Formula, expanded: bool
    ) -> None:
        super().__init__(context, builder, of, (HEIGHT, 2, VECTOR_BYTES * 8 // of.bitwidth))
        self.formula, self.manhattan, self.expanded = formula, formula.manhattan, expanded
        self.functions = {"exp": self.exp, "log": self.log, "sqrt": self.sqrt}

    def write_kernel(self, arguments: Values) -> None:
        amplitude, shape, c, ldc, *points = arguments
        function, step = self.formula.with_functions(**self.functions), self.bytes(ldc)
        scale = self.everywhere(amplitude)
        more = [Vector(self, self.everywhere(shape))] if self.formula.shaped else []
        for q, v, s in self.distances(points):
            value = function(Vector(self, s), *more)
            self.store(self.builder.fmul(scale, value.value), self.vector_at(c, step, q, v))

    def write_slopes(self, arguments: Values) -> None:
        shape, c, by_s, by_shape, ldc, *points = arguments
        function, step = self.formula.with_functions(**of_duals(**self.functions)), self.bytes(ldc)
        more = [Dual(Vector(self, self.everywhere(shape)), None, 1.0)] if self.formula.shaped else []
        zero = self.constant(0.0)
        for q, v, s in self.distances(points):
            found = function(Dual(Vector(self, s), 1.0, None), *more)
            slope, other = (Vector(self, zero) + (each or 0.0) for each in found.slopes)
            at_zero = self.builder.fcmp_ordered("==", s, zero)
            slope = self.builder.select(at_zero, zero, slope.value)
            for value, at in ((found.value.value, c), (slope, by_s), (other.value, by_shape)):
                self.store(value, self.vector_at(at, step, q, v))

    def distances(self, arguments: Values) -> Iterator[tuple[int, int, Value]]:
        """The distances of a tile: row, number of the register in it, and register."""
        a, lda, b, ldb, depth = arguments
        lda, ldb = self.bytes(lda), self.bytes(ldb)
        zero = [[self.constant(0.0) for _ in self.vectors] for _ in self.rows]
        sums = self.over_depth(zero, (a, lda, INT(self.size)), (b, ldb), depth)
        if self.expanded:
            norms = [self.builder.add(x, self.builder.mul(ld, depth)) for x, ld in ((a, lda), (b, ldb))]
            self.complete(sums, *norms)
        most = self.constant(_most(self.size))
        for q in self.rows:
            for v in self.vectors:
                s = sums[q][v]
                yield q, v, self.builder.select(self.builder.fcmp_ordered(">", s, most), most, s)

    def accumulate(self, left: Value, right: list[Value], sums: list[Value]) -> list[Value]:
        """Σ (a − b)², or Σ |a − b|, or, to be completed, Σ a b."""
        builder, here = self.builder, self.everywhere(left)
        if self.expanded:
            return [builder.call(self.fma, [here, right[v], sums[v]]) for v in self.vectors]
        gaps = [builder.fsub(here, right[v]) for v in self.vectors]
        if self.manhattan:
            return [builder.fadd(sums[v], self.call("fabs", gaps[v])) for v in self.vectors]
        return [builder.call(self.fma, [gaps[v], gaps[v], sums[v]]) for v in self.vectors]

    def complete(self, sums: Grid, norms_a: Value, norms_b: Value) -> None:
        """‖a‖² + ‖b‖² − 2⟨a, b⟩ in place of ⟨a, b⟩; not below 0."""
        builder, zero = self.builder, self.constant(0.0)
        right = [self.load(self.vector_at(norms_b, norms_b, 0, v)) for v in self.vectors]
        for q in self.rows:
            left = self.everywhere(self.number(builder.add(norms_a, INT(q * self.size))))
            for v in self.vectors:
                both = builder.fadd(left, right[v])
                s = self.multiply_add(sums[q][v], self.constant(-2.0), both)
                sums[q][v] = builder.select(builder.fcmp_ordered(">", s, zero), s, zero)
