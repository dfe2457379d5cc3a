"""Points with what was observed at them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.points import Points


@dataclass
class Observations:
    """What is learned from."""

    points: Points
    y: Tensor  # (n,) or (n, columns)
    trend: Tensor | None = None  # (n, trends): features in which the mean is linear
    noise: Tensor | None = None  # (n,): variances of the noise, where they are known

    def __len__(self) -> int:
        return len(self.y)

    @property
    def columns(self) -> Tensor:
        """y as a matrix: shape (n, columns)."""
        return self.y if self.y.ndim == 2 else self.y[:, None]

    def take(self, rows: np.ndarray) -> "Observations":
        """Some of them."""
        index = torch.from_numpy(rows)
        parts = (self.y, self.trend, self.noise)
        y, *rest = (None if part is None else part[index.to(part.device)] for part in parts)
        assert y is not None
        return Observations(self.points.take(index.to(self.points.device)), y, *rest)

    def draw(self, size: int, rng: np.random.RandomState) -> "tuple[Observations, np.ndarray]":
        """`size` of them at random, in their order, and which; all if there are no more."""
        if size >= len(self):
            return self, np.arange(len(self))
        rows = np.sort(rng.permutation(len(self))[:size])
        return self.take(rows), rows
