"""Features that belong together: those of one category, or of one circle, have one weight in a metric."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Ties:
    """Which features share a weight, `group` (d,) from 0 on, and the `least` (d,) that their width counts as.

    Examples
    --------
    >>> import torch
    >>> ties = Ties(np.array([0, 0, 1]), np.zeros(3))
    >>> ties.mean(torch.tensor([1.0, 3.0, 5.0])).tolist()
    [2.0, 2.0, 5.0]
    >>> ties.widths(torch.tensor([3.0, 4.0, 1.0])).tolist()
    [5.0, 5.0, 1.0]
    """

    group: np.ndarray
    least: np.ndarray

    @property
    def count(self) -> int:
        """Of groups."""
        return int(self.group[-1]) + 1

    @property
    def alone(self) -> np.ndarray:
        """Which features (d,) have a weight of their own."""
        return np.bincount(self.group)[self.group] == 1

    def mean(self, values: Tensor) -> Tensor:
        """Values (..., d), in the place of each the mean of its group."""
        group, sums = self._sums(values)
        size = torch.bincount(group, minlength=self.count)
        return (sums / size)[..., group]

    def widths(self, spread: Tensor) -> Tensor:
        """The widths of features (d,), given standard deviations: √ of the sum of variances of a group."""
        group, sums = self._sums(spread.square())
        least = torch.from_numpy(self.least).to(spread)
        return torch.maximum(sums.sqrt()[group], least)

    def scaled(self, factor: Tensor | None) -> "Ties":
        """Those of features that are multiplied by numbers (d,)."""
        return self if factor is None else replace(self, least=self.least * factor.abs().cpu().numpy())

    def _sums(self, values: Tensor) -> tuple[Tensor, Tensor]:
        group = torch.from_numpy(self.group).to(values.device)
        sums = values.new_zeros(*values.shape[:-1], self.count)
        return group, sums.index_add_(-1, group, values)
