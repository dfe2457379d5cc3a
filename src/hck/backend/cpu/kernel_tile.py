"""A tile of kernel values, computed in vector registers: distances, and the kernel's formula of them.

There is a compiled function for each formula, made when it is first needed. Compiled code calls it by its
address.
"""

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from hck.backend.cpu.jit import address_of
from hck.backend.cpu.tile import HEIGHTS, VECTOR_BYTES, Writer, plain
from hck.backend.cpu.vector import Vector, VectorWriter
from hck.backend.kernels import Formula

HEIGHT = HEIGHTS[0]


@intrinsic
def kernel_tile(
    typing: Any, tile: Any, amplitude: Any, shape: Any, c: Any, at_c: Any, ldc: Any, a: Any, at_a: Any,
    lda: Any, b: Any, at_b: Any, ldb: Any, depth: Any,
) -> Any:  # fmt: skip
    """Kernel values between the columns of A (depth, HEIGHT) and of B (depth, two registers) into C.

    The columns are points, divided by the lengthscale; the row after the last has their squared norms.
    `tile` is an address that `provide` has returned. For compiled code only.
    """
    i = types.intp
    signature = types.void(i, c.dtype, c.dtype, c, i, i, a, i, i, b, i, i, i)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        tile, *given = plain(context, builder, signature.args, arguments)
        function = ir.FunctionType(ir.VoidType(), [value.type for value in given])
        builder.call(builder.inttoptr(tile, function.as_pointer()), given)
        return context.get_dummy_value()

    return signature, generate


def provide(formula: Formula, itemsize: int, expanded: bool) -> int:
    """The address of the tile of a formula, for numbers of this size.

    With `expanded`, squared distances come from norms and products.
    """
    real = types.float64 if itemsize == 8 else types.float32
    signature = types.void(real, real, *[types.intp] * 7)

    @intrinsic
    def write(
        typing: Any, amplitude: Any, shape: Any, c: Any, ldc: Any, a: Any, lda: Any, b: Any, ldb: Any,
        depth: Any,
    ) -> Any:  # fmt: skip
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            _KernelWriter(context, builder, real, formula, expanded).write_kernel(arguments)
            return context.get_dummy_value()

        return signature, generate

    def tile(amplitude, shape, c, ldc, a, lda, b, ldb, depth):  # type: ignore[no-untyped-def]
        write(amplitude, shape, c, ldc, a, lda, b, ldb, depth)

    how = "expanded" if expanded else "plain"
    tile.__qualname__ = f"tile_{formula.name}_{formula.fingerprint}_{how}_{8 * itemsize}"
    return address_of(signature, tile, repr((formula.fingerprint, formula.manhattan)))


class _KernelWriter(VectorWriter, Writer):
    """Writes the instructions of a tile of kernel values."""

    def __init__(self, context: Any, builder: Any, kind: Any, formula: Formula, expanded: bool) -> None:
        super().__init__(context, builder, kind, HEIGHT, 2, VECTOR_BYTES * 8 // kind.bitwidth)
        self.manhattan, self.shaped, self.expanded = formula.manhattan, formula.shaped, expanded
        self.function = formula.with_functions(exp=self.exp, log=self.log, sqrt=self.sqrt)

    def write_kernel(self, arguments: Any) -> None:
        amplitude, shape, c, ldc, a, lda, b, ldb, depth = arguments
        ldc, lda, ldb = map(self.bytes, (ldc, lda, ldb))
        zero = [[self.constant(0.0) for _ in self.vectors] for _ in self.rows]
        sums = self.over_depth(zero, a, lda, ir.IntType(64)(self.size), b, ldb, depth)
        if self.expanded:
            self.complete(
                sums, *(self.builder.add(x, self.builder.mul(ld, depth)) for x, ld in ((a, lda), (b, ldb)))
            )
        scale = self.everywhere(amplitude)
        more = [Vector(self, self.everywhere(shape))] if self.shaped else []
        for q in self.rows:
            for v in self.vectors:
                value = self.function(Vector(self, sums[q][v]), *more)
                value = self.builder.fmul(scale, value.value)
                self.store(value, self.vector_at(c, ldc, q, v))

    def accumulate(self, left: Any, right: list[Any], sums: list[Any]) -> list[Any]:
        """Σ (a − b)², or Σ |a − b|, or, to be completed, Σ a b."""
        builder, here = self.builder, self.everywhere(left)
        if self.expanded:
            return [builder.call(self.fma, [here, right[v], sums[v]]) for v in self.vectors]
        gaps = [builder.fsub(here, right[v]) for v in self.vectors]
        if self.manhattan:
            return [builder.fadd(sums[v], self.call("fabs", gaps[v])) for v in self.vectors]
        return [builder.call(self.fma, [gaps[v], gaps[v], sums[v]]) for v in self.vectors]

    def complete(self, sums: list[list[Any]], norms_a: Any, norms_b: Any) -> None:
        """‖a‖² + ‖b‖² − 2⟨a, b⟩ in place of ⟨a, b⟩; not below 0."""
        builder, zero = self.builder, self.constant(0.0)
        right = [self.load(self.vector_at(norms_b, norms_b, 0, v)) for v in self.vectors]
        for q in self.rows:
            left = self.everywhere(self.number(builder.add(norms_a, ir.IntType(64)(q * self.size))))
            for v in self.vectors:
                both = builder.fadd(left, right[v])
                s = self.multiply_add(sums[q][v], self.constant(-2.0), both)
                sums[q][v] = builder.select(builder.fcmp_ordered(">", s, zero), s, zero)
