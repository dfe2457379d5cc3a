"""Cholesky factors, triangular solves and Gram matrices on the CPU, compiled and without copies.

Every function works on one matrix with contiguous rows, somewhere in a flat array: `at` is where it starts
and `ld` how far its rows are apart. A factor is U, upper triangular, with S = UᵀU; what lies below its
diagonal has no meaning. `work` is scratch memory, from `scratch`.
"""

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
def copy(source, at_source, ld_source, target, at_target, ld_target, rows, columns):
    """Copy a block."""
    apart()
    for i in range(rows):
        s, t = np.uintp(at_source + i * ld_source), np.uintp(at_target + i * ld_target)
        for j in range(np.uintp(columns)):  # unsigned: a negative index would count from the end
            target[t + j] = source[s + j]


@compiled
def _copy_edge(source, at_source, ld_source, target, at_target, ld_target, rows, columns):
    """Copy a block of fewer columns than a panel has, and zeros after it."""
    apart()
    panel = panel_of(target)
    for i in range(rows):
        s, t = np.uintp(at_source + i * ld_source), np.uintp(at_target + i * ld_target)
        for j in range(np.uintp(columns)):
            target[t + j] = source[s + j]
        for j in range(np.uintp(columns), np.uintp(panel)):
            target[t + j] = 0


@compiled
def transpose(source, at_source, ld_source, target, at_target, ld_target, rows, columns):
    """Copy the transpose of a block of `rows` and `columns`."""
    apart()
    for i0 in range(0, rows, 8):
        for j in range(columns):
            s, t = at_source + j + i0 * ld_source, np.uintp(at_target + j * ld_target + i0)
            for i in range(np.uintp(min(8, rows - i0))):
                target[t + i] = source[np.uintp(s) + i * np.uintp(ld_source)]


@compiled
def negate(v, at, count):
    """Change the sign of numbers side by side."""
    apart()
    start = np.uintp(at)
    for p in range(np.uintp(count)):
        v[start + p] = -v[start + p]


@compiled
def _pack_left(a, at_a, down_a, right_a, depth, m, out):
    """A (depth, m) in panels of a tile's height."""
    apart()
    for i in range(0, m, _ROWS):
        rows, base, start = min(_ROWS, m - i), i * depth, at_a + i * right_a
        if right_a == 1 and rows == _ROWS:
            for k in range(depth):
                move_column(a, start + k * down_a, out, base + k * _ROWS)
        else:
            for k in range(depth):
                for q in range(rows):
                    out[base + k * rows + q] = a[start + k * down_a + q * right_a]


@compiled
def _pack_right(b, at_b, ldb, depth, out, at_out):
    """A panel of B (depth, columns)."""
    apart()
    panel = panel_of(out)
    for k in range(depth):
        move_row(b, at_b + k * ldb, out, at_out + k * panel)


@compiled
def subtract(c, at_c, ldc, a, at_a, down_a, right_a, b, at_b, ldb, m, n, depth, upper, work):
    """C −= AᵀB with C (m, n), A (depth, m) and B (depth, n); A has steps `down_a` and `right_a`.

    With `upper`, what lies far below the diagonal of C is left alone.
    """
    apart()
    if n == 1 and ldc == 1 and ldb == 1 and (right_a == 1 or down_a == 1):
        _subtract_vector(c, at_c, a, at_a, down_a, right_a, b, at_b, m, depth)
        return
    panel = panel_of(c)
    packed = depth > _SMALL or right_a != 1 or (depth > _TINY and _compete(ldb, b))
    edge = _DEPTH * _BREADTH  # where in `work` a panel of B is, and after it one of C
    for k in range(0, depth, _DEPTH):
        rows = min(_DEPTH, depth - k)
        for i0 in range(0, m, _BREADTH):
            tall = min(_BREADTH, m - i0)
            left = at_a + k * down_a + i0 * right_a
            if packed:
                _pack_left(a, left, down_a, right_a, rows, tall, work)
            for j in range(i0 // panel * panel if upper else 0, n, panel):
                columns = min(panel, n - j)
                here, there = at_c + i0 * ldc + j, at_b + k * ldb + j
                stop = min(tall, j + columns - i0) if upper else tall
                if columns < panel:
                    _copy_edge(b, there, ldb, work, edge, panel, rows, columns)
                    inner = edge + _DEPTH * panel
                    _copy_edge(c, here, ldc, work, inner, panel, stop, columns)
                    _subtract_panel(
                        work, inner, panel, a, left, down_a, right_a, work, edge, panel, stop, tall, rows,
                        packed, work,
                    )  # fmt: skip
                    copy(work, inner, panel, c, here, ldc, stop, columns)
                elif packed:
                    _pack_right(b, there, ldb, rows, work, edge)
                    _subtract_panel(
                        c, here, ldc, a, left, down_a, right_a, work, edge, panel, stop, tall, rows,
                        packed, work,
                    )  # fmt: skip
                else:
                    _subtract_panel(
                        c, here, ldc, a, left, down_a, right_a, b, there, ldb, stop, tall, rows, packed, work
                    )  # fmt: skip


@compiled(fastmath={"contract", "reassoc"})
def dot(a, at_a, b, at_b, count):
    """Σ a b of numbers side by side."""
    total, s, t = a.dtype.type(0), np.uintp(at_a), np.uintp(at_b)
    for k in range(np.uintp(count)):
        total += a[s + k] * b[t + k]
    return total


@compiled
def _subtract_vector(c, at_c, a, at_a, down_a, right_a, b, at_b, m, depth):
    """C −= AᵀB for a single column."""
    apart()
    if right_a == 1:
        target = np.uintp(at_c)
        for k in range(depth):
            row, minus = np.uintp(at_a + k * down_a), b[at_b + k]
            for i in range(np.uintp(m)):
                c[target + i] -= minus * a[row + i]
    else:
        for i in range(m):
            c[at_c + i] -= dot(a, at_a + i * right_a, b, at_b, depth)


@compiled
def _subtract_panel(c, at_c, ldc, a, at_a, down_a, right_a, b, at_b, ldb, stop, m, depth, packed, work):
    """Rows up to `stop` of a panel of C, which has m; a tile more, rather than a part of one."""
    apart()
    i, height = 0, 0
    while i < stop:
        while HEIGHTS[height] > m - i:
            height += 1
        at = at_c + i * ldc
        if packed:
            rows = min(_ROWS, m - i // _ROWS * _ROWS)
            left = i // _ROWS * _ROWS * depth + i % _ROWS
            tile(
                height, 0, c, at, ldc, work, left, rows, 1, b, at_b, ldb, depth, work, 0, 0, 0, work, 0, 0
            )  # fmt: skip
        else:
            tile(
                height, 0, c, at, ldc, a, at_a + i, down_a, 1, b, at_b, ldb, depth,
                a, 0, 0, 0, c, 0, 0,
            )  # fmt: skip
        i += HEIGHTS[height]


@compiled
def subtract_gram(c, at_c, ldc, y, at_y, ldy, n, columns, work):
    """C −= YᵀY on and above the diagonal, with Y (n, columns)."""
    apart()
    subtract(c, at_c, ldc, y, at_y, ldy, 1, y, at_y, ldy, columns, columns, n, True, work)


@compiled
def whiten(u, at_u, ldu, n, b, at_b, ldb, columns, work):
    """B ← U⁻ᵀB, with U (n, n) and B (n, columns)."""
    apart()
    for i in range(0, n, _BLOCK):
        rows, here = min(_BLOCK, n - i), at_b + i * ldb
        if i:
            subtract(b, here, ldb, u, at_u + i, ldu, 1, b, at_b, ldb, rows, columns, i, False, work)
        _solve_block(u, at_u + i * (ldu + 1), ldu, rows, b, here, ldb, columns, False, work)


@compiled
def _solve_block(u, at_u, ldu, n, b, at_b, ldb, columns, back, work):
    """B ← U⁻ᵀB, or, with `back`, B ← U⁻¹B, for n up to _BLOCK."""
    apart()
    panel = panel_of(b)
    if _compete(ldu, u) and columns > 2 * panel:
        near = _block_at(work)
        copy(u, at_u, ldu, work, near, _BLOCK, n, n)
        u, at_u, ldu = work, near, _BLOCK
    for j in range(0, columns, panel):
        width = min(panel, columns - j)
        if width == panel:
            _solve_panel(u, at_u, ldu, n, b, at_b + j, ldb, back, work)
        else:
            _copy_edge(b, at_b + j, ldb, work, 0, panel, n, width)
            _solve_panel(u, at_u, ldu, n, work, 0, panel, back, work)
            copy(work, 0, panel, b, at_b + j, ldb, n, width)


@compiled
def _solve_panel(u, at_u, ldu, n, b, at_b, ldb, back, work):
    apart()
    if back:
        _unwhiten_panel(u, at_u, ldu, n, b, at_b, ldb, work)
    else:
        _whiten_panel(u, at_u, ldu, n, b, at_b, ldb, work)


@compiled
def _whiten_panel(u, at_u, ldu, n, b, at_b, ldb, work):
    apart()
    panel = panel_of(b)
    i, height = 0, 0
    while i < n:
        while HEIGHTS[height] > n - i:
            height += 1
        tile(
            height, 1, b, at_b + i * ldb, ldb, u, at_u + i, ldu, 1, work, 0, panel, i,
            u, at_u + i * (ldu + 1), ldu, 1, work, i * panel, panel,
        )  # fmt: skip
        i += HEIGHTS[height]


@compiled
def unwhiten(u, at_u, ldu, n, b, at_b, ldb, columns, work):
    """B ← U⁻¹B, from the last rows to the first."""
    apart()
    for stop in range(n, 0, -_BLOCK):
        i = max(0, stop - _BLOCK)
        if stop < n:
            subtract(
                b, at_b + i * ldb, ldb, u, at_u + i * ldu + stop, 1, ldu, b, at_b + stop * ldb, ldb,
                stop - i, columns, n - stop, False, work,
            )  # fmt: skip
        _solve_block(u, at_u + i * (ldu + 1), ldu, stop - i, b, at_b + i * ldb, ldb, columns, True, work)


@compiled
def _unwhiten_panel(u, at_u, ldu, n, b, at_b, ldb, work):
    apart()
    panel = panel_of(b)
    left, height = n, 0
    while left > 0:
        while HEIGHTS[height] > left:
            height += 1
        last = left - 1  # the tile's first row is this one, and the next are above it
        tile(
            height, 2, b, at_b + last * ldb, -ldb, u, at_u + last * ldu + left, 1, -ldu,
            work, left * panel, panel, n - left, u, at_u + last * (ldu + 1), -1, -ldu,
            work, last * panel, -panel,
        )  # fmt: skip
        left -= HEIGHTS[height]


@compiled
def _factor_tiny(u, at, ld, n):
    """Rows that are no full tile."""
    apart()
    for k in range(n):
        row = at + k * ld
        pivot = u[row + k]
        if not 0 < pivot < np.inf:
            return False
        scale = 1 / np.sqrt(pivot)
        for j in range(k, n):
            u[row + j] *= scale
        for i in range(k + 1, n):
            for j in range(i, n):
                u[at + i * ld + j] -= u[row + i] * u[row + j]
    return True


@compiled
def _factor_block(u, at, ld, n, work):
    """Eight rows at a time: their diagonal block into `work`, then everything from there to the right.

    Panels start at multiples of their width, so that some may begin left of the diagonal, where nothing has
    a meaning.
    """
    apart()
    panel = panel_of(u)
    edge = _DEPTH * _BREADTH
    small = edge + (_DEPTH + _BREADTH) * panel
    i = 0
    while i < n:
        rows, above = min(_ROWS, n - i), at + i
        copy(u, at + i * (ld + 1), ld, work, small, _ROWS, rows, rows)
        if rows == _ROWS:
            good = corner(work, small, _ROWS, u, above, ld, i)
        else:
            subtract(work, small, _ROWS, u, above, ld, 1, u, above, ld, rows, rows, i, False, work)
            good = _factor_tiny(work, small, _ROWS, rows)
        if not good:
            return False
        if rows < _ROWS:  # the last rows
            copy(work, small, _ROWS, u, at + i * (ld + 1), ld, rows, rows)
            return True
        for j in range(i // panel * panel, n, panel):
            columns, right = min(panel, n - j), at + i * ld + j
            if columns == panel:
                tile(
                    0, 1, u, right, ld, u, above, ld, 1, u, at + j, ld, i, work, small, _ROWS, 1,
                    work, 0, panel,
                )  # fmt: skip
            else:
                _copy_edge(u, at + j, ld, work, edge, panel, i + rows, columns)
                tile(
                    0, 1, work, edge + i * panel, panel, u, above, ld, 1, work, edge, panel, i,
                    work, small, _ROWS, 1, work, 0, panel,
                )  # fmt: skip
                copy(work, edge + i * panel, panel, u, right, ld, rows, columns)
        i += rows
    return True


@compiled
def _factor(u, at, ld, n, work):
    """U in place of S; whether it succeeded."""
    apart()
    for i in range(0, n, _BLOCK):
        rows, here = min(_BLOCK, n - i), at + i * (ld + 1)
        if i:
            subtract(u, here, ld, u, at + i, ld, 1, u, at + i, ld, rows, n - i, i, True, work)
        v, corner, ldv = u, here, ld  # the block on the diagonal
        if _compete(ld, u):
            v, corner, ldv = work, _block_at(work), _BLOCK
            copy(u, here, ld, v, corner, ldv, rows, rows)
        good = _factor_block(v, corner, ldv, rows, work)
        if ldv != ld:
            copy(v, corner, ldv, u, here, ld, rows, rows)
        if not good:
            return False
        if i + rows < n:
            _solve_block(v, corner, ldv, rows, u, here + rows, ld, n - i - rows, False, work)
    return True


@compiled
def factor(u, at, ld, n, first, last, spare, work):
    """U in place of S, of which only the upper triangle is read; the jitter that was added.

    If S is not positive definite it gets a jitter, from `first` times its mean diagonal, tenfold each time;
    infinity is returned if more than `last` is needed, NaN if S is not finite. `spare` has room for S.
    """
    apart()
    scale = 0.0
    for i in range(n):
        scale += abs(u[at + i * (ld + 1)]) / n
        copy(u, at + i * (ld + 1), ld, spare, i * (n + 1), n, 1, n - i)
    relative, added = first, 0.0
    while not _factor(u, at, ld, n, work):
        added = relative * scale
        if not relative <= last * 1.5:
            return np.inf
        for i in range(n):
            for j in range(i, n):
                if not np.isfinite(spare[i * n + j]):
                    return np.nan
            copy(spare, i * (n + 1), n, u, at + i * (ld + 1), ld, 1, n - i)
            u[at + i * (ld + 1)] += added
        relative *= 10
    return added


@compiled
def _invert(u, at_u, ldu, n, spare, work):
    """spare ← R = U⁻ᵀ, lower triangular."""
    apart()
    panel = panel_of(u)
    spare[: n * n] = 0
    for i in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - i)
        for j in range(0, i, _BLOCK):
            subtract(
                spare, i * n + j, n, u, at_u + j * ldu + i, ldu, 1, spare, j * n + j, n,
                rows, _BLOCK, i - j, False, work,
            )  # fmt: skip
        for k in range(i, i + rows):
            spare[k * (n + 1)] = 1
        _solve_block(u, at_u + i * (ldu + 1), ldu, rows, spare, i * n, n, i, False, work)
        for j in range(0, rows, panel):  # its own block, which is lower triangular
            here, width = i + j, min(panel, rows - j)
            corner_u = at_u + here * (ldu + 1)
            _solve_block(u, corner_u, ldu, rows - j, spare, here * (n + 1), n, width, False, work)


@compiled
def inverse_diagonal(u, at_u, ldu, out, at, n, spare, work):
    """out ← the diagonal of (UᵀU)⁻¹. `spare` has room for U."""
    _invert(u, at_u, ldu, n, spare, work)
    out[at : at + n] = 0
    for k in range(n):
        for i in range(k + 1):
            out[at + i] += spare[k * n + i] ** 2


@compiled
def inverse(u, at_u, ldu, out, at, ld, n, spare, work):
    """out ← (UᵀU)⁻¹, the whole symmetric matrix. `spare` has room for it."""
    apart()
    panel = panel_of(u)
    _invert(u, at_u, ldu, n, spare, work)
    for i in range(n):
        out[at + i * ld : at + i * ld + n] = 0
    step = panel if n <= 2 * _SMALL else _SMALL
    for j in range(0, n, step):  # −RᵀR above the diagonal; R has only the rows from j on
        columns = min(step, n - j)
        subtract(
            out, at + j, ld, spare, j * n, n, 1, spare, j * (n + 1), n, j + columns, columns, n - j,
            False, work,
        )  # fmt: skip
    for i in range(n):
        negate(out, at + i * ld, n)
    for i in range(0, n, 8):
        transpose(out, at + i * (ld + 1), ld, out, at + i * (ld + 1), ld, min(8, n - i), n - i)
