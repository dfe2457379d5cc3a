"""Products of matrices on the CPU, compiled and without copies: C − AᵀB, tile by tile.

`work` is scratch memory, from `scratch`.
"""

import numpy as np

from hck.backend.cpu.jit import compiled, shared
from hck.backend.cpu.matrix import Left, Matrix, aligned, copy, copy_edge, panel_of, part, upright
from hck.backend.cpu.tile import HEIGHTS, move_column, move_row, tile

ROWS = HEIGHTS[0]
DEPTH = 128  # rows of A and B that are packed at once, ...
BREADTH = 128  # ... and columns of A
SMALL = 64  # depth up to which nothing is packed, ...
_TINY = 16  # ... or this one, if rows compete for the same places in the cache


@compiled
def compete(ld, like):
    """Whether rows are so far apart that many of them do not fit into the cache together."""
    return ld * like.itemsize % 2048 == 0


@compiled
def scratch(like):
    """Memory for `work`: a packed A, and panels of B and of C."""
    return aligned(DEPTH * BREADTH + (DEPTH + BREADTH) * panel_of(like) + ROWS * ROWS, like)


@shared
def _pack_left(a, depth, m, out):
    """A (depth, m) in panels of a tile's height."""
    for i in range(0, m, ROWS):
        rows, base, start = min(ROWS, m - i), i * depth, a.at + i * a.right
        if a.right == 1 and rows == ROWS:
            for k in range(depth):
                move_column(a.data, start + k * a.down, out, base + k * ROWS)
        else:
            for k in range(depth):
                for q in range(rows):
                    out[base + k * rows + q] = a.data[start + k * a.down + q * a.right]


@shared
def _pack_right(b, out):
    """A panel of B (depth, columns)."""
    for k in range(b.rows):
        move_row(b.data, b.at + k * b.ld, out.data, out.at + k * out.ld)


@shared
def subtract(c, a, b, upper, work):
    """C −= AᵀB with C (m, n), A (depth, m), a `Left`, and B (depth, n).

    With `upper`, what lies far below the diagonal of C is left alone.
    """
    if c.columns == 1 and c.ld == 1 and b.ld == 1 and (a.right == 1 or a.down == 1):
        _subtract_vector(c, a, b)
        return
    panel = panel_of(c.data)
    packed = b.rows > SMALL or a.right != 1 or (b.rows > _TINY and compete(b.ld, b.data))
    edge = DEPTH * BREADTH  # where in `work` a panel of B is, and after it one of C
    for k in range(0, b.rows, DEPTH):
        depth = min(DEPTH, b.rows - k)
        for i0 in range(0, c.rows, BREADTH):
            tall = min(BREADTH, c.rows - i0)
            left = Left(a.data, a.at + k * a.down + i0 * a.right, a.down, a.right)
            if packed:
                _pack_left(left, depth, tall, work)
            for j in range(i0 // panel * panel if upper else 0, c.columns, panel):
                columns = min(panel, c.columns - j)
                stop = min(tall, j + columns - i0) if upper else tall
                here, there = part(c, i0, j, stop, columns), part(b, k, j, depth, columns)
                near = Matrix(work, edge, panel, depth, panel)
                if columns < panel:
                    inner = Matrix(work, edge + DEPTH * panel, panel, stop, columns)
                    copy_edge(there, near)
                    copy_edge(here, inner)
                    _subtract_panel(inner, left, near, tall, packed, work)
                    copy(inner, here)
                elif packed:
                    _pack_right(there, near)
                    _subtract_panel(here, left, near, tall, packed, work)
                else:
                    _subtract_panel(here, left, there, tall, packed, work)


@compiled(fastmath={"contract", "reassoc"})
def dot(a, at_a, b, at_b, count):
    """Σ a b of numbers side by side."""
    total, s, t = a.dtype.type(0), np.uintp(at_a), np.uintp(at_b)
    for k in range(np.uintp(count)):
        total += a[s + k] * b[t + k]
    return total


@shared
def _subtract_vector(c, a, b):
    """C −= AᵀB for a single column."""
    if a.right == 1:
        target = np.uintp(c.at)
        for k in range(b.rows):
            row, minus = np.uintp(a.at + k * a.down), b.data[b.at + k]
            for i in range(np.uintp(c.rows)):
                c.data[target + i] -= minus * a.data[row + i]
    else:
        for i in range(c.rows):
            c.data[c.at + i] -= dot(a.data, a.at + i * a.right, b.data, b.at, b.rows)


@shared
def _subtract_panel(c, a, b, m, packed, work):
    """The rows of a panel of C, of the m that A has; a tile more, rather than a part of one."""
    i, height = 0, 0
    while i < c.rows:
        while HEIGHTS[height] > m - i:
            height += 1
        at = c.at + i * c.ld
        if packed:
            rows = min(ROWS, m - i // ROWS * ROWS)
            left = i // ROWS * ROWS * b.rows + i % ROWS
            tile(
                height, 0, c.data, at, c.ld, work, left, rows, 1, b.data, b.at, b.ld, b.rows,
                work, 0, 0, 0, work, 0, 0,
            )  # fmt: skip
        else:
            tile(
                height, 0, c.data, at, c.ld, a.data, a.at + i, a.down, 1, b.data, b.at, b.ld, b.rows,
                work, 0, 0, 0, work, 0, 0,
            )  # fmt: skip
        i += HEIGHTS[height]


@shared
def subtract_gram(c, y, work):
    """C −= YᵀY on and above the diagonal."""
    subtract(c, upright(y), y, True, work)
