"""Points that are no vectors."""

import numpy as np
import torch
from torch import Tensor

from hck.backend.blocks import Blocks
from hck.points.base import Evaluate, Points, block_by_block


class ObjectPoints(Points):
    """Things of any kind, on which only a kernel that takes them can be evaluated.

    Examples
    --------
    >>> from hck.points import ObjectPoints, as_points
    >>> words = as_points(["leaf", "root"], objects=True)
    >>> isinstance(words, ObjectPoints), words.x.tolist()
    (True, ['leaf', 'root'])
    """

    def __init__(self, x: np.ndarray, dtype: torch.dtype, device: torch.device) -> None:
        self.x = x
        self.dtype, self.device = dtype, device

    def __len__(self) -> int:
        return len(self.x)

    def take(self, index: Tensor) -> "ObjectPoints":
        return ObjectPoints(self.x[index.cpu().numpy()], self.dtype, self.device)

    def to(self, device: torch.device) -> "ObjectPoints":
        return ObjectPoints(self.x, self.dtype, device)

    def join(self, others: list[Points]) -> "ObjectPoints":
        return ObjectPoints(np.concatenate([self.x, *(other.x for other in others)]), self.dtype, self.device)

    @property
    def nbytes(self) -> int:
        return self.x.nbytes

    @property
    def values_per_point(self) -> int:
        return 0

    def between(self, evaluate: Evaluate, rows: Blocks, other: Points, columns: Blocks) -> Tensor:
        return block_by_block(evaluate, self, rows, other, columns)
