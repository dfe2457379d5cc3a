"""Blocks of positions, whole and padded, for tests of values between blocks of points."""

import torch

from hck.backend.blocks import Blocks


def table(rows, width, full):
    """Blocks of positions, padded with −1."""
    index = torch.full((len(rows), width), -1)
    for row, positions in zip(index, rows, strict=True):
        row[: len(positions)] = torch.tensor(positions)
    return Blocks(index, full)


FULL = (table([[0, 1, 2], [3, 4, 5], [6, 7, 8]], 3, True), table([[0, 1], [2, 3], [8, 4]], 2, True))
PADDED = (table([[0, 1, 2], [3, 4], [6]], 4, False), table([[0, 1], [2], [8, 4, 6]], 3, False))
