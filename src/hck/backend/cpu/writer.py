"""The instructions of a tile: loads, sums over the depth, and what is solved or factored in registers."""

from collections.abc import Sequence
from typing import TypeAlias

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.types import Type

Values: TypeAlias = Sequence[Value]
Grid: TypeAlias = list[list[Value]]  # a register for each row of a tile and each vector in it

INT = ir.IntType(64)


class Writer:
    """Writes the instructions of one tile of numbers; its shape is rows, vectors in each, and lanes."""

    def __init__(
        self, context: BaseContext, builder: IRBuilder, of: Type, shape: tuple[int, int, int]
    ) -> None:
        rows, vectors, lanes = shape
        self.context, self.builder = context, builder
        self.rows, self.vectors, self.lanes = range(rows), range(vectors), lanes
        self.size = of.bitwidth // 8
        self.real = context.get_data_type(of)
        self.vector = ir.VectorType(self.real, lanes)
        signature = ir.FunctionType(self.vector, [self.vector] * 3)
        name = f"llvm.fma.v{lanes}f{of.bitwidth}"
        self.fma = cgutils.get_or_insert_function(builder.module, signature, name)

    def write(self, arguments: Values, solve: int) -> None:
        c, ldc, a, down_a, right_a, b, ldb, depth, t, down_t, right_t, copy, ld_copy = arguments
        steps = (ldc, down_a, right_a, ldb, down_t, right_t, ld_copy)
        ldc, down_a, right_a, ldb, down_t, right_t, ld_copy = map(self.bytes, steps)
        right_a = right_a if solve == 2 else INT(self.size)  # a constant makes a shorter loop
        places = [[self.vector_at(c, ldc, q, v) for v in self.vectors] for q in self.rows]
        values = [[self.load(place) for place in row] for row in places]
        values = self.over_depth(values, (a, down_a, right_a), (b, ldb), depth)
        if solve:
            self._solve(values, t, down_t, right_t)
        for q in self.rows:
            for v in self.vectors:
                self.store(values[q][v], places[q][v])
                if solve:
                    self.store(values[q][v], self.vector_at(copy, ld_copy, q, v))

    def write_corner(self, arguments: Values) -> Value:
        c, ldc, a, lda, depth = arguments
        ldc, lda = self.bytes(ldc), self.bytes(lda)
        places = [[self.vector_at(c, ldc, q, 0)] for q in self.rows]
        values = [[self.load(place) for place in row] for row in places]
        values = self.over_depth(values, (a, lda, INT(self.size)), (a, lda), depth)
        return self._factor([row[0] for row in values], places)

    def _factor(self, values: list[Value], places: Grid) -> Value:
        """Cholesky factorization of a matrix of which each row is a register."""
        builder, good = self.builder, ir.Constant(ir.IntType(1), 1)
        signature = ir.FunctionType(self.real, [self.real])
        name = f"llvm.sqrt.f{8 * self.size}"
        sqrt = cgutils.get_or_insert_function(builder.module, signature, name)
        for p in self.rows:
            pivot = builder.extract_element(values[p], ir.IntType(32)(p))
            positive = builder.fcmp_ordered(">", pivot, self.real(0.0))
            finite = builder.fcmp_ordered("<", pivot, self.real(float("inf")))
            good = builder.and_(good, builder.and_(positive, finite))
            scale = builder.fdiv(self.real(1.0), builder.call(sqrt, [pivot]))
            values[p] = builder.fmul(values[p], self.everywhere(scale))
            for q in self.rows[p + 1 :]:
                minus = builder.fneg(builder.extract_element(values[p], ir.IntType(32)(q)))
                values[q] = builder.call(self.fma, [self.everywhere(minus), values[p], values[q]])
            self.store(values[p], places[p][0])
        return good

    def over_depth(
        self, start: Grid, a: tuple[Value, Value, Value], b: tuple[Value, Value], depth: Value
    ) -> Grid:
        """The loop over the depth: what `accumulate` makes of `start`.

        A is given by its address and its steps down and to the right, B by its address and its step down.
        """
        (at_a, down_a, right_a), (at_b, ldb) = a, b
        builder, entry = self.builder, self.builder.block
        loop, end = builder.append_basic_block("tile"), builder.append_basic_block("tile_end")
        builder.cbranch(builder.icmp_signed(">", depth, INT(0)), loop, end)
        builder.position_at_end(loop)
        k, here_a, here_b = (self.phi(INT, first, entry) for first in (INT(0), at_a, at_b))
        sums = [[self.phi(self.vector, value, entry) for value in row] for row in start]
        self.prefetch(builder.add(here_a, self.times(down_a, 16)))
        right = [self.load(self.vector_at(here_b, ldb, 0, v)) for v in self.vectors]
        after = []
        for q in self.rows:
            left = self.number(builder.add(here_a, self.times(right_a, q)))
            after.append(self.accumulate(left, right, sums[q]))
        following = builder.add(k, INT(1))
        k.add_incoming(following, loop)
        here_a.add_incoming(builder.add(here_a, down_a), loop)
        here_b.add_incoming(builder.add(here_b, ldb), loop)
        for q in self.rows:
            for v in self.vectors:
                sums[q][v].add_incoming(after[q][v], loop)
        builder.cbranch(builder.icmp_signed("<", following, depth), loop, end)
        builder.position_at_end(end)
        results = [[self.phi(self.vector, value, entry) for value in row] for row in start]
        for q in self.rows:
            for v in self.vectors:
                results[q][v].add_incoming(after[q][v], loop)
        return results

    def accumulate(self, left: Value, right: list[Value], sums: list[Value]) -> list[Value]:
        """A row's sums after one more step of the depth: here, C − a b."""
        minus = self.everywhere(self.builder.fneg(left))
        return [self.builder.call(self.fma, [minus, right[v], sums[v]]) for v in self.vectors]

    def _solve(self, values: Grid, at_t: Value, down_t: Value, right_t: Value) -> None:
        """Forward substitution, in place."""
        builder = self.builder

        def entry(p: int, q: int) -> Value:
            return self.number(
                builder.add(at_t, builder.add(builder.mul(down_t, INT(p)), builder.mul(right_t, INT(q))))
            )

        for p in self.rows:
            scale = self.everywhere(builder.fdiv(self.real(1.0), entry(p, p)))
            values[p] = [builder.fmul(scale, value) for value in values[p]]
            for q in self.rows[p + 1 :]:
                minus = self.everywhere(builder.fneg(entry(p, q)))
                values[q] = [
                    builder.call(self.fma, [minus, values[p][v], values[q][v]]) for v in self.vectors
                ]

    def bytes(self, elements: Value) -> Value:
        return self.builder.mul(elements, INT(self.size))

    def times(self, step: Value, count: int) -> Value:
        if isinstance(step, ir.Constant):
            return INT(step.constant * count)
        return self.builder.mul(step, INT(count))

    def vector_at(self, start: Value, ld: Value, row: int, vector: int) -> Value:
        down = self.builder.add(start, self.builder.mul(ld, INT(row)))
        return self.builder.add(down, INT(self.size * self.lanes * vector))

    def phi(self, of: ir.Type, first: Value, entry: ir.Block) -> ir.PhiInstr:
        phi = self.builder.phi(of)
        phi.add_incoming(first, entry)
        return phi

    def load(self, address: Value) -> Value:
        return self.builder.load(self.builder.inttoptr(address, self.vector.as_pointer()), align=self.size)

    def store(self, value: Value, address: Value) -> None:
        pointer = self.builder.inttoptr(address, self.vector.as_pointer())
        self.builder.store(value, pointer, align=self.size)

    def prefetch(self, address: Value) -> None:
        byte, flag = ir.IntType(8).as_pointer(), ir.IntType(32)
        signature = ir.FunctionType(ir.VoidType(), [byte, flag, flag, flag])
        function = cgutils.get_or_insert_function(self.builder.module, signature, "llvm.prefetch.p0")
        self.builder.call(function, [self.builder.inttoptr(address, byte), flag(0), flag(3), flag(1)])

    def number(self, address: Value) -> Value:
        return self.builder.load(self.builder.inttoptr(address, self.real.as_pointer()))

    def everywhere(self, number: Value) -> Value:
        """A number in all lanes."""
        undefined = ir.Constant(self.vector, ir.Undefined)
        first = self.builder.insert_element(undefined, number, ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), self.lanes), None)
        return self.builder.shuffle_vector(first, undefined, lanes)
