"""Kernel values between blocks of points on the CPU: gather, distance and profile in one compiled function.

Distances are sums of differences, without the cancellation that an expansion of the square has.
"""

import numpy as np

from hck.jit import compiled, exposed
from hck.kernels._tile import HEIGHT, kernel_tile
from hck.linalg._compiled import aligned, copy, panel_of
from hck.linalg._tile import apart


@compiled
def _gather(x, index, first, count, padded, d, inverse, out):
    """Some rows of x, each feature divided by its lengthscale, as columns; zeros up to `padded` columns."""
    apart()
    for i in range(padded):
        row = index[first + i] if i < count else -1
        source, target = np.uintp(row * d if row > 0 else 0), np.uintp(i)
        step = np.uintp(padded)
        for k in range(np.uintp(d)):
            out[target + k * step] = x[source + k] * inverse[k]


@compiled
def _round_up(n, step):
    return (n + step - 1) // step * step


@compiled
def scratch(x, n, m, d):
    """Memory for `evaluate_block`."""
    panel = panel_of(x)
    return aligned((_round_up(n, panel) + _round_up(m, panel)) * d + HEIGHT * panel, x)


@compiled
def evaluate_block(
    x, rows, at_rows, n, z, columns, at_columns, m, d, inverse, kind, amplitude, upper, out, at, work
):  # fmt: skip
    """Kernel values between some rows of x and of z; parameters as in `evaluate`."""
    apart()
    panel = panel_of(out)
    high, wide = _round_up(n, panel), _round_up(m, panel)
    right = high * d
    edge = right + wide * d
    _gather(x, rows, at_rows, n, high, d, inverse, work)
    _gather(z, columns, at_columns, m, wide, d, inverse, work[right:])
    for i in range(0, n, HEIGHT):
        count = min(HEIGHT, n - i)
        for j in range(i // panel * panel if upper else 0, m, panel):
            width, here = min(panel, m - j), at + i * m + j
            if count == HEIGHT and width == panel:
                kernel_tile(kind, amplitude, out, here, m, work, i, high, work, right + j, wide, d)
            else:
                kernel_tile(kind, amplitude, work, edge, panel, work, i, high, work, right + j, wide, d)
                copy(work, edge, panel, out, here, m, count, width)
    for i in range(n):
        if rows[at_rows + i] < 0:
            out[at + i * m : at + (i + 1) * m] = 0
    last = m
    while last > 0 and columns[at_columns + last - 1] < 0:  # padding is at the end
        last -= 1
    if last < m:
        for i in range(n):
            out[at + i * m + last : at + (i + 1) * m] = 0


@exposed
def evaluate(x, rows, z, columns, inverse, kind, amplitude, out, members, n, m, d, upper):
    """Kernel values between blocks of rows of x and of z.

    x (points, d), z (points, d); rows (members, n) and columns (members, m) are positions, -1 for padding,
    which gives 0; inverse (d,): 1 over the lengthscales; out (members, n, m). With `upper`, what lies below
    the diagonal is left as it is.
    """
    work = scratch(x, n, m, d)
    for i in range(members):
        evaluate_block(
            x, rows, i * n, n, z, columns, i * m, m, d, inverse, kind, amplitude, upper, out, i * n * m, work
        )  # fmt: skip
