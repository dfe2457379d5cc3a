"""What branches say of new points, put together: means over trees, and standard deviations."""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from hck.hierarchy.likelihood import Likelihood
from hck.preparation.trend import Trend
from hck.process import Spread
from hck.process.mixture import mix


@dataclass
class AtPoints:
    """Of new points in a branch, where they are in their chunk, (points,), and values.

    These are features (points, d), or what the branch says: (points, columns), or (points,) for variances.
    """

    tree: int
    where: np.ndarray
    values: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.where.nbytes + self.values.nbytes


Answers = list[list[AtPoints]]  # of several groups of branches


def together(found: Answers, tree: int, n: int) -> np.ndarray:
    """What the branches of a tree said of n points, in their order."""
    mine = [each for group in found for each in group if each.tree == tree]
    out = np.zeros((n, *mine[0].values.shape[1:]), mine[0].values.dtype)
    for each in mine:
        out[each.where] = each.values
    return out


def average(found: Answers, n_trees: int, n: int, intercept: np.ndarray, dtype: str) -> np.ndarray:
    """The mean over trees at n points, and the intercept: shape (n, columns)."""
    total = np.zeros((n, len(intercept)), dtype)
    for tree in range(n_trees if n else 0):
        total += together(found, tree, n)
    return (total / n_trees + intercept).astype(dtype)


@dataclass
class Evaluation:
    """From what the branches of a Gaussian process say to means and standard deviations.

    A branch says k_h(x, X) (K_h + noise)⁻¹ [y H], of shape (points, 1 + trends), and what the variance of
    f(x) would be if β were known. `found` has β of each tree, and how well it is known.
    """

    trend: Trend
    found: list[Likelihood]
    spread: Spread = field(default_factory=Spread)

    def mean(self, values: Answers, x: np.ndarray) -> np.ndarray:
        """Shape (points,)."""
        if not len(x):
            return np.zeros(0, x.dtype)
        features = self.trend(x)
        means, _ = self._by_tree(values, features)
        return self.trend.restore(features, torch.stack(means).mean(0)).numpy()

    def std(self, values: Answers, variances: Answers, x: np.ndarray, noise: float) -> np.ndarray:
        """Shape (points,)."""
        if not len(x):
            return np.zeros(0, x.dtype)
        means, spreads = self._by_tree(values, self.trend(x))
        latent = [torch.from_numpy(together(variances, tree, len(x))) for tree in range(len(means))]
        _, variance = mix(means, [own + more for own, more in zip(latent, spreads, strict=True)], self.spread)
        return (variance + self.spread.noise * noise).sqrt().numpy()

    def _by_tree(self, values: Answers, features: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """Means given the trend's features, and what not knowing β adds to variances: both (points,)."""
        means, spreads = [], []
        for tree, found in enumerate(self.found):
            said = torch.from_numpy(together(values, tree, len(features)))
            unexplained = features.to(said) - said[:, 1:]
            means.append(said[:, 0] + (unexplained @ found.coefficients.to(said))[:, 0])
            spreads.append((unexplained @ found.half.to(said)).square().sum(1))
        return means, spreads

    @property
    def coefficients(self) -> np.ndarray:
        """Of the trend's features as they came, the mean over trees."""
        beta = torch.stack([each.coefficients for each in self.found]).mean(0)
        return self.trend.raw(beta[:, 0].numpy())
