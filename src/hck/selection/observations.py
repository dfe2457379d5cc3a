"""Points with what was observed at them."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from hck.points import Points


@dataclass
class Observations:
    """What is learned from.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from hck.points import as_points
    >>> from hck.selection import Observations
    >>> data = Observations(as_points([[0.0], [1.0], [2.0]]), torch.tensor([5.0, 6.0, 7.0]))
    >>> data.take(np.array([2, 0])).y
    tensor([7., 5.])
    """

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
