"""Points with what was observed at them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.points import Points


@dataclass
class Observations:
    """What is learned from.

    Attributes
    ----------
    points : Points
    y : Tensor of shape (n,) or (n, columns)
    trend : Tensor of shape (n, trends), or None
        Features in which the mean is linear.
    noise : Tensor of shape (n,), or None
        Variances of the noise, where they are known.
    """

    points: Points
    y: Tensor
    trend: Tensor | None = None
    noise: Tensor | None = None

    def __len__(self) -> int:
        return len(self.y)

    @property
    def columns(self) -> Tensor:
        """y as a matrix: shape (n, columns)."""
        return self.y if self.y.ndim == 2 else self.y[:, None]

    def take(self, rows: np.ndarray) -> "Observations":
        """Some of them."""
        index = torch.from_numpy(rows)
        rest = (None if part is None else part[index.to(part.device)] for part in (self.trend, self.noise))
        return Observations(
            self.points.take(index.to(self.points.device)), self.y[index.to(self.y.device)], *rest
        )  # fmt: skip

    def draw(self, size: int, rng: np.random.RandomState) -> "tuple[Observations, np.ndarray]":
        """`size` of them at random, in their order, and which; all if there are no more."""
        if size >= len(self):
            return self, np.arange(len(self))
        rows = np.sort(rng.permutation(len(self))[:size])
        return self.take(rows), rows
