"""Cholesky factors, triangular solves and inverses on the CPU, compiled and without copies.

A factor is U, upper triangular, with S = UᵀU; what lies below its diagonal has no meaning. `work` is scratch
memory, from `scratch`.
"""

from collections import namedtuple

import numpy as np

from hck.backend.cpu.jit import compiled, shared
from hck.backend.cpu.matrix import (
    Matrix,
    clear,
    copy,
    copy_edge,
    copy_upper,
    negate,
    panel_of,
    part,
    transpose,
    turned,
    upright,
)
from hck.backend.cpu.products import BREADTH, DEPTH, ROWS, SMALL, compete, subtract
from hck.backend.cpu.tile import HEIGHTS, corner, tile

_BLOCK = 64  # larger matrices are done in blocks of this order

# The relative jitter to begin with and the largest, and memory for a copy, with any content.
Factoring = namedtuple("Factoring", "first last spare")


@compiled
def _block_at(work):
    """Where in `work` there is room for a block on the diagonal: behind a solved panel of it."""
    return _BLOCK * panel_of(work)


@shared
def whiten(u, b, work):
    """B ← U⁻ᵀB."""
    for i in range(0, b.rows, _BLOCK):
        rows = min(_BLOCK, b.rows - i)
        here = part(b, i, 0, rows, b.columns)
        if i:
            above = part(b, 0, 0, i, b.columns)
            subtract(here, upright(part(u, 0, i, i, rows)), above, False, work)
        _solve_block(part(u, i, i, rows, rows), here, False, work)


@shared
def _solve_block(u, b, back, work):
    """B ← U⁻ᵀB, or, with `back`, B ← U⁻¹B, for up to _BLOCK rows."""
    panel, n = panel_of(b.data), b.rows
    if compete(u.ld, u.data) and b.columns > 2 * panel:
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
            copy_edge(here, inner)
            _solve_panel(u, inner, back, work)
            copy(inner, here)


@shared
def _solve_panel(u, b, back, work):
    if back:
        _unwhiten_panel(u, b, work)
    else:
        _whiten_panel(u, b, work)


@shared
def _whiten_panel(u, b, work):
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


@shared
def unwhiten(u, b, work):
    """B ← U⁻¹B, from the last rows to the first."""
    n = b.rows
    for stop in range(n, 0, -_BLOCK):
        i = max(0, stop - _BLOCK)
        here = part(b, i, 0, stop - i, b.columns)
        if stop < n:
            below = part(b, stop, 0, n - stop, b.columns)
            subtract(here, turned(part(u, i, stop, stop - i, n - stop)), below, False, work)
        _solve_block(part(u, i, i, stop - i, stop - i), here, True, work)


@shared
def _unwhiten_panel(u, b, work):
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


@shared
def _factor_tiny(u):
    """Rows that are no full tile."""
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


@shared
def _factor_block(u, work):
    """Eight rows at a time: their diagonal block into `work`, then everything from there to the right.

    Panels start at multiples of their width, so that some may begin left of the diagonal, where nothing has
    a meaning.
    """
    panel, n = panel_of(u.data), u.rows
    edge = DEPTH * BREADTH
    at_small = edge + (DEPTH + BREADTH) * panel
    i = 0
    while i < n:
        rows = min(ROWS, n - i)
        above, diagonal = part(u, 0, i, i, rows), part(u, i, i, rows, rows)
        small = Matrix(work, at_small, ROWS, rows, rows)
        copy(diagonal, small)
        if rows < ROWS:  # the last rows
            subtract(small, upright(above), above, False, work)
            good = _factor_tiny(small)
            copy(small, diagonal)
            return good
        if not corner(work, at_small, ROWS, u.data, above.at, u.ld, i):
            return False
        for j in range(i // panel * panel, n, panel):
            columns, right = min(panel, n - j), u.at + i * u.ld + j
            if columns == panel:
                tile(
                    0, 1, u.data, right, u.ld, u.data, above.at, u.ld, 1, u.data, u.at + j, u.ld, i,
                    work, at_small, ROWS, 1, work, 0, panel,
                )  # fmt: skip
            else:
                copy_edge(part(u, 0, j, i + rows, columns), Matrix(work, edge, panel, i + rows, columns))
                tile(
                    0, 1, work, edge + i * panel, panel, u.data, above.at, u.ld, 1, work, edge, panel, i,
                    work, at_small, ROWS, 1, work, 0, panel,
                )  # fmt: skip
                copy(Matrix(work, edge + i * panel, panel, rows, columns), part(u, i, j, rows, columns))
        i += rows
    return True


@shared
def try_factor(u, work):
    """U in place of S, of which only the upper triangle is read; whether it succeeded."""
    n = u.rows
    for i in range(0, n, _BLOCK):
        rows = min(_BLOCK, n - i)
        here = part(u, i, i, rows, rows)
        if i:
            above = part(u, 0, i, i, n - i)
            subtract(part(u, i, i, rows, n - i), upright(above), above, True, work)
        near = here  # the block on the diagonal
        if compete(u.ld, u.data):
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


@shared
def factor(u, factoring, work):
    """U in place of S, of which only the upper triangle is read; the jitter that was added.

    If S is not positive definite it gets a jitter, from ``factoring.first`` times its mean diagonal, tenfold
    each time; infinity is returned if more than ``factoring.last`` is needed, NaN if S is not finite.
    ``factoring.spare`` has room for S.
    """
    n, step = u.rows, u.ld + 1
    kept = Matrix(factoring.spare, 0, n, n, n)
    copy_upper(u, kept)
    scale = 0.0
    for i in range(n):
        scale += abs(u.data[u.at + i * step]) / n
    relative, added = factoring.first, 0.0
    while not try_factor(u, work):
        added = relative * scale
        if not relative <= factoring.last * 1.5:
            return np.inf
        for i in range(n):
            for j in range(i, n):
                if not np.isfinite(kept.data[i * n + j]):
                    return np.nan
        copy_upper(kept, u)
        for i in range(n):
            u.data[u.at + i * step] += added
        relative *= 10
    return added


@shared
def _invert(u, spare, work):
    """spare ← R = U⁻ᵀ, lower triangular."""
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
    for k in range(n):
        out[k] = 0
    for k in range(n):
        for i in range(k + 1):
            value = spare[k * n + i]
            out[i] += value * value


@shared
def inverse(u, out, spare, work):
    """out ← (UᵀU)⁻¹, the whole symmetric matrix. `spare` has room for it."""
    panel, n = panel_of(u.data), u.rows
    _invert(u, spare, work)
    r = Matrix(spare, 0, n, n, n)
    clear(out)
    step = panel if n <= 2 * SMALL else SMALL
    for j in range(0, n, step):  # −RᵀR above the diagonal; R has only the rows from j on
        columns = min(step, n - j)
        left = upright(part(r, j, 0, n - j, j + columns))
        subtract(part(out, 0, j, j + columns, columns), left, part(r, j, j, n - j, columns), False, work)
    negate(out)
    for i in range(0, n, 8):
        transpose(part(out, i, i, min(8, n - i), n - i), part(out, i, i, n - i, min(8, n - i)))
