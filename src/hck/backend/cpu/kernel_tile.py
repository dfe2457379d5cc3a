"""A tile of kernel values, computed in vector registers: distances, and the kernel's formula of them.

There is a compiled function for each formula, made when it is first needed. Compiled code calls it by its
address.
"""

import torch
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba import types
from numba.core.base import BaseContext
from numba.extending import intrinsic
from numba.types import Type

from hck.backend.cpu.jit import address_of
from hck.backend.cpu.tile import HEIGHTS, VECTOR_BYTES, plain, written
from hck.backend.cpu.vector import Vector, VectorWriter
from hck.backend.cpu.writer import INT, Grid, Values, Writer
from hck.backend.kernels import Formula, farthest

HEIGHT = HEIGHTS[0]


@intrinsic
def evaluate_tile(typing, tile, amplitude, shape, c, at_c, ldc, a, at_a, lda, b, at_b, ldb, depth):
    """Kernel values between the columns of A (depth, HEIGHT) and of B (depth, two registers) into C.

    The columns are points, divided by the lengthscale; the row after the last has their squared norms.
    `tile` is an address that `provide` has returned.
    """
    i = types.intp
    signature = types.void(i, c.dtype, c.dtype, c, i, i, a, i, i, b, i, i, i)

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

    how = "expanded" if expanded else "plain"
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
        self.manhattan, self.shaped, self.expanded = formula.manhattan, formula.shaped, expanded
        self.function = formula.with_functions(exp=self.exp, log=self.log, sqrt=self.sqrt)

    def write_kernel(self, arguments: Values) -> None:
        amplitude, shape, c, ldc, a, lda, b, ldb, depth = arguments
        ldc, lda, ldb = map(self.bytes, (ldc, lda, ldb))
        zero = [[self.constant(0.0) for _ in self.vectors] for _ in self.rows]
        sums = self.over_depth(zero, (a, lda, INT(self.size)), (b, ldb), depth)
        if self.expanded:
            norms = [self.builder.add(x, self.builder.mul(ld, depth)) for x, ld in ((a, lda), (b, ldb))]
            self.complete(sums, *norms)
        most = self.constant(_most(self.size))
        scale = self.everywhere(amplitude)
        more = [Vector(self, self.everywhere(shape))] if self.shaped else []
        for q in self.rows:
            for v in self.vectors:
                s = sums[q][v]
                s = self.builder.select(self.builder.fcmp_ordered(">", s, most), most, s)
                value = self.function(Vector(self, s), *more)
                value = self.builder.fmul(scale, value.value)
                self.store(value, self.vector_at(c, ldc, q, v))

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
