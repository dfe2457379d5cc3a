"""Matrices in flat arrays, as compiled code takes them: their parts, and copies of them."""

from collections import namedtuple

import numpy as np
from torch import Tensor

from hck.backend.cpu.jit import compiled, shared
from hck.backend.cpu.tile import VECTOR_BYTES

_PANEL_4, _PANEL_8 = 2 * VECTOR_BYTES // 4, 2 * VECTOR_BYTES // 8

# A matrix (rows, columns) in a flat array: where it starts, and how far its rows are apart.
Matrix = namedtuple("Matrix", "data at ld rows columns")

# A matrix (depth, rows of a product) whose entries are `down` and `right` apart.
Left = namedtuple("Left", "data at down right")


def flat(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor, one after another; its own memory if it is contiguous."""
    return (tensor.detach() if tensor.requires_grad else tensor).contiguous().numpy().reshape(-1)


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
def aligned(count, like):
    """Memory for `count` numbers, aligned as vectors are."""
    room = np.empty(count + 64 // like.itemsize, like.dtype)
    return room[-room.ctypes.data % 64 // like.itemsize :]


@compiled
def _copy_row(source, target, i, first, stop):
    """Copy some columns of a row."""
    s, t = np.uintp(source.at + i * source.ld), np.uintp(target.at + i * target.ld)
    for j in range(np.uintp(first), np.uintp(stop)):  # unsigned: a negative index would count from the end
        target.data[t + j] = source.data[s + j]


@shared
def copy(source, target):
    """Copy a matrix into another of its shape."""
    for i in range(source.rows):
        _copy_row(source, target, i, 0, source.columns)


@shared
def copy_upper(source, target):
    """Copy what lies on and above the diagonal."""
    for i in range(source.rows):
        _copy_row(source, target, i, i, source.columns)


@shared
def copy_below(source, target):
    """Copy what lies below the diagonal."""
    for i in range(1, source.rows):
        _copy_row(source, target, i, 0, i)


@shared
def copy_edge(source, target):
    """Copy a block of fewer columns than a panel has, and zeros after it."""
    panel = panel_of(target.data)
    for i in range(source.rows):
        _copy_row(source, target, i, 0, source.columns)
        t = np.uintp(target.at + i * target.ld)
        for j in range(np.uintp(source.columns), np.uintp(panel)):
            target.data[t + j] = 0


@shared
def transpose(source, target):
    """Copy the transpose of a matrix."""
    for i0 in range(0, source.rows, 8):
        for j in range(source.columns):
            s, t = source.at + j + i0 * source.ld, np.uintp(target.at + j * target.ld + i0)
            for i in range(np.uintp(min(8, source.rows - i0))):
                target.data[t + i] = source.data[np.uintp(s) + i * np.uintp(source.ld)]


@shared
def mirror_upper(m):
    """Copy what lies above the diagonal below it."""
    n = m.rows
    for p in range(0, n, 8):
        rows = min(8, n - p)
        stop = p + rows
        transpose(part(m, p, stop, rows, n - stop), part(m, stop, p, n - stop, rows))
        for i in range(p, stop):
            for j in range(i + 1, stop):
                m.data[m.at + j * m.ld + i] = m.data[m.at + i * m.ld + j]


@shared
def negate(m):
    """Change the sign of a matrix."""
    for i in range(m.rows):
        start = np.uintp(m.at + i * m.ld)
        for j in range(np.uintp(m.columns)):
            m.data[start + j] = -m.data[start + j]


@shared
def clear(m):
    """Make all of a matrix 0."""
    for i in range(m.rows):
        start = np.uintp(m.at + i * m.ld)
        for j in range(np.uintp(m.columns)):
            m.data[start + j] = 0
