"""Cholesky factors, triangular solves and Gram matrices on the CPU, compiled and without copies.

Every function works on matrices with contiguous rows, somewhere in flat arrays (`Matrix`). A factor is U,
upper triangular, with S = UᵀU; what lies below its diagonal has no meaning. `work` is scratch memory, from
`scratch`.
"""

from typing import Any, NamedTuple

import numpy as np

from hck.backend.cpu.jit import compiled
from hck.backend.cpu.tile import HEIGHTS, VECTOR_BYTES, apart, corner, move_column, move_row, tile

_PANEL_4, _PANEL_8 = 2 * VECTOR_BYTES // 4, 2 * VECTOR_BYTES // 8
_ROWS = HEIGHTS[0]
_BLOCK = 64  # larger matrices are done in blocks of this order
_DEPTH = 128  # rows of A and B that are packed at once, ...
_BREADTH = 128  # ... and columns of A
_SMALL = 64  # depth up to which nothing is packed, ...
_TINY = 16  # ... or this one, if rows compete for the same places in the cache


class Matrix(NamedTuple):
    """A matrix (rows, columns) in a flat array: where it starts, and how far its rows are apart."""

    data: Any
    at: int
    ld: int
    rows: int
    columns: int


class Left(NamedTuple):
    """A matrix (depth, rows of a product) whose entries are `down` and `right` apart."""

    data: Any
    at: int
    down: int
    right: int


class Factoring(NamedTuple):
    """The relative jitter to begin with and the largest, and memory for a copy, with any content."""

    first: float
    last: float
    spare: Any


@compiled
def part(m, i, j, rows, columns):
    """A block of a matrix."""
    return Matrix(m.data, m.at + i * m.ld + j, m.ld, rows, columns)


@compiled
def member(data, i, rows, columns):
    """One of a stack of matrices."""
    return Matrix(data, i * rows * columns, columns, rows, columns)


@compiled
def upright(m):
    """A matrix A as the left one of a product AᵀB."""
    return Left(m.data, m.at, m.ld, 1)


@compiled
def turned(m):
    """A matrix A as the left one of a product AB."""
    return Left(m.data, m.at, 1, m.ld)


@compiled
def panel_of(array):
    """Columns that are worked on at once: those of a tile."""
    return _PANEL_8 if array.itemsize == 8 else _PANEL_4


@compiled
def _compete(ld, like):
    """Whether rows are so far apart that many of them do not fit into the cache together."""
    return ld * like.itemsize % 2048 == 0


@compiled
def aligned(count, like):
    """Memory for `count` numbers, aligned as vectors are."""
    room = np.empty(count + 64 // like.itemsize, like.dtype)
    return room[-room.ctypes.data % 64 // like.itemsize :]


@compiled
def scratch(like):
    """Memory for `work`: a packed A, and panels of B and of C."""
    return aligned(_DEPTH * _BREADTH + (_DEPTH + _BREADTH) * panel_of(like) + _ROWS * _ROWS, like)


@compiled
def _block_at(work):
    """Where in `work` there is room for a block on the diagonal: behind a solved panel of it."""
    return _BLOCK * panel_of(work)


@compiled
def copy(source, target):
    """Copy a matrix into another of its shape."""
    apart()
    for i in range(source.rows):
        s, t = np.uintp(source.at + i * source.ld), np.uintp(target.at + i * target.ld)
        for j in range(np.uintp(source.columns)):  # unsigned: a negative index would count from the end
            target.data[t + j] = source.data[s + j]


@compiled
def _copy_upper(source, target):
    """Copy what lies on and above the diagonal."""
    apart()
    for i in range(source.rows):
        s, t = np.uintp(source.at + i * source.ld), np.uintp(target.at + i * target.ld)
        for j in range(np.uintp(i), np.uintp(source.columns)):
            target.data[t + j] = source.data[s + j]


@compiled
def copy_below(source, target):
    """Copy what lies below the diagonal."""
    apart()
    for i in range(1, source.rows):
        s, t = np.uintp(source.at + i * source.ld), np.uintp(target.at + i * target.ld)
        for j in range(np.uintp(i)):
            target.data[t + j] = source.data[s + j]


@compiled
def _copy_edge(source, target):
    """Copy a block of fewer columns than a panel has, and zeros after it."""
    apart()
    panel = panel_of(target.data)
    for i in range(source.rows):
        s, t = np.uintp(source.at + i * source.ld), np.uintp(target.at + i * target.ld)
        for j in range(np.uintp(source.columns)):
            target.data[t + j] = source.data[s + j]
        for j in range(np.uintp(source.columns), np.uintp(panel)):
            target.data[t + j] = 0


@compiled
def transpose(source, target):
    """Copy the transpose of a matrix."""
    apart()
    for i0 in range(0, source.rows, 8):
        for j in range(source.columns):
            s, t = source.at + j + i0 * source.ld, np.uintp(target.at + j * target.ld + i0)
            for i in range(np.uintp(min(8, source.rows - i0))):
                target.data[t + i] = source.data[np.uintp(s) + i * np.uintp(source.ld)]


@compiled
def negate(m):
    """Change the sign of a matrix."""
    apart()
    for i in range(m.rows):
        start = np.uintp(m.at + i * m.ld)
        for j in range(np.uintp(m.columns)):
            m.data[start + j] = -m.data[start + j]


@compiled
def clear(m):
    """Make all of a matrix 0."""
    apart()
    for i in range(m.rows):
        start = np.uintp(m.at + i * m.ld)
        for j in range(np.uintp(m.columns)):
            m.data[start + j] = 0


@compiled
def _pack_left(a, depth, m, out):
    """A (depth, m) in panels of a tile's height."""
    apart()
    for i in range(0, m, _ROWS):
        rows, base, start = min(_ROWS, m - i), i * depth, a.at + i * a.right
        if a.right == 1 and rows == _ROWS:
            for k in range(depth):
                move_column(a.data, start + k * a.down, out, base + k * _ROWS)
        else:
            for k in range(depth):
                for q in range(rows):
                    out[base + k * rows + q] = a.data[start + k * a.down + q * a.right]


@compiled
def _pack_right(b, out):
    """A panel of B (depth, columns)."""
    apart()
    for k in range(b.rows):
        move_row(b.data, b.at + k * b.ld, out.data, out.at + k * out.ld)


@compiled
def subtract(c, a, b, upper, work):
    """C −= AᵀB with C (m, n), A (depth, m), a `Left`, and B (depth, n).

    With `upper`, what lies far below the diagonal of C is left alone.
    """
    apart()
    if c.columns == 1 and c.ld == 1 and b.ld == 1 and (a.right == 1 or a.down == 1):
        _subtract_vector(c, a, b)
        return
    panel = panel_of(c.data)
    packed = b.rows > _SMALL or a.right != 1 or (b.rows > _TINY and _compete(b.ld, b.data))
    edge = _DEPTH * _BREADTH  # where in `work` a panel of B is, and after it one of C
    for k in range(0, b.rows, _DEPTH):
        depth = min(_DEPTH, b.rows - k)
        for i0 in range(0, c.rows, _BREADTH):
            tall = min(_BREADTH, c.rows - i0)
            left = Left(a.data, a.at + k * a.down + i0 * a.right, a.down, a.right)
            if packed:
                _pack_left(left, depth, tall, work)
            for j in range(i0 // panel * panel if upper else 0, c.columns, panel):
                columns = min(panel, c.columns - j)
                stop = min(tall, j + columns - i0) if upper else tall
                here, there = part(c, i0, j, stop, columns), part(b, k, j, depth, columns)
                near = Matrix(work, edge, panel, depth, panel)
                if columns < panel:
                    inner = Matrix(work, edge + _DEPTH * panel, panel, stop, columns)
                    _copy_edge(there, near)
                    _copy_edge(here, inner)
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


@compiled
def _subtract_vector(c, a, b):
    """C −= AᵀB for a single column."""
    apart()
    if a.right == 1:
        target = np.uintp(c.at)
        for k in range(b.rows):
            row, minus = np.uintp(a.at + k * a.down), b.data[b.at + k]
            for i in range(np.uintp(c.rows)):
                c.data[target + i] -= minus * a.data[row + i]
    else:
        for i in range(c.rows):
            c.data[c.at + i] -= dot(a.data, a.at + i * a.right, b.data, b.at, b.rows)


@compiled
def _subtract_panel(c, a, b, m, packed, work):
    """The rows of a panel of C, of the m that A has; a tile more, rather than a part of one."""
    apart()
    i, height = 0, 0
    while i < c.rows:
        while HEIGHTS[height] > m - i:
            height += 1
        at = c.at + i * c.ld
        if packed:
            rows = min(_ROWS, m - i // _ROWS * _ROWS)
            left = i // _ROWS * _ROWS * b.rows + i % _ROWS
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


@compiled
def subtract_gram(c, y, work):
    """C −= YᵀY on and above the diagonal."""
    apart()
    subtract(c, upright(y), y, True, work)


@compiled
def whiten(u, b, work):
    """B ← U⁻ᵀB."""
    apart()
    for i in range(0, b.rows, _BLOCK):
        rows = min(_BLOCK, b.rows - i)
        here = part(b, i, 0, rows, b.columns)
        if i:
            above = part(b, 0, 0, i, b.columns)
            subtract(here, upright(part(u, 0, i, i, rows)), above, False, work)
        _solve_block(part(u, i, i, rows, rows), here, False, work)


@compiled
def _solve_block(u, b, back, work):
    """B ← U⁻ᵀB, or, with `back`, B ← U⁻¹B, for up to _BLOCK rows."""
    apart()
    panel, n = panel_of(b.data), b.rows
    if _compete(u.ld, u.data) and b.columns > 2 * panel:
        near = Matrix(work, _block_at(work), _BLOCK, n, n)
        copy(u, near)
        u = near
    for j in range(0, b.columns, panel):
        columns = min(panel, b.columns - j)
        here = part(b, 0, j, n, columns)
        if columns == panel:
            _solve_panel(u, here, back, work)
        else:
            inner = Matrix(work, 0, panel, n, columns)
            _copy_edge(here, inner)
            _solve_panel(u, inner, back, work)
            copy(inner, here)


@compiled
def _solve_panel(u, b, back, work):
    if back:
        _unwhiten_panel(u, b, work)
    else:
        _whiten_panel(u, b, work)


@compiled
def _whiten_panel(u, b, work):
    apart()
    panel = panel_of(b.data)
    i, height = 0, 0
    while i < b.rows:
        while HEIGHTS[height] > b.rows - i:
            height += 1
        tile(
            height, 1, b.data, b.at + i * b.ld, b.ld, u.data, u.at + i, u.ld, 1, work, 0, panel, i,
            u.data, u.at + i * (u.ld + 1), u.ld, 1, work, i * panel, panel,
        )  # fmt: skip
        i += HEIGHTS[height]


@compiled
def unwhiten(u, b, work):
    """B ← U⁻¹B, from the last rows to the first."""
    apart()
    n = b.rows
    for stop in range(n, 0, -_BLOCK):
        i = max(0, stop - _BLOCK)
        here = part(b, i, 0, stop - i, b.columns)
        if stop < n:
            below = part(b, stop, 0, n - stop, b.columns)
            subtract(here, turned(part(u, i, stop, stop - i, n - stop)), below, False, work)
        _solve_block(part(u, i, i, stop - i, stop - i), here, True, work)


@compiled
def _unwhiten_panel(u, b, work):
    apart()
    panel, n = panel_of(b.data), b.rows
    left, height = n, 0
    while left > 0:
        while HEIGHTS[height] > left:
            height += 1
        last = left - 1  # the tile's first row is this one, and the next are above it
        tile(
            height, 2, b.data, b.at + last * b.ld, -b.ld, u.data, u.at + last * u.ld + left, 1, -u.ld,
            work, left * panel, panel, n - left, u.data, u.at + last * (u.ld + 1), -1, -u.ld,
            work, last * panel, -panel,
        )  # fmt: skip
        left -= HEIGHTS[height]


@compiled
def _factor_tiny(u):
    """Rows that are no full tile."""
    apart()
    data, n = u.data, u.rows
    for k in range(n):
        row = u.at + k * u.ld
        pivot = data[row + k]
        if not 0 < pivot < np.inf:
            return False
        scale = 1 / np.sqrt(pivot)
        for j in range(k, n):
            data[row + j] *= scale
        for i in range(k + 1, n):
            for j in range(i, n):
                data[u.at + i * u.ld + j] -= data[row + i] * data[row + j]
    return True


@compiled
def _factor_block(u, work):
    """Eight rows at a time: their diagonal block into `work`, then everything from there to the right.

    Panels start at multiples of their width, so that some may begin left of the diagonal, where nothing has
    a meaning.
    """
    apart()
    panel, n = panel_of(u.data), u.rows
    edge = _DEPTH * _BREADTH
    at_small = edge + (_DEPTH + _BREADTH) * panel
    i = 0
    while i < n:
        rows = min(_ROWS, n - i)
        above, diagonal = part(u, 0, i, i, rows), part(u, i, i, rows, rows)
        small = Matrix(work, at_small, _ROWS, rows, rows)
        copy(diagonal, small)
        if rows < _ROWS:  # the last rows
            subtract(small, upright(above), above, False, work)
            good = _factor_tiny(small)
            copy(small, diagonal)
            return good
        if not corner(work, at_small, _ROWS, u.data, above.at, u.ld, i):
            return False
        for j in range(i // panel * panel, n, panel):
            columns, right = min(panel, n - j), u.at + i * u.ld + j
            if columns == panel:
                tile(
                    0, 1, u.data, right, u.ld, u.data, above.at, u.ld, 1, u.data, u.at + j, u.ld, i,
                    work, at_small, _ROWS, 1, work, 0, panel,
                )  # fmt: skip
            else:
                _copy_edge(part(u, 0, j, i + rows, columns), Matrix(work, edge, panel, i + rows, columns))
                tile(
                    0, 1, work, edge + i * panel, panel, u.data, above.at, u.ld, 1, work, edge, panel, i,
                    work, at_small, _ROWS, 1, work, 0, panel,
                )  # fmt: skip
                copy(Matrix(work, edge + i * panel, panel, rows, columns), part(u, i, j, rows, columns))
        i += rows
    return True


@compiled
def _factor(u, work):
    """U in place of S; whether it succeeded."""
    apart()
    n = u.rows
    for i in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - i)
        here = part(u, i, i, rows, rows)
        if i:
            above = part(u, 0, i, i, n - i)
            subtract(part(u, i, i, rows, n - i), upright(above), above, True, work)
        near = here  # the block on the diagonal
        if _compete(u.ld, u.data):
            near = Matrix(work, _block_at(work), _BLOCK, rows, rows)
            copy(here, near)
        good = _factor_block(near, work)
        if near.ld != u.ld:
            copy(near, here)
        if not good:
            return False
        if i + rows < n:
            _solve_block(near, part(u, i, i + rows, rows, n - i - rows), False, work)
    return True


@compiled
def factor(u, factoring, work):
    """U in place of S, of which only the upper triangle is read; the jitter that was added.

    If S is not positive definite it gets a jitter, from ``factoring.first`` times its mean diagonal, tenfold
    each time; infinity is returned if more than ``factoring.last`` is needed, NaN if S is not finite.
    ``factoring.spare`` has room for S.
    """
    apart()
    n, step = u.rows, u.ld + 1
    kept = Matrix(factoring.spare, 0, n, n, n)
    _copy_upper(u, kept)
    scale = 0.0
    for i in range(n):
        scale += abs(u.data[u.at + i * step]) / n
    relative, added = factoring.first, 0.0
    while not _factor(u, work):
        added = relative * scale
        if not relative <= factoring.last * 1.5:
            return np.inf
        for i in range(n):
            for j in range(i, n):
                if not np.isfinite(kept.data[i * n + j]):
                    return np.nan
        _copy_upper(kept, u)
        for i in range(n):
            u.data[u.at + i * step] += added
        relative *= 10
    return added


@compiled
def _invert(u, spare, work):
    """spare ← R = U⁻ᵀ, lower triangular."""
    apart()
    panel, n = panel_of(u.data), u.rows
    r = Matrix(spare, 0, n, n, n)
    clear(r)
    for i in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - i)
        for j in range(0, i, _BLOCK):
            left = upright(part(u, j, i, i - j, rows))
            subtract(part(r, i, j, rows, _BLOCK), left, part(r, j, j, i - j, _BLOCK), False, work)
        for k in range(i, i + rows):
            spare[k * (n + 1)] = 1
        _solve_block(part(u, i, i, rows, rows), part(r, i, 0, rows, i), False, work)
        for j in range(0, rows, panel):  # its own block, which is lower triangular
            here, left = i + j, rows - j
            own = part(r, here, here, left, min(panel, left))
            _solve_block(part(u, here, here, left, left), own, False, work)


@compiled
def inverse_diagonal(u, out, spare, work):
    """out ← the diagonal of (UᵀU)⁻¹. `spare` has room for U."""
    n = u.rows
    _invert(u, spare, work)
    out[:n] = 0
    for k in range(n):
        for i in range(k + 1):
            out[i] += spare[k * n + i] ** 2


@compiled
def inverse(u, out, spare, work):
    """out ← (UᵀU)⁻¹, the whole symmetric matrix. `spare` has room for it."""
    apart()
    panel, n = panel_of(u.data), u.rows
    _invert(u, spare, work)
    r = Matrix(spare, 0, n, n, n)
    clear(out)
    step = panel if n <= 2 * _SMALL else _SMALL
    for j in range(0, n, step):  # −RᵀR above the diagonal; R has only the rows from j on
        columns = min(step, n - j)
        left = upright(part(r, j, 0, n - j, j + columns))
        subtract(part(out, 0, j, j + columns, columns), left, part(r, j, j, n - j, columns), False, work)
    negate(out)
    for i in range(0, n, 8):
        transpose(part(out, i, i, min(8, n - i), n - i), part(out, i, i, n - i, min(8, n - i)))
